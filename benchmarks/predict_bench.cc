// Links: strobe_predict
// What a prediction takes, and what a fit of the size of a profile takes: 6 networks, 20 levels, 10 batches.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <string>

#include "models/zoo.h"
#include "predict/model.h"
#include "predict/network_features.h"
#include "predict/paper_features.h"

using namespace strobe;
using namespace strobe::predict;

namespace {

constexpr const char* kNetworks[] = {"resnet18",      "resnet50",  "mobilenet_v2",
                                     "squeezenet1_1", "googlenet", "mnasnet1_0"};

// Channels scaled as pruning would; only sizes matter here.
LayerList pruned(LayerList list, int64_t level) {
  list.level = level;
  const auto scaled = [&](int64_t channels) { return std::max<int64_t>(1, channels * (100 - level) / 100); };
  for (LayerRow& row : list.rows) {
    if (row.groups > 1) row.groups = scaled(row.ic);
    row.ic = scaled(row.ic);
    row.oc = row.groups > 1 ? row.ic : scaled(row.oc);
  }
  return list;
}

Dataset profile() {
  std::vector<LayerList> lists;
  std::vector<Measurement> measured;
  for (const char* name : kNetworks) {
    const LayerList whole = from_graph(*models::find_in_zoo(name)->make({}));
    for (int64_t level = 0; level < 100; level += 5) {
      lists.push_back(pruned(whole, level));
      const NetworkFeatures features = network_features(lists.back());
      for (int64_t batch = 2; batch <= 20; batch += 2) {
        const double value =
            2 + 1e-9 * static_cast<double>(batch) * features.flop() + 1e-8 * features.bytes(static_cast<double>(batch));
        measured.push_back({whole.net, level, batch, "latency", value, "ms", true});
      }
    }
  }
  return *join(lists, measured, Quantity::kLatency);
}

void fit(benchmark::State& state, const std::string& name) {
  const Dataset dataset = profile();
  for (auto _ : state) benchmark::DoNotOptimize(fit_model(name, dataset, {.threads = 2}));
}

// Layers of a network, its features and the prediction.
void predict_network(benchmark::State& state, const std::string& name) {
  const auto model = fit_model(name, profile(), {.threads = 2});
  const models::Graph graph = *models::make_resnet50({});
  for (auto _ : state) benchmark::DoNotOptimize(model->predictor->predict(from_graph(graph), 32));
}

void read(benchmark::State& state, const std::string& name) {
  const std::string text = format_model(*fit_model(name, profile(), {.threads = 2}));
  for (auto _ : state) benchmark::DoNotOptimize(parse_model(text));
  state.counters["bytes"] = static_cast<double>(text.size());
}

BENCHMARK_CAPTURE(fit, paper, "paper")->Unit(benchmark::kMillisecond)->UseRealTime()->Iterations(1);
BENCHMARK_CAPTURE(fit, strobe, "strobe")->Unit(benchmark::kMillisecond)->UseRealTime()->Iterations(1);
BENCHMARK_CAPTURE(predict_network, paper, "paper")->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK_CAPTURE(predict_network, strobe, "strobe")->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK_CAPTURE(read, paper, "paper")->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK_CAPTURE(read, strobe, "strobe")->Unit(benchmark::kMillisecond)->UseRealTime();

}  // namespace

BENCHMARK_MAIN();
