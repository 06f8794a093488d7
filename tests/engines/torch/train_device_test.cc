// Training on a double of a GPU (device_double.h) against the CPU: the same operators, so the same numbers but for the
// rounding of a sum; that it has its own stream, waits where it says so, and goes on where the other one ended.
#include <c10/core/AutogradState.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "device_double.h"
#include "engines/torch/train.h"
#include "models/module_builder.h"
#include "models/safetensors.h"
#include "models/seed.h"
#include "models/voxel.h"

namespace strobe::engines::torch_plugin {
namespace {

using models::Graph;
using test::gpu;
using testing::AllOf;
using testing::Each;
using testing::HasSubstr;
using testing::Not;
using testing::SizeIs;

const c10::Device kCpu(c10::DeviceType::CPU);

std::vector<float> values(size_t count, uint32_t seed) {
  std::vector<float> all(count);
  for (float& value : all) value = static_cast<float>((seed = seed * 1664525U + 1013904223U) >> 8) / (1U << 23) - 1;
  return all;
}

// What a network is trained on, by step; the last step of three is shorter.
struct Lessons {
  std::shared_ptr<const Graph> graph, pillar_net;
  TrainOptions options;
  std::function<Target(uint32_t)> target;

  int64_t values_of_item() const { return (pillar_net ? pillar_net : graph)->input_shape().elements(); }
  Result<double> step(Trainer& trainer, uint32_t number) const {
    const uint32_t items = number % 3 == 2 ? 2 : 3;
    std::vector<Target> targets;
    for (uint32_t i = 0; i < items; ++i) targets.push_back(target(3 * number + i));
    std::vector<float> input = values(items * static_cast<size_t>(values_of_item()), number);
    STROBE_ASSIGN(const double loss, trainer.forward(input, targets));
    STROBE_TRY(trainer.backward());
    std::fill(input.begin(), input.end(), 1e6F);  // it is the caller's again
    STROBE_TRY(trainer.update(0.01));
    return loss;
  }
  std::unique_ptr<Trainer> trainer(c10::Device device) const {
    TrainOptions own = options;
    own.threads = 1;
    own.pillar_net = pillar_net;
    auto made = make_trainer(graph, own, device);
    EXPECT_TRUE(made) << made.error().to_string();
    return std::move(*made);
  }
};

std::shared_ptr<const Graph> seeded(models::ModuleBuilder&& builder) {
  auto graph = std::make_shared<Graph>(*std::move(builder).finish());
  EXPECT_TRUE(models::seed_weights(*graph, 1));
  return graph;
}

Lessons classifier() {
  models::ModuleBuilder build("classes");
  models::LayerId x = build.picture({}, 16);
  x = build.convolution("a", x, {.channels = 6, .kernel = 3, .stride = 2, .pad = 1});
  x = build.batch_norm("a.bn", x);
  x = build.relu("a.relu", x);
  models::Pool pool;
  pool.kernel_h = pool.kernel_w = pool.stride_h = pool.stride_w = 2;
  x = build.append("pool", pool, {x});
  const models::LayerId left = build.convolution("b", x, {.channels = 6, .kernel = 3, .pad = 1, .bias = true});
  x = build.append("sum", models::Add{}, {left, x});
  x = build.append("mean", models::GlobalAveragePool{}, {x});
  x = build.append("dropout", models::Dropout{.probability = 0.25F}, {x});
  build.add_output(build.append("linear", models::Linear{.out_features = 4, .weight = {}, .bias = {}}, {x}));
  return {
      seeded(std::move(build)), nullptr, {}, [](uint32_t n) { return Target{.class_id = static_cast<int>(n % 4)}; }};
}

Lessons detector() {
  models::ModuleBuilder build("boxes");
  models::LayerId x = build.picture({}, 32);
  x = build.convolution("a", x, {.channels = 8, .kernel = 3, .stride = 4, .pad = 1});
  x = build.batch_norm("a.bn", x);
  x = build.relu("a.relu", x);
  const models::LayerId fine = build.convolution("fine", x, {.channels = 2 * 7, .bias = true});
  build.append("fine.head", models::YoloHead{.anchors = {6, 6, 12, 12}, .classes = 2}, {fine});
  x = build.convolution("b", x, {.channels = 8, .kernel = 3, .stride = 2, .pad = 1});
  const models::LayerId coarse = build.convolution("coarse", x, {.channels = 7, .bias = true});
  build.append("coarse.head", models::YoloHead{.anchors = {20, 20}, .classes = 2}, {coarse});
  return {seeded(std::move(build)), nullptr, {}, [](uint32_t n) {
            Target target;
            for (uint32_t i = 0; i < n % 3; ++i) {  // some pictures show nothing
              const std::vector<float> at = values(4, 7 * n + i);
              target.boxes.push_back(
                  {static_cast<int>((n + i) % 2), 16 + 12 * at[0], 16 + 12 * at[1], 10 + 8 * at[2], 10 + 8 * at[3]});
            }
            return target;
          }};
}

Lessons lidar() {
  constexpr int64_t kPillars = 6, kPoints = 3, kRows = 3, kColumns = 5, kAnchors = 2, kClasses = 2, kCode = 7;
  models::ModuleBuilder pillars("pillars");
  models::LayerId x = pillars.input({models::kPillarFeatures, kPoints, kPillars});
  x = pillars.convolution("pillar", x, {.channels = 4, .bias = true});
  models::Pool pool;
  pool.kernel_h = pool.stride_h = kPoints;
  pillars.append("max", pool, {x});
  models::ModuleBuilder head("head");
  x = head.input({4, kRows, kColumns});
  x = head.convolution("neck", x, {.channels = 5, .kernel = 3, .pad = 1, .bias = true});
  x = head.batch_norm("neck.bn", x);
  head.add_output(head.convolution("classes", x, {.channels = kAnchors * kClasses, .bias = true}));
  head.add_output(head.convolution("codes", x, {.channels = kAnchors * kCode, .bias = true}));
  head.add_output(head.convolution("directions", x, {.channels = kAnchors * 2, .bias = true}));
  return {seeded(std::move(head)), seeded(std::move(pillars)), {}, [](uint32_t n) {
            Target target;
            for (uint32_t i = 0; i <= n % kPillars; ++i) target.cells.push_back(static_cast<int32_t>((n + 2 * i) % 15));
            std::sort(target.cells.begin(), target.cells.end());
            target.cells.erase(std::unique(target.cells.begin(), target.cells.end()), target.cells.end());
            target.anchors.label.assign(kAnchors * kRows * kColumns, 0);
            target.anchors.label[(n + 7) % 30] = -1;
            for (uint32_t i = 0; i < n % 3; ++i) {
              const auto anchor = static_cast<int32_t>((5 * n + 11 * i) % 30);
              target.anchors.label[static_cast<size_t>(anchor)] = static_cast<int8_t>(1 + (n + i) % kClasses);
              target.anchors.positives.push_back(anchor);
              target.anchors.directions.push_back(static_cast<int8_t>(i % 2));
              for (const float code : values(kCode, n + i)) target.anchors.codes.push_back(code);
            }
            return target;
          }};
}

// Largest difference of two networks' weights.
double difference(const std::vector<Graph>& a, const std::vector<Graph>& b) {
  double largest = 0;
  EXPECT_EQ(a.size(), b.size());
  for (size_t g = 0; g < a.size(); ++g) {
    const auto of_a = models::weights_of(a[g]).tensors, of_b = models::weights_of(b[g]).tensors;
    EXPECT_EQ(of_a.size(), of_b.size());
    for (const auto& [name, tensor] : of_a)
      for (size_t i = 0; i < tensor.values.size(); ++i)
        largest = std::max(largest, double{std::abs(tensor.values[i] - of_b.at(name).values[i])});
  }
  return largest;
}

constexpr double kTolerance = 1e-6;

class OnDouble : public testing::TestWithParam<Lessons (*)()> {
 protected:
  void SetUp() override { test::reset_double(); }
};

TEST_P(OnDouble, LearnsWhatTheCpuLearns) {
  for (const Optimizer optimizer : {Optimizer::kAdamW, Optimizer::kSgd}) {
    for (const double clip : {0.0, 0.01}) {
      Lessons lessons = GetParam()();
      lessons.options.optimizer = optimizer;
      lessons.options.clip_norm = clip;
      const auto here = lessons.trainer(kCpu), there = lessons.trainer(test::kDouble);
      const auto begun = *here->graphs();
      EXPECT_EQ(difference(begun, *there->graphs()), 0);
      for (uint32_t step = 0; step < 6; ++step) {
        const auto expected = lessons.step(*here, step), found = lessons.step(*there, step);
        ASSERT_TRUE(expected) << expected.error().to_string();
        ASSERT_TRUE(found) << found.error().to_string();
        EXPECT_NEAR(*found, *expected, kTolerance * *expected) << "step " << step;
      }
      EXPECT_GT(difference(begun, *here->graphs()), 100 * kTolerance);
      EXPECT_LT(difference(*here->graphs(), *there->graphs()), clip == 0 ? kTolerance : 10 * kTolerance);
    }
  }
}

TEST_P(OnDouble, GoesOnWhereTheOtherDeviceEnded) {
  const Lessons lessons = GetParam()();
  const auto whole = lessons.trainer(kCpu);
  for (uint32_t step = 0; step < 5; ++step) ASSERT_TRUE(lessons.step(*whole, step));
  for (const auto& [first_device, second_device] : {std::pair{kCpu, test::kDouble}, std::pair{test::kDouble, kCpu}}) {
    const auto first = lessons.trainer(first_device);
    for (uint32_t step = 0; step < 3; ++step) ASSERT_TRUE(lessons.step(*first, step));
    Lessons rest = lessons;
    auto graphs = *first->graphs();
    rest.graph = std::make_shared<const Graph>(graphs.back());
    if (rest.pillar_net) rest.pillar_net = std::make_shared<const Graph>(graphs.front());
    const auto second = rest.trainer(second_device);
    ASSERT_TRUE(second->set_optimizer_state(*first->optimizer_state()));
    const auto given = *first->optimizer_state(), state = *second->optimizer_state();
    ASSERT_EQ(state.size(), given.size());
    for (const auto& [name, tensor] : given) EXPECT_EQ(state.at(name).values, tensor.values) << name;
    for (uint32_t step = 3; step < 5; ++step) ASSERT_TRUE(rest.step(*second, step));
    // A dropout of another seed's place in its sequence is another one.
    if (lessons.graph->name != "classes") {
      EXPECT_LT(difference(*second->graphs(), *whole->graphs()), kTolerance);
    }
  }
}

TEST_P(OnDouble, HasAStreamOfItsOwnOneThreadAndPinnedMemory) {
  const Lessons lessons = GetParam()();
  const auto trainer = lessons.trainer(test::kDouble);
  gpu().launched.clear();
  gpu().unpinned = 0;
  for (uint32_t step = 0; step < 3; ++step) ASSERT_TRUE(lessons.step(*trainer, step));
  ASSERT_TRUE(trainer->optimizer_state());
  EXPECT_EQ(gpu().streams[0].given, 0) << "work in the stream that everybody shares";
  EXPECT_GT(gpu().streams[1].given, 100);
  EXPECT_EQ(gpu().launched, std::set{std::this_thread::get_id()}) << "launched outside of the thread's ranges";
  EXPECT_EQ(gpu().unpinned, 0);
  EXPECT_EQ(gpu().current, 0);
  EXPECT_TRUE(c10::AutogradState::get_tls_state().get_multithreading_enabled());
}

TEST_P(OnDouble, EachPartReturnsWhenItsWorkIsDone) {
  const Lessons lessons = GetParam()();
  const auto trainer = lessons.trainer(test::kDouble);
  const auto idle = [](const char* after, int waits) {
    EXPECT_THAT(gpu().streams[1].held, SizeIs(0)) << after;
    EXPECT_EQ(gpu().streams[1].waits, waits) << after;
    gpu().streams[1].waits = 0;
  };
  gpu().streams[1].waits = 0;
  const std::vector<Target> targets = {lessons.target(4), lessons.target(5)};
  ASSERT_TRUE(trainer->forward(values(2 * static_cast<size_t>(lessons.values_of_item()), 1), targets));
  idle("forward", 1);  // to read the loss, and for nothing else
  ASSERT_TRUE(trainer->backward());
  idle("backward", 1);
  ASSERT_TRUE(trainer->update(0.01));
  idle("update", 1);
}

TEST_P(OnDouble, MixedPrecisionRuns) {
  Lessons lessons = GetParam()();
  lessons.options.mixed_precision = true;
  const auto trainer = lessons.trainer(test::kDouble);
  for (uint32_t step = 0; step < 2; ++step) {
    const auto loss = lessons.step(*trainer, step);
    ASSERT_TRUE(loss) << loss.error().to_string();
  }
}

TEST_P(OnDouble, AFullDeviceIsOneLineAndSpoilsNothing) {
  const Lessons lessons = GetParam()();
  const auto trainer = lessons.trainer(test::kDouble), other = lessons.trainer(test::kDouble);
  ASSERT_TRUE(lessons.step(*trainer, 0) && lessons.step(*other, 0));
  gpu().largest = 64;
  const auto refused = lessons.step(*trainer, 1);
  gpu().largest = SIZE_MAX;
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind(), ErrorKind::kUnsupported);
  EXPECT_THAT(refused.error().to_string(),
              AllOf(HasSubstr("memory is full"), HasSubstr("smaller --batch-size"), Not(HasSubstr("\n"))));
  // An OOM of forward has seen no batch norm yet, or not all: weights are what counts.
  ASSERT_TRUE(trainer->graphs());
  EXPECT_TRUE(lessons.step(*trainer, 1));
}

TEST_P(OnDouble, ADeadDeviceIsAnErrorOfTheEngine) {
  const Lessons lessons = GetParam()();
  const auto trainer = lessons.trainer(test::kDouble);
  gpu().broken = true;
  const auto failed = lessons.step(*trainer, 0);
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().kind(), ErrorKind::kEngine);
  EXPECT_THAT(failed.error().to_string(), HasSubstr("the device is gone"));
  EXPECT_FALSE(trainer->graphs());
}

std::string name_of(const testing::TestParamInfo<Lessons (*)()>& network) {
  constexpr const char* kNames[] = {"Classifier", "Detector", "Lidar"};
  return kNames[network.index];
}
INSTANTIATE_TEST_SUITE_P(Networks, OnDouble, testing::Values(&classifier, &detector, &lidar), name_of);

}  // namespace
}  // namespace strobe::engines::torch_plugin
