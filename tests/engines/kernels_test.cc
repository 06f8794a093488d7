// What an engine says that it executed: the fusion map and the times of its kernels.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "engines/fusion.h"
#include "engines/operation_cases.h"
#include "models/model.h"
#include "support/test_data.h"

namespace strobe::engines {
namespace {

using test::GraphPtr;

// Layers that an engine may run without a kernel: they only say where values lie in memory.
bool may_be_a_view(const models::Layer& layer) {
  return std::holds_alternative<models::Slice>(layer.operation) ||
         std::holds_alternative<models::Flatten>(layer.operation) ||
         std::holds_alternative<models::Concat>(layer.operation);
}

// Layers that some engine runs in several steps: padding and pool, several sums, reshape and product.
bool may_take_several(const models::Layer& layer) {
  return std::holds_alternative<models::Pool>(layer.operation) ||
         std::holds_alternative<models::Linear>(layer.operation) ||
         (std::holds_alternative<models::Add>(layer.operation) && layer.inputs.size() > 2);
}

class Kernels : public test::EachEngine {
 protected:
  void check(const GraphPtr& graph, const std::string& title) {
    SCOPED_TRACE(title);
    const auto loaded = engine().load(graph, {.batch = 2, .profile_layers = true});
    ASSERT_TRUE(loaded) << loaded.error().to_string();
    Network& network = **loaded;
    const auto session = network.create_session();
    ASSERT_TRUE(session) << session.error().to_string();
    const auto input = test::random_values(2 * graph->input_shape().elements(), 1);
    const auto outputs = test::run_on(**session, network, input);
    ASSERT_TRUE(outputs) << outputs.error().to_string();
    if (graph->layers.size() < 40) {
      EXPECT_LE(test::difference(*outputs, test::reference_outputs(*graph, input)), 5e-6) << "with profiling";
    }
    const auto kernels = network.kernels();
    ASSERT_TRUE(kernels) << kernels.error().to_string();
    check_map(*graph, *kernels);
    check_times(graph);
  }

  // OpenVINO counts whole microseconds, and a kernel of none as not run: batches are large enough for every kernel to
  // take some, on any machine.
  void check_times(const GraphPtr& graph) {
    constexpr int64_t kValues = 1'000'000, kMost = 128;
    const int64_t elements = graph->input_shape().elements();
    const int64_t batch = std::clamp<int64_t>(kValues / elements, 2, kMost);
    const auto network = engine().load(graph, {.batch = batch, .profile_layers = true});
    ASSERT_TRUE(network) << network.error().to_string();
    const auto session = (*network)->create_session();
    ASSERT_TRUE(session) << session.error().to_string();
    ASSERT_TRUE(test::run_on(**session, **network, test::random_values(batch * elements, 1)));
    const auto kernels = (*network)->kernels();
    ASSERT_TRUE(kernels) << kernels.error().to_string();
    const auto times = (*session)->kernel_times();
    ASSERT_TRUE(times) << times.error().to_string();
    check_times(*kernels, *times);
  }

  void check_map(const models::Graph& graph, const std::vector<Kernel>& kernels) {
    std::map<std::string, int> found;
    std::set<std::string> names;
    std::string listing;
    for (const auto& kernel : kernels) {
      EXPECT_TRUE(names.insert(kernel.name).second) << "two kernels are called " << kernel.name;
      EXPECT_FALSE(kernel.type.empty()) << kernel.name;
      listing += kernel.name + " (" + kernel.type + " " + kernel.implementation + "):";
      for (const auto& layer : kernel.layers) ++found[layer];
      for (const auto& layer : kernel.layers) listing += " [" + layer + "]";
      listing += "\n";
    }
    for (const auto& layer : graph.layers) {
      const auto at = found.find(layer.name);
      const int times = at == found.end() ? 0 : at->second;
      if (at != found.end()) found.erase(at);
      if (is_identity(layer)) {
        EXPECT_EQ(times, 0) << layer.name << " computes nothing\n" << listing;
      } else if (may_be_a_view(layer)) {
        EXPECT_LE(times, 1) << layer.name << "\n" << listing;
      } else if (may_take_several(layer)) {
        EXPECT_GE(times, 1) << layer.name << "\n" << listing;
      } else {
        EXPECT_EQ(times, 1) << layer.name << "\n" << listing;
      }
    }
    EXPECT_TRUE(found.empty()) << found.begin()->first << " is no layer of the graph";
  }

  static void check_times(const std::vector<Kernel>& kernels, const std::vector<KernelTime>& times) {
    std::vector<int> seen(kernels.size());
    for (const auto& time : times) {
      ASSERT_LT(time.kernel, kernels.size());
      ++seen[time.kernel];
      EXPECT_GT(time.duration_ns, 0) << kernels[time.kernel].name;
    }
    for (size_t k = 0; k < kernels.size(); ++k) {
      // Whether a change of layout is needed may show only at run time; it stands for no layer.
      EXPECT_LE(seen[k], 1) << kernels[k].name;
      if (!kernels[k].layers.empty()) {
        EXPECT_EQ(seen[k], 1) << kernels[k].name;
      }
    }
  }
};

TEST_P(Kernels, HoldEachLayerOfSmallGraphsOnce) {
  for (const auto& cases :
       {test::convolution_cases(), test::activation_cases(), test::pool_cases(), test::structure_cases()}) {
    for (const auto& one : cases) check(one.graph, one.name);
  }
}

TEST_P(Kernels, HoldEachLayerOfYolov4TinyOnce) {
  const auto graph = models::open_graph("yolov4-tiny", {.width = 160, .height = 160});
  ASSERT_TRUE(graph) << graph.error().to_string();
  check(std::make_shared<const models::Graph>(*graph), "yolov4-tiny");
}

TEST_P(Kernels, HoldEachLayerOfYoloFastestOnce) {
  const auto cfg = test::shared_data("models/yolo-fastest-1.1-xl.cfg");
  STROBE_REQUIRE_DATA(cfg);
  const auto graph =
      models::open_graph(cfg.string(), {.weights = test::shared_data("models/yolo-fastest-1.1-xl.weights")});
  ASSERT_TRUE(graph) << graph.error().to_string();
  check(std::make_shared<const models::Graph>(*graph), "yolo-fastest-1.1-xl");
}

TEST_P(Kernels, HaveNoTimesUnlessAskedFor) {
  const auto graph = test::convolution_cases().front().graph;
  const auto network = engine().load(graph, {});
  ASSERT_TRUE(network) << network.error().to_string();
  const auto session = (*network)->create_session();
  ASSERT_TRUE(session);
  ASSERT_TRUE(test::run_on(**session, **network, test::random_values(graph->input_shape().elements(), 1)));
  const auto times = (*session)->kernel_times();
  ASSERT_TRUE(times);
  EXPECT_TRUE(times->empty());
  const auto kernels = (*network)->kernels();
  ASSERT_TRUE(kernels);
  EXPECT_FALSE(kernels->empty()) << "the kernels are known all the same";
}
STROBE_FOR_EACH_ENGINE(Kernels);

}  // namespace
}  // namespace strobe::engines
