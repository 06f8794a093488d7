// The loss of a LiDAR detector and its gradient through the scatter, against plain sums and finite differences.
#include <gmock/gmock.h>

#include <cmath>
#include <functional>

#include "engines/engine_case.h"
#include "engines/loader.h"
#include "models/module_builder.h"
#include "models/pillar_scatter.h"
#include "models/reference_executor.h"
#include "models/voxel.h"

namespace strobe::engines {
namespace {

using models::AnchorTargets;
using models::Graph;
using testing::HasSubstr;

constexpr int64_t kPillars = 6, kPoints = 3, kChannels = 4, kRows = 3, kColumns = 5, kCells = kRows * kColumns;
constexpr int64_t kAnchors = 2, kClasses = 2, kCode = 7;

// No batch norms: their statistics of a batch would be another network's.
Graph pillar_net() {
  models::ModuleBuilder build("pillars");
  models::LayerId x = build.input({models::kPillarFeatures, kPoints, kPillars});
  x = build.convolution("pillar", x, {.channels = kChannels, .bias = true});
  models::Pool pool;
  pool.kernel_h = pool.stride_h = kPoints;
  build.append("max", pool, {x});
  Graph graph = *std::move(build).finish();
  test::fill_weights(graph, 1);
  return graph;
}

Graph head_net(int64_t codes = kAnchors * kCode) {
  models::ModuleBuilder build("head");
  models::LayerId x = build.input({kChannels, kRows, kColumns});
  x = build.convolution("neck", x, {.channels = 5, .kernel = 3, .pad = 1, .bias = true});
  x = build.append("neck.act", models::Activation{models::ActivationKind::kTanh}, {x});
  build.add_output(build.convolution("classes", x, {.channels = kAnchors * kClasses, .bias = true}));
  build.add_output(build.convolution("codes", x, {.channels = codes, .bias = true}));
  build.add_output(build.convolution("directions", x, {.channels = kAnchors * 2, .bias = true}));
  Graph graph = *std::move(build).finish();
  test::fill_weights(graph, 9);
  return graph;
}

// Two items: the first with three pillars and two positives, the second with one pillar and one positive.
std::vector<Target> two_targets() {
  std::vector<Target> targets(2);
  targets[0].cells = {7, 2, 14};
  targets[1].cells = {5};
  for (Target& target : targets) target.anchors.label.assign(kAnchors * kCells, 0);
  const auto add = [](Target& target, int32_t anchor, int class_id, int direction, float offset) {
    target.anchors.label[static_cast<size_t>(anchor)] = static_cast<int8_t>(1 + class_id);
    target.anchors.positives.push_back(anchor);
    target.anchors.directions.push_back(static_cast<int8_t>(direction));
    for (int k = 0; k < kCode; ++k) target.anchors.codes.push_back(offset + 0.3F * static_cast<float>(k));
  };
  add(targets[0], 7, 0, 1, -0.5F);
  add(targets[0], kCells + 2, 1, 0, 0.1F);
  add(targets[1], kCells + 5, 0, 1, -1);
  targets[0].anchors.label[8] = -1;
  targets[1].anchors.label[kCells] = -1;
  return targets;
}

// The papers' formulas in loops of double precision.
double plain_loss(const Graph& pillars, const Graph& head, std::span<const float> input,
                  const std::vector<Target>& targets) {
  double total = 0;
  size_t positives = 0;
  for (size_t item = 0; item < targets.size(); ++item) {
    const Target& target = targets[item];
    const auto per = static_cast<size_t>(pillars.input_shape().elements());
    const auto features = test::run_reference(pillars, input.subspan(item * per, per)).back();
    std::vector<float> canvas(kChannels * kCells);
    std::vector<int32_t> drawn;
    models::scatter_pillars(features, kPillars, target.cells, kChannels, canvas, drawn);
    const auto values = test::run_reference(head, canvas);
    const auto output = [&](size_t i) { return values[static_cast<size_t>(head.outputs[i])]; };
    const auto classes = output(0), codes = output(1), directions = output(2);
    for (size_t anchor = 0; anchor < kAnchors * kCells; ++anchor) {
      if (target.anchors.label[anchor] < 0) continue;
      const size_t kind = anchor / kCells, cell = anchor % kCells;
      for (size_t k = 0; k < kClasses; ++k) {
        const double p = 1 / (1 + std::exp(-double{classes[(kind * kClasses + k) * kCells + cell]}));
        const bool is = target.anchors.label[anchor] == static_cast<int8_t>(1 + k);
        total -= is ? 0.25 * std::pow(1 - p, 2) * std::log(p) : 0.75 * std::pow(p, 2) * std::log(1 - p);
      }
    }
    for (size_t i = 0; i < target.anchors.positives.size(); ++i) {
      ++positives;
      const auto anchor = static_cast<size_t>(target.anchors.positives[i]);
      const size_t kind = anchor / kCells, cell = anchor % kCells;
      for (size_t k = 0; k < kCode; ++k) {
        double off = codes[(kind * kCode + k) * kCells + cell] - double{target.anchors.codes[i * kCode + k]};
        if (k == 6) off = std::sin(off);
        total += 2 * (std::abs(off) < 1.0 / 9 ? 0.5 * off * off * 9 : std::abs(off) - 0.5 / 9);
      }
      const double a = directions[2 * kind * kCells + cell], b = directions[(2 * kind + 1) * kCells + cell];
      total += 0.2 * (std::log(std::exp(a) + std::exp(b)) - (target.anchors.directions[i] == 1 ? b : a));
    }
  }
  return total / static_cast<double>(positives);
}

std::vector<float> some_input() {
  return test::random_values(2 * models::kPillarFeatures * kPoints * kPillars, 5);
}

TEST(LidarLoss, AndItsGradientThroughTheScatterAreThePlainOnes) {
  const auto engine = open_engine("torch");
  if (!engine) GTEST_SKIP() << "engine torch is not built";
  const Graph pillars = pillar_net(), head = head_net();
  const std::vector<Target> targets = two_targets();
  const std::vector<float> input = some_input();
  TrainOptions options;
  options.batch = 2;
  options.threads = 1;
  options.optimizer = Optimizer::kSgd;
  options.momentum = options.weight_decay = options.clip_norm = 0;
  options.pillar_net = std::make_shared<const Graph>(pillars);
  const auto trainer = (*engine)->train(std::make_shared<const Graph>(head), options);
  ASSERT_TRUE(trainer) << trainer.error().to_string();
  const auto loss = (*trainer)->forward(input, targets);
  ASSERT_TRUE(loss) << loss.error().to_string();
  EXPECT_NEAR(*loss, plain_loss(pillars, head, input, targets), 1e-5 * *loss);
  ASSERT_TRUE((*trainer)->backward());
  constexpr double kRate = 1;
  const auto updated = (*trainer)->update(kRate);
  ASSERT_TRUE(updated) << updated.error().to_string();
  const auto graphs = (*trainer)->graphs();
  ASSERT_TRUE(graphs);
  ASSERT_EQ(graphs->size(), 2U);

  // What one step took from a weight is its gradient.
  const auto check = [&](const Graph& before, const Graph& after, size_t layer,
                         const std::function<double(const Graph&)>& loss_with) {
    const auto values = [&](const Graph& graph) {
      return std::get<models::Convolution>(graph.layers[layer].operation).weight;
    };
    size_t felt = 0;
    for (size_t i = 0; i < values(before)->values.size(); i += 3) {
      const auto moved = [&](float by) {
        Graph copy = before;
        models::Tensor tensor = *values(before);
        tensor.values[i] += by;
        std::get<models::Convolution>(copy.layers[layer].operation).weight =
            std::make_shared<const models::Tensor>(std::move(tensor));
        return loss_with(copy);
      };
      constexpr float kStep = 1e-2F;
      const double wanted = (moved(kStep) - moved(-kStep)) / (2 * double{kStep});
      const double found = (double{values(before)->values[i]} - values(after)->values[i]) / kRate;
      EXPECT_NEAR(found, wanted, 0.01 + 0.02 * std::abs(wanted)) << before.layers[layer].name << " " << i;
      felt += std::abs(found) > 0.02 ? 1 : 0;
    }
    EXPECT_GE(felt, 4U) << before.layers[layer].name << ": most of it would be nothing but noise";
  };
  check(pillars, (*graphs)[0], 1, [&](const Graph& graph) { return plain_loss(graph, head, input, targets); });
  check(head, (*graphs)[1], 1, [&](const Graph& graph) { return plain_loss(pillars, graph, input, targets); });
}

TEST(LidarLoss, OfASweepWithoutObjects) {
  const auto engine = open_engine("torch");
  if (!engine) GTEST_SKIP() << "engine torch is not built";
  TrainOptions options;
  options.pillar_net = std::make_shared<const Graph>(pillar_net());
  const auto trainer = (*engine)->train(std::make_shared<const Graph>(head_net()), options);
  ASSERT_TRUE(trainer);
  Target target;
  target.cells = {0};
  target.anchors.label.assign(kAnchors * kCells, 0);
  const std::vector<float> input = some_input();
  const auto loss = (*trainer)->forward(std::span(input).first(input.size() / 2), std::span(&target, 1));
  ASSERT_TRUE(loss) << loss.error().to_string();
  EXPECT_GT(*loss, 0);
  EXPECT_TRUE((*trainer)->backward());
}

TEST(LidarLoss, SaysWhatDoesNotFit) {
  const auto engine = open_engine("torch");
  if (!engine) GTEST_SKIP() << "engine torch is not built";
  TrainOptions options;
  options.pillar_net = std::make_shared<const Graph>(pillar_net());
  const auto odd = (*engine)->train(std::make_shared<const Graph>(head_net(kAnchors * 5)), options);
  ASSERT_FALSE(odd);
  EXPECT_THAT(odd.error().to_string(), HasSubstr("boxes of 5 numbers, expected at least 7"));
  const auto swapped = (*engine)->train(options.pillar_net, options);
  ASSERT_FALSE(swapped);
  EXPECT_THAT(swapped.error().to_string(), HasSubstr("has no loss"));

  const auto trainer = (*engine)->train(std::make_shared<const Graph>(head_net()), options);
  ASSERT_TRUE(trainer);
  const std::vector<float> input = some_input();
  const auto refusal = [&](const std::function<void(Target&)>& spoil) {
    std::vector<Target> targets = two_targets();
    spoil(targets[0]);
    const auto loss = (*trainer)->forward(input, targets);
    return loss ? "accepted" : loss.error().to_string();
  };
  EXPECT_EQ(refusal([](Target&) {}), "accepted");
  EXPECT_THAT(refusal([](Target& t) { t.cells[1] = kCells; }), HasSubstr("a pillar has cell 15, the map has 15"));
  EXPECT_THAT(refusal([](Target& t) { t.cells.assign(7, 0); }), HasSubstr("7 pillars, expected 1 to 6"));
  EXPECT_THAT(refusal([](Target& t) { t.cells.clear(); }), HasSubstr("0 pillars"));
  EXPECT_THAT(refusal([](Target& t) { t.anchors.label.pop_back(); }), HasSubstr("not of this head: it has 30 anchors"));
  EXPECT_THAT(refusal([](Target& t) { t.anchors.label[7] = 3; }), HasSubstr("class 2, the network has 2 classes"));
  EXPECT_THAT(refusal([](Target& t) { t.anchors.positives[0] = 30; }), HasSubstr("class -1"));
  EXPECT_THAT(refusal([](Target& t) { t.anchors.directions[0] = 2; }), HasSubstr("neither 0 nor 1"));
}

}  // namespace
}  // namespace strobe::engines
