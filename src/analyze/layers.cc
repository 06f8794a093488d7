#include "analyze/layers.h"

#include <algorithm>
#include <charconv>
#include <string>
#include <vector>

#include "analyze/cells.h"
#include "analyze/notes.h"
#include "base/statistics.h"

namespace strobe::analyze {

using trace::NetworkKernel;
using trace::NetworkLayer;
using trace::Timeline;

namespace {

double mean_ns(const NetworkKernel& kernel) {
  double sum = 0;
  for (const int64_t duration : kernel.duration_ns) sum += static_cast<double>(duration);
  return kernel.duration_ns.empty() ? 0 : sum / static_cast<double>(kernel.duration_ns.size());
}

double all_kernels_ns(const Timeline& timeline) {
  double sum = 0;
  for (const NetworkKernel& kernel : timeline.kernels) sum += mean_ns(kernel);
  return sum;
}

// Shares of a kernel's layers in its time, by FLOP, else by bytes, else equal.
std::vector<double> shares(const Timeline& timeline, const NetworkKernel& kernel) {
  const auto by = [&](int64_t NetworkLayer::*cost) {
    std::vector<double> weights;
    for (const int32_t layer : kernel.layers)
      weights.push_back(std::max(0.0, static_cast<double>(timeline.layers[static_cast<size_t>(layer)].*cost)));
    return weights;
  };
  const auto total = [](const std::vector<double>& weights) {
    double sum = 0;
    for (const double weight : weights) sum += weight;
    return sum;
  };
  std::vector<double> weights = by(&NetworkLayer::flop);
  if (total(weights) <= 0) weights = by(&NetworkLayer::bytes);
  if (total(weights) <= 0) weights.assign(kernel.layers.size(), 1.0);
  const double sum = total(weights);
  for (double& weight : weights) weight /= sum;
  return weights;
}

// A layer's time in each profiled run, and the kernels that it ran in.
struct LayerTime {
  std::vector<double> run_ns;
  bool timed = false;
  std::string kernels;
};

std::vector<LayerTime> layer_times(const Timeline& timeline) {
  std::vector<LayerTime> times(timeline.layers.size());
  for (const NetworkKernel& kernel : timeline.kernels) {
    const std::vector<double> weights = shares(timeline, kernel);
    for (size_t i = 0; i < kernel.layers.size(); ++i) {
      LayerTime& time = times[static_cast<size_t>(kernel.layers[i])];
      time.kernels += (time.kernels.empty() ? "" : "+") + std::string(timeline.strings[kernel.name]);
      if (kernel.duration_ns.empty()) continue;
      // Runs that one of the layer's kernels lacks cannot be added up.
      const size_t runs =
          time.timed ? std::min(time.run_ns.size(), kernel.duration_ns.size()) : kernel.duration_ns.size();
      time.run_ns.resize(runs);
      time.timed = true;
      for (size_t run = 0; run < runs; ++run)
        time.run_ns[run] += weights[i] * static_cast<double>(kernel.duration_ns[run]);
    }
  }
  return times;
}

// mean_us, p50_us, p99_us, share.
void add_times(std::vector<double> run_ns, double total_ns, std::vector<Cell>& row) {
  if (run_ns.empty()) {
    row.resize(row.size() + 4);
    return;
  }
  std::sort(run_ns.begin(), run_ns.end());
  const double average = mean(run_ns);
  row.emplace_back(average / 1e3);
  row.emplace_back(quantile_sorted(run_ns, 0.5) / 1e3);
  row.emplace_back(quantile_sorted(run_ns, 0.99) / 1e3);
  row.push_back(cell_if(total_ns > 0, average / total_ns));
}

// Items of a profiled run: kernels' times are for all of them, layers' costs for one.
int64_t batch_size(const Timeline& timeline) {
  const auto fact = timeline.facts.find("pipeline.batch");
  if (fact == timeline.facts.end()) return 1;
  int64_t batch = 1;
  std::from_chars(fact->second.data(), fact->second.data() + fact->second.size(), batch);
  return std::max<int64_t>(1, batch);
}

void note_profile(const Timeline& timeline, Table& table) {
  if (timeline.kernels.empty()) {
    table.notes.push_back("no layer was timed in this trace");
    return;
  }
  size_t runs = 0;
  for (const NetworkKernel& kernel : timeline.kernels) runs = std::max(runs, kernel.duration_ns.size());
  if (runs == 0) table.notes.push_back("kernels are known, but none was timed");
  if (const int64_t batch = batch_size(timeline); batch > 1 && runs > 0)
    table.notes.push_back("times are for a batch of " + std::to_string(batch));
}

}  // namespace

Table layers(const Timeline& timeline) {
  Table table("Layers", {{"layer", "layer of the network as its author wrote it"},
                         {"type", "what it does"},
                         {"shape", "of its output"},
                         {"parameters", "weights and biases", 0},
                         {"mflop", "million floating-point operations for one item; a multiply-add counts 2"},
                         {"kbytes", "thousand bytes read and written once for one item: inputs, weights, outputs", 1},
                         {"mean_us", "mean time of a profiled run", 1},
                         {"p50_us", "median", 1},
                         {"p99_us", "99th percentile", 1},
                         {"share", "of the time of all kernels"},
                         {"gflops", "billion floating-point operations per second", 2},
                         {"kernel", "what the engine executed for it"}});
  const std::vector<LayerTime> times = layer_times(timeline);
  const double total_ns = all_kernels_ns(timeline);
  const auto batch = static_cast<double>(batch_size(timeline));
  double explained = 0;
  size_t without_time = 0;
  for (size_t i = 0; i < timeline.layers.size(); ++i) {
    const NetworkLayer& layer = timeline.layers[i];
    const auto text = [&](trace::StringId id) { return std::string(timeline.strings[id]); };
    std::vector<Cell> row{text(layer.name),
                          text(layer.type),
                          text(layer.shape),
                          layer.parameters,
                          static_cast<double>(layer.flop) / 1e6,
                          static_cast<double>(layer.bytes) / 1e3};
    add_times(times[i].run_ns, total_ns, row);
    const double average = times[i].timed ? mean(times[i].run_ns) : 0;
    explained += average;
    without_time += times[i].timed ? 0 : 1;
    row.push_back(cell_if(average > 0 && layer.flop > 0, batch * static_cast<double>(layer.flop) / average));
    row.push_back(cell(times[i].kernels));
    table.add_row(std::move(row));
  }
  if (total_ns > 0) table.coverage = std::min(1.0, explained / total_ns);
  note_profile(timeline, table);
  const bool split = std::any_of(timeline.kernels.begin(), timeline.kernels.end(), [](const NetworkKernel& kernel) {
    return kernel.layers.size() > 1 && !kernel.duration_ns.empty();
  });
  if (split)
    table.notes.push_back(
        "a kernel that fused several layers gives them its time in proportion to their FLOP (bytes where none has "
        "FLOP): an estimate");
  if (without_time > 0 && total_ns > 0)
    table.notes.push_back(count_of(without_time, "layer has", "layers have") +
                          " no time of their own: folded away, or not named by the engine");
  note_losses(timeline, table);
  return table;
}

Table fusion(const Timeline& timeline) {
  Table table("Fusion", {{"kernel", "what the engine executed"},
                         {"type", "its kind in the engine's words"},
                         {"implementation", "the variant that the engine chose"},
                         {"layers", "the network's layers that ended in it", 3, true},
                         {"layer_count", "how many", 0},
                         {"mean_us", "mean time of a profiled run", 1},
                         {"p50_us", "median", 1},
                         {"p99_us", "99th percentile", 1},
                         {"share", "of the time of all kernels"}});
  const double total_ns = all_kernels_ns(timeline);
  std::vector<bool> found(timeline.layers.size(), false);
  for (const NetworkKernel& kernel : timeline.kernels) {
    std::string names;
    for (const int32_t index : kernel.layers) {
      found[static_cast<size_t>(index)] = true;
      names +=
          (names.empty() ? "" : "+") + std::string(timeline.strings[timeline.layers[static_cast<size_t>(index)].name]);
    }
    const auto text = [&](trace::StringId id) { return std::string(timeline.strings[id]); };
    std::vector<Cell> row{text(kernel.name), text(kernel.type), text(kernel.implementation), std::move(names),
                          static_cast<int64_t>(kernel.layers.size())};
    add_times(std::vector<double>(kernel.duration_ns.begin(), kernel.duration_ns.end()), total_ns, row);
    table.add_row(std::move(row));
  }
  if (!found.empty())
    table.coverage =
        static_cast<double>(std::count(found.begin(), found.end(), true)) / static_cast<double>(found.size());
  note_profile(timeline, table);
  note_losses(timeline, table);
  return table;
}

}  // namespace strobe::analyze
