// Pruned networks on the engines: they compute what is left of the original, agree with each other, and can be trained.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "engines/engine_case.h"
#include "engines/loader.h"
#include "models/prune.h"
#include "models/zeroed.h"
#include "models/zoo.h"

namespace strobe::engines {
namespace {

using test::Values;

// Small pictures, since the original is run as well; VGG takes no smaller ones than its own.
models::ZooOptions small(std::string_view name) {
  if (name == "vgg16") return {};
  return {.width = 64, .height = 64};
}

models::Graph filled(const models::ZooEntry& entry) {
  models::Graph graph = *entry.make(small(entry.name));
  test::fill_weights(graph, 3);
  return graph;
}

Result<std::vector<Values>> run(Engine& engine, const models::Graph& graph, const Values& input) {
  STROBE_ASSIGN(const auto network, engine.load(std::make_shared<const models::Graph>(graph), {}));
  return test::run_once(*network, input);
}

class PrunedNetworks : public test::EachEngine {};

// A good half of every group, which ones by chance.
std::vector<bool> any_half(const models::ChannelMap& map) {
  std::mt19937 random(8);
  std::vector<bool> removed(static_cast<size_t>(map.count), false);
  for (const auto& group : map.groups) {
    const size_t stays = random() % group.channels.size();
    for (size_t i = 0; i < group.channels.size(); ++i)
      removed[static_cast<size_t>(group.channels[i].number)] = i != stays && random() % 5 < 3;
  }
  return removed;
}

TEST_P(PrunedNetworks, ComputeTheSameWithoutTheirZeroChannels) {
  for (const models::ZooEntry& entry : models::zoo()) {
    if (entry.name == "vgg16" && !is("openvino")) continue;  // half a gigabyte of weights: once is enough
    SCOPED_TRACE(entry.name);
    const models::Graph graph = filled(entry);
    const models::ChannelMap map = models::map_channels(graph);
    const std::vector<bool> removed = any_half(map);
    const auto pruned = models::remove_channels(graph, map, removed);
    ASSERT_TRUE(pruned) << pruned.error().to_string();
    const Values input = test::random_values(graph.input_shape().elements(), 11);
    const auto whole = run(engine(), test::zeroed(graph, map, removed), input);
    const auto rest = run(engine(), *pruned, input);
    ASSERT_TRUE(whole) << whole.error().to_string();
    ASSERT_TRUE(rest) << rest.error().to_string();
    const auto with_all = run(engine(), graph, input);
    ASSERT_TRUE(with_all) << with_all.error().to_string();
    EXPECT_GT(test::difference(*with_all, *whole), 1e-3) << "channels that matter to nothing would show nothing";
    const double found = test::difference(*rest, *whole);
    EXPECT_LE(found, 1e-5);
    RecordProperty(std::string(entry.name), std::to_string(found * 1e6) + "e-6");
  }
}

TEST_P(PrunedNetworks, AgreeWithTheReference) {
  const std::pair<const char*, models::PruneMethod> networks[] = {{"resnet18", models::PruneMethod::kRandom},
                                                                  {"mobilenet_v2", models::PruneMethod::kL1},
                                                                  {"yolov4-tiny", models::PruneMethod::kUniform},
                                                                  {"googlenet", models::PruneMethod::kRandom}};
  for (const auto& [name, method] : networks) {
    const models::Graph graph = filled(*models::find_in_zoo(name));
    const auto pruner = models::Pruner::create(graph, {.method = method});
    ASSERT_TRUE(pruner) << pruner.error().to_string();
    for (const int level : {50, 95}) {
      SCOPED_TRACE(std::string(name) + " at " + std::to_string(level));
      const auto pruned = pruner->at(level);
      ASSERT_TRUE(pruned) << pruned.error().to_string();
      const Values input = test::random_values(graph.input_shape().elements(), 12);
      const auto outputs = run(engine(), *pruned, input);
      ASSERT_TRUE(outputs) << outputs.error().to_string();
      EXPECT_LE(test::difference(*outputs, test::reference_outputs(*pruned, input)), 1e-4);
    }
  }
}
STROBE_FOR_EACH_ENGINE(PrunedNetworks);

TEST(PrunedTraining, ANetworkLearnsItsPictures) {
  const auto engine = open_engine("torch");
  if (!engine) GTEST_SKIP() << "engine torch is not built";
  models::Graph graph = *models::make_resnet18({.width = 32, .height = 32, .classes = 4});
  test::fill_weights(graph, 5);
  const auto pruner = models::Pruner::create(graph, {.method = models::PruneMethod::kRandom});
  ASSERT_TRUE(pruner);
  const auto pruned = std::make_shared<const models::Graph>(*pruner->at(70));
  TrainOptions options;
  options.batch = 4;
  options.threads = 1;
  const auto trainer = (*engine)->train(pruned, options);
  ASSERT_TRUE(trainer) << trainer.error().to_string();
  const Values input = test::random_values(4 * pruned->input_shape().elements(), 6);
  std::vector<Target> targets;
  for (int item = 0; item < 4; ++item) targets.push_back({.class_id = item, .boxes = {}});
  double first = 0, last = 0;
  for (int step = 0; step < 12; ++step) {
    const auto loss = (*trainer)->forward(input, targets);
    ASSERT_TRUE(loss) << loss.error().to_string();
    (step == 0 ? first : last) = *loss;
    ASSERT_TRUE((*trainer)->backward());
    ASSERT_TRUE((*trainer)->update(0.01));
  }
  EXPECT_LT(last, first / 2);
  const auto trained = (*trainer)->graph();
  ASSERT_TRUE(trained);
  EXPECT_TRUE(models::validate(*trained));
}

}  // namespace
}  // namespace strobe::engines
