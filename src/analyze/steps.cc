#include "analyze/steps.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "analyze/notes.h"
#include "analyze/passes.h"
#include "analyze/run_notes.h"

namespace strobe::analyze {
namespace {

struct Step {
  int64_t read_ns = 0, prep_ns = 0;
  int64_t begin_ns = INT64_MAX;
};

// The samples of the counter "loss" inside the run, one a training step, in order.
std::vector<double> losses_of(const trace::Timeline& timeline, const PipelineRun& run) {
  std::vector<std::pair<int64_t, double>> samples;
  const int64_t name = timeline.strings.find("loss");
  for (size_t i = 0; i < timeline.counters.size(); ++i) {
    const int64_t time = timeline.counters.time_ns[i];
    if (timeline.counters.name[i] == name && time >= run.start_ns && time <= run.end_ns)
      samples.emplace_back(time, timeline.counters.value[i]);
  }
  std::stable_sort(samples.begin(), samples.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<double> losses;
  for (const auto& sample : samples) losses.push_back(sample.second);
  return losses;
}

std::vector<Column> columns(bool training) {
  std::vector<Column> all = {
      {"step", "batch, in the order in which the network took them", 0},
      {"read_latency_ms", "reading and decoding its frames", 3},
      {"prep_latency_ms", "preprocessing them", 3},
      {"exec_latency_ms", "the network: inference or training step", 3},
      {"total_step_latency_ms", "from the first read to the end of the network, queues included", 3}};
  if (training) all.push_back({"loss", "of the training step", 6});
  return all;
}

}  // namespace

Table steps(const trace::Timeline& timeline) {
  const PipelineRun run = pipeline_run(timeline);
  const auto stage = [&](const char* name) {
    const auto found = std::find(run.stages.begin(), run.stages.end(), name);
    return found == run.stages.end() ? -1 : static_cast<int32_t>(found - run.stages.begin());
  };
  const int32_t read = stage("read"), prep = stage("prep"), train = stage("train");
  const int32_t exec = std::max(stage("infer"), train);
  Table table("Steps", columns(train >= 0));
  const std::vector<double> losses = train >= 0 ? losses_of(timeline, run) : std::vector<double>();
  std::map<std::pair<int64_t, int64_t>, Step> batches;  // a batch's frames share one pass through the network
  for (const Frame& frame : run.frames) {
    const auto begin = run.passes.begin() + static_cast<std::ptrdiff_t>(frame.first_pass);
    const auto end = begin + static_cast<std::ptrdiff_t>(frame.pass_count);
    const auto in_network = std::find_if(begin, end, [&](const Pass& pass) { return pass.stage == exec; });
    if (in_network == end) continue;
    Step& step = batches[{in_network->start_ns, in_network->end_ns}];
    for (auto pass = begin; pass != end; ++pass) {
      const int64_t time = pass->end_ns - pass->start_ns;
      if (pass->stage == read) step.read_ns += time;
      if (pass->stage == prep) step.prep_ns += time;
      step.begin_ns = std::min(step.begin_ns, pass->start_ns);
    }
  }
  const auto milliseconds = [](int64_t ns) { return static_cast<double>(ns) / 1e6; };
  int64_t number = 0;
  for (const auto& [when, step] : batches) {
    const auto [start, end] = when;
    std::vector<Cell> row{number, milliseconds(step.read_ns), milliseconds(step.prep_ns), milliseconds(end - start),
                          milliseconds(end - step.begin_ns)};
    const auto place = static_cast<size_t>(number++);
    if (train >= 0) row.push_back(place < losses.size() ? Cell(losses[place]) : Cell());
    table.add_row(std::move(row));
  }
  note_run(run, table);
  note_losses(timeline, table);
  return table;
}

}  // namespace strobe::analyze
