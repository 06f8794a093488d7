// Networks on a GPU against the same ones on the CPU, and what is said where there is none; what a listener hears.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include "engines/engine_case.h"
#include "engines/loader.h"
#include "models/model.h"

namespace strobe::engines {
namespace {

using testing::AllOf;
using testing::AnyOf;
using testing::HasSubstr;
using testing::Not;

constexpr int64_t kBatch = 2;

std::shared_ptr<const models::Graph> network() {
  auto graph = models::open_graph("yolov4-tiny", {.width = 96, .height = 96});
  EXPECT_TRUE(graph);
  return std::make_shared<const models::Graph>(*std::move(graph));
}

LoadOptions on(const std::string& device, const std::string& variant) {
  LoadOptions options;
  options.device = device;
  options.variant = variant;
  options.batch = kBatch;
  options.priority = 1;
  options.profile_layers = true;
  return options;
}

struct Ran {
  std::vector<std::vector<float>> outputs;
  std::vector<KernelTime> times;
  size_t kernels = 0;
};

Ran run(Network& loaded) {
  Ran ran;
  auto session = loaded.create_session();
  EXPECT_TRUE(session) << session.error().to_string();
  std::vector<float> input(static_cast<size_t>(loaded.inputs()[0].elements()));
  for (size_t i = 0; i < input.size(); ++i) input[i] = 0.5F + 0.5F * std::sin(static_cast<float>(i) * 0.37F);
  std::vector<float*> outputs;
  for (const TensorInfo& info : loaded.outputs()) ran.outputs.emplace_back(static_cast<size_t>(info.elements()), NAN);
  for (auto& output : ran.outputs) outputs.push_back(output.data());
  const float* const at = input.data();
  for (int i = 0; i < 2; ++i) {  // the second one finds the buffers of the first
    const auto done = (*session)->run(std::span(&at, 1), outputs);
    EXPECT_TRUE(done) << done.error().to_string();
  }
  auto times = (*session)->kernel_times();
  EXPECT_TRUE(times);
  ran.times = *times;
  ran.kernels = loaded.kernels()->size();
  return ran;
}

void expect_near(const Ran& actual, const Ran& expected) {
  ASSERT_EQ(actual.outputs.size(), expected.outputs.size());
  for (size_t o = 0; o < expected.outputs.size(); ++o) {
    float largest = 0;
    for (const float value : expected.outputs[o]) largest = std::max(largest, std::fabs(value));
    for (size_t i = 0; i < expected.outputs[o].size(); ++i)
      ASSERT_NEAR(actual.outputs[o][i], expected.outputs[o][i], 1e-3F * largest) << "output " << o << " at " << i;
  }
}

class Device : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    auto opened = open_engine("torch");
    if (!opened) GTEST_SKIP() << opened.error().to_string();
    engine_ = *opened;
  }
  std::shared_ptr<Engine> engine_;
};

TEST_P(Device, TheGpuGivesWhatTheCpuGives) {
  const auto graph = network();
  auto there = engine_->load(graph, on("cuda:0", GetParam()));
  if (!there && there.error().kind() == ErrorKind::kUnsupported) GTEST_SKIP() << there.error().to_string();
  ASSERT_TRUE(there) << there.error().to_string();
  auto here = engine_->load(graph, on("cpu", GetParam()));
  ASSERT_TRUE(here) << here.error().to_string();
  const Ran gpu = run(**there), cpu = run(**here);
  expect_near(gpu, cpu);
  ASSERT_EQ(gpu.times.size(), gpu.kernels);
  int64_t sum = 0;  // a view takes no time there
  for (const KernelTime& time : gpu.times) {
    EXPECT_GE(time.duration_ns, 0) << "kernel " << time.kernel;
    sum += time.duration_ns;
  }
  EXPECT_GT(sum, 0);
  EXPECT_THAT((*there)->facts(), testing::Contains(std::pair<std::string, std::string>("device", "cuda:0")));
}

TEST_P(Device, OneThatIsNotThereIsRefusedInOneLine) {
  const auto refused = engine_->load(network(), on("cuda:99", GetParam()));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind(), ErrorKind::kUnsupported);
  const std::string text = refused.error().to_string();
  EXPECT_THAT(text, HasSubstr("device cuda:99"));
  EXPECT_THAT(text, AnyOf(HasSubstr("NVIDIA driver"), HasSubstr("without CUDA"), HasSubstr("CUDA sees")));
  EXPECT_THAT(text, Not(HasSubstr("\n")));
}

TEST_P(Device, APriorityIsNothingOnTheCpu) {
  const auto graph = network();
  LoadOptions options = on("cpu", GetParam());
  auto one = engine_->load(graph, options);
  options.priority = 0;
  auto other = engine_->load(graph, options);
  ASSERT_TRUE(one && other);
  EXPECT_EQ(run(**one).outputs, run(**other).outputs);
}

INSTANTIATE_TEST_SUITE_P(Torch, Device, testing::Values("eager", "script"));

class Graphs : public Device {};

TEST_P(Graphs, TheGpuGivesWhatEagerGivesThere) {
  const auto graph = network();
  auto captured = engine_->load(graph, on("cuda:0", GetParam()));
  if (!captured && captured.error().kind() == ErrorKind::kUnsupported) GTEST_SKIP() << captured.error().to_string();
  ASSERT_TRUE(captured) << captured.error().to_string();
  auto eager = engine_->load(graph, on("cuda:0", "eager"));
  ASSERT_TRUE(eager) << eager.error().to_string();
  expect_near(run(**captured), run(**eager));
}

TEST_P(Graphs, TheCpuIsRefusedInOneLine) {
  const auto refused = engine_->load(network(), on("cpu", GetParam()));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind(), ErrorKind::kUnsupported);
  EXPECT_THAT(refused.error().to_string(),
              AllOf(HasSubstr("needs a GPU"), HasSubstr("torch:eager"), Not(HasSubstr("\n"))));
}

INSTANTIATE_TEST_SUITE_P(Torch, Graphs, testing::Values("graph"));

class TrainingDevice : public testing::Test {
 protected:
  void SetUp() override {
    auto opened = open_engine("torch");
    if (!opened) GTEST_SKIP() << opened.error().to_string();
    engine_ = *opened;
    auto graph = models::open_graph("resnet18", {.width = 64, .height = 64});
    ASSERT_TRUE(graph) << graph.error().to_string();
    graph_ = std::make_shared<const models::Graph>(*std::move(graph));
  }
  Result<std::vector<double>> losses(const std::string& device, bool mixed) const {
    TrainOptions options;
    options.device = device;
    options.mixed_precision = mixed;
    options.batch = 8;
    STROBE_ASSIGN(const auto trainer, engine_->train(graph_, options));
    const auto input = test::random_values(options.batch * graph_->input_shape().elements(), 3);
    std::vector<Target> targets(static_cast<size_t>(options.batch));
    for (size_t i = 0; i < targets.size(); ++i) targets[i].class_id = static_cast<int>(i);
    std::vector<double> losses;
    for (int step = 0; step < 5; ++step) {
      STROBE_ASSIGN(losses.emplace_back(), trainer->forward(input, targets));
      STROBE_TRY(trainer->backward());
      STROBE_TRY(trainer->update(1e-3));
    }
    return losses;
  }
  std::shared_ptr<Engine> engine_;
  std::shared_ptr<const models::Graph> graph_;
};

TEST_F(TrainingDevice, TheGpuLearnsWhatTheCpuLearns) {
  const auto there = losses("cuda:0", false);
  if (!there && there.error().kind() == ErrorKind::kUnsupported) GTEST_SKIP() << there.error().to_string();
  ASSERT_TRUE(there) << there.error().to_string();
  const auto mixed = losses("cuda:0", true), here = losses("cpu", false);
  ASSERT_TRUE(mixed && here);
  EXPECT_LT(here->back(), 0.7 * here->front());
  for (size_t i = 0; i < here->size(); ++i) {
    // AdamW's first steps have the size of the learning rate where a gradient is all but nothing, too.
    EXPECT_NEAR((*there)[i], (*here)[i], (i == 0 ? 1e-4 : 0.05) * here->front()) << "step " << i;
    EXPECT_NEAR((*mixed)[i], (*here)[i], 0.1 * here->front()) << "step " << i << " in bfloat16";
  }
}

TEST_F(TrainingDevice, OneThatIsNotThereIsRefusedInOneLine) {
  const auto refused = losses("cuda:99", false);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind(), ErrorKind::kUnsupported);
  EXPECT_THAT(refused.error().to_string(), AllOf(HasSubstr("device cuda:99"), Not(HasSubstr("\n"))));
}

class Log : public LayerListener {
 public:
  void before(size_t kernel, const std::function<void()>& finish) override {
    EXPECT_EQ(open_, 0);
    ++open_;
    heard.push_back(kernel);
    finish();
  }
  void after(size_t kernel, const std::function<void()>&) override {
    EXPECT_EQ(heard.back(), kernel);
    --open_;
  }
  std::vector<size_t> heard;

 private:
  int open_ = 0;
};

TEST(Listener, HearsOfEachKernelInItsOrderAndChangesNoAnswer) {
  const auto engine = open_engine("torch:eager");
  if (!engine) GTEST_SKIP() << engine.error().to_string();
  auto loaded = (*engine)->load(network(), on("cpu", "eager"));
  ASSERT_TRUE(loaded) << loaded.error().to_string();
  auto session = (*loaded)->create_session();
  ASSERT_TRUE(session);
  const auto input = test::random_values((*loaded)->inputs()[0].elements(), 3);
  const auto alone = test::run_on(**session, **loaded, input);
  Log log;
  ASSERT_TRUE((*session)->listen(&log));
  const auto heard = test::run_on(**session, **loaded, input);
  ASSERT_TRUE(alone && heard);
  EXPECT_EQ(*alone, *heard);
  std::vector<size_t> all((*loaded)->kernels()->size());
  std::iota(all.begin(), all.end(), size_t{0});
  EXPECT_EQ(log.heard, all);
  (*session)->listen(nullptr);
  ASSERT_TRUE(test::run_on(**session, **loaded, input));
  EXPECT_EQ(log.heard, all);
}

}  // namespace
}  // namespace strobe::engines
