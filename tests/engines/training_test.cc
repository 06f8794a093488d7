// Training on the torch engine: against PyTorch's own optimizers, and by what a trained network then finds.
#include <gmock/gmock.h>
#include <sys/wait.h>

#include <cmath>
#include <cstdio>
#include <sstream>

#include "base/file.h"
#include "engines/loader.h"
#include "models/module_builder.h"
#include "models/safetensors.h"
#include "models/seed.h"
#include "models/yolo.h"
#include "models/zoo.h"
#include "support/test_data.h"

namespace strobe::engines {
namespace {

using testing::HasSubstr;

std::shared_ptr<Engine> torch_engine() {
  auto engine = open_engine("torch");
  return engine ? *engine : nullptr;
}
#define REQUIRE_TORCH(engine) \
  if (engine == nullptr) GTEST_SKIP() << "engine torch is not built"

struct Reference {
  std::vector<double> losses;
  int exit_code = 0;
  std::string output;
};

Reference run_reference(const std::filesystem::path& folder, const char* optimizer, int steps) {
  const std::string command = std::string(STROBE_TEST_PYTHON) + " -B " + STROBE_TEST_TRAINING + " " + folder.string() +
                              " " + optimizer + " " + std::to_string(steps) + " 2>&1";
  Reference reference;
  FILE* pipe = ::popen(command.c_str(), "r");
  char buffer[4096];
  while (const size_t count = std::fread(buffer, 1, sizeof buffer, pipe)) reference.output.append(buffer, count);
  reference.exit_code = WEXITSTATUS(::pclose(pipe));
  std::istringstream lines(reference.output);
  for (double loss = 0; lines >> loss;) reference.losses.push_back(loss);
  return reference;
}

class AgainstPyTorch : public testing::TestWithParam<const char*> {};

TEST_P(AgainstPyTorch, LossesAndWeightsAreTheSame) {
  const auto engine = torch_engine();
  REQUIRE_TORCH(engine);
  constexpr int kSteps = 3;
  const test::ScratchFolder folder;
  const Reference reference = run_reference(folder.path(), GetParam(), kSteps);
  if (reference.exit_code == 77) GTEST_SKIP() << reference.output;
  ASSERT_EQ(reference.exit_code, 0) << reference.output;
  ASSERT_EQ(reference.losses.size(), static_cast<size_t>(kSteps)) << reference.output;
  const auto tensors = [&](const char* file) {
    return std::move(*models::read_safetensors(*read_file(folder / file)));
  };

  auto graph = std::make_shared<models::Graph>(*models::make_resnet18({.width = 32, .height = 32}));
  ASSERT_TRUE(models::set_weights(*graph, tensors("weights.safetensors")));
  TrainOptions options;
  options.batch = 4;
  options.threads = 1;
  options.optimizer = std::string_view(GetParam()) == "sgd" ? Optimizer::kSgd : Optimizer::kAdamW;
  auto trainer = engine->train(graph, options);
  ASSERT_TRUE(trainer) << trainer.error().to_string();
  const models::Safetensors batches = tensors("batches.safetensors");
  for (int i = 0; i < kSteps; ++i) {
    std::vector<Target> targets;
    for (const float label : batches.tensors.at("label_" + std::to_string(i)).values)
      targets.push_back({.class_id = static_cast<int>(label), .boxes = {}});
    const auto loss = (*trainer)->forward(batches.tensors.at("input_" + std::to_string(i)).values, targets);
    ASSERT_TRUE(loss) << loss.error().to_string();
    EXPECT_NEAR(*loss, reference.losses[static_cast<size_t>(i)], 2e-4 * reference.losses[static_cast<size_t>(i)]);
    ASSERT_TRUE((*trainer)->backward());
    ASSERT_TRUE((*trainer)->update(0.001));
  }
  const auto trained = (*trainer)->graph();
  ASSERT_TRUE(trained);
  // Of what the training changed. AdamW's first steps have the size of the learning rate whatever the gradient's: where
  // a gradient is all but nothing, its sign is chance.
  const double tolerance = options.optimizer == Optimizer::kAdamW ? 0.3 : 0.05;
  const models::Safetensors ours = models::weights_of(*trained), before = tensors("weights.safetensors"),
                            theirs = tensors("after.safetensors");
  for (const auto& [name, tensor] : ours.tensors) {
    const auto &wanted = theirs.tensors.at(name).values, &begun = before.tensors.at(name).values;
    double difference = 0, change = 0;
    for (size_t i = 0; i < wanted.size(); ++i) {
      difference += std::pow(tensor.values[i] - wanted[i], 2);
      change += std::pow(wanted[i] - begun[i], 2);
    }
    EXPECT_GT(change, 0) << name;
    EXPECT_LE(std::sqrt(difference), tolerance * std::sqrt(change)) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(Optimizers, AgainstPyTorch, testing::Values("adamw", "sgd"));

// A detector of bright squares on a dark 32 x 32 picture, small enough to be trained in a moment.
Result<models::Graph> square_detector() {
  models::ModuleBuilder builder("squares");
  models::LayerId x = builder.picture({}, 32);
  x = builder.convolution("a", x, {.channels = 8, .kernel = 3, .stride = 2, .pad = 1});
  x = builder.batch_norm("a.bn", x);
  x = builder.relu("a.relu", x);
  x = builder.convolution("b", x, {.channels = 16, .kernel = 3, .stride = 2, .pad = 1});
  x = builder.batch_norm("b.bn", x);
  x = builder.relu("b.relu", x);
  x = builder.convolution("c", x, {.channels = 16, .kernel = 3, .stride = 2, .pad = 1});
  x = builder.batch_norm("c.bn", x);
  x = builder.relu("c.relu", x);
  x = builder.convolution("out", x, {.channels = 2 * 7, .kernel = 1, .bias = true});
  builder.append("head", models::YoloHead{.anchors = {6, 6, 12, 12}, .classes = 2}, {x});
  return std::move(builder).finish();
}

// One picture: a square of class 0 (6 pixels, red) or 1 (12 pixels, green) somewhere.
TargetBox draw_square(uint32_t number, std::vector<float>& input) {
  const uint32_t mixed = number * 2654435761U;
  const int class_id = static_cast<int>(mixed >> 31);
  const int side = class_id == 0 ? 6 : 12;
  const int left = static_cast<int>((mixed >> 8) % static_cast<uint32_t>(32 - side));
  const int top = static_cast<int>((mixed >> 16) % static_cast<uint32_t>(32 - side));
  std::vector<float> picture(3 * 32 * 32, -1);
  for (int y = top; y < top + side; ++y)
    for (int x = left; x < left + side; ++x) picture[static_cast<size_t>((class_id * 32 + y) * 32 + x)] = 1;
  input.insert(input.end(), picture.begin(), picture.end());
  const auto half = static_cast<float>(side) / 2;
  return {class_id, static_cast<float>(left) + half, static_cast<float>(top) + half, static_cast<float>(side),
          static_cast<float>(side)};
}

class SquareDetector : public testing::TestWithParam<bool> {};

TEST_P(SquareDetector, FindsWhatItWasNeverShown) {
  const auto engine = torch_engine();
  REQUIRE_TORCH(engine);
  auto graph = std::make_shared<models::Graph>(*square_detector());
  ASSERT_TRUE(models::seed_weights(*graph, 1));
  TrainOptions options;
  options.batch = 16;
  options.threads = 1;
  options.mixed_precision = GetParam();
  auto trainer = engine->train(graph, options);
  ASSERT_TRUE(trainer) << trainer.error().to_string();
  uint32_t number = 0;
  double first = 0, last = 0;
  for (int step = 0; step < 250; ++step) {
    std::vector<float> input;
    std::vector<Target> targets;
    for (int item = 0; item < 16; ++item) {
      TargetBox box = draw_square(++number, input);
      targets.push_back({.class_id = -1, .boxes = {box}});
    }
    const auto loss = (*trainer)->forward(input, targets);
    ASSERT_TRUE(loss) << loss.error().to_string();
    if (step == 0) first = *loss;
    last = *loss;
    ASSERT_TRUE((*trainer)->backward());
    ASSERT_TRUE((*trainer)->update(step < 200 ? 0.01 : 0.002));
  }
  EXPECT_LT(last, first / 5);

  const auto trained = (*trainer)->graph();
  ASSERT_TRUE(trained);
  EXPECT_TRUE(trained->trained);
  auto network = engine->load(std::make_shared<const models::Graph>(*trained), {});
  ASSERT_TRUE(network) << network.error().to_string();
  auto session = (*network)->create_session();
  ASSERT_TRUE(session);
  const auto decoder = models::YoloDecoder::create(*trained, {});
  ASSERT_TRUE(decoder);
  int found = 0;
  constexpr int kShown = 50;
  for (int i = 0; i < kShown; ++i) {
    std::vector<float> input;
    const TargetBox box = draw_square(1'000'000 + static_cast<uint32_t>(i), input);
    std::vector<float> output(static_cast<size_t>((*network)->outputs()[0].elements()));
    const float* in = input.data();
    float* out = output.data();
    ASSERT_TRUE((*session)->run(std::span(&in, 1), std::span(&out, 1)));
    const float* map = output.data();
    const auto boxes = decoder->decode(std::span(&map, 1), {0, 0, 32, 32, 32, 32});
    if (boxes.size() == 1 && boxes[0].class_id == box.class_id &&
        std::abs(boxes[0].x + boxes[0].width / 2 - box.x) < 1.5F && std::abs(boxes[0].width - box.width) < 2.5F)
      ++found;
  }
  EXPECT_GE(found, 45) << "of " << kShown;
}

INSTANTIATE_TEST_SUITE_P(Precisions, SquareDetector, testing::Bool());

TEST(Training, GoesOnFromItsStateAsIfNothingHadHappened) {
  const auto engine = torch_engine();
  REQUIRE_TORCH(engine);
  auto graph = std::make_shared<models::Graph>(*square_detector());
  ASSERT_TRUE(models::seed_weights(*graph, 1));
  const auto step = [](Trainer& trainer, uint32_t number) {
    std::vector<float> input;
    const TargetBox box = draw_square(number, input);
    const Target target{.class_id = -1, .boxes = {box}};
    const double loss = *trainer.forward(input, std::span(&target, 1));
    EXPECT_TRUE(trainer.backward());
    EXPECT_TRUE(trainer.update(0.01));
    return loss;
  };
  TrainOptions options;
  options.threads = 1;
  auto whole = engine->train(graph, options);
  auto first = engine->train(graph, options);
  ASSERT_TRUE(whole && first);
  for (uint32_t i = 0; i < 3; ++i) EXPECT_EQ(step(**whole, i), step(**first, i));
  auto second = engine->train(std::make_shared<const models::Graph>(*(*first)->graph()), options);
  ASSERT_TRUE(second);
  ASSERT_TRUE((*second)->set_optimizer_state(*(*first)->optimizer_state()));
  for (uint32_t i = 3; i < 6; ++i) EXPECT_EQ(step(**whole, i), step(**second, i));
}

TEST(Training, SaysWhatItCannotTrain) {
  const auto engine = torch_engine();
  REQUIRE_TORCH(engine);
  auto graph = std::make_shared<models::Graph>(*square_detector());
  ASSERT_TRUE(models::seed_weights(*graph, 1));
  auto trainer = engine->train(graph, {});
  ASSERT_TRUE(trainer);
  std::vector<float> input(3 * 32 * 32);
  const Target wrong{.class_id = -1, .boxes = {{.class_id = 2, .x = 1, .y = 1, .width = 1, .height = 1}}};
  const auto loss = (*trainer)->forward(input, std::span(&wrong, 1));
  ASSERT_FALSE(loss);
  EXPECT_THAT(loss.error().to_string(), HasSubstr("class 2, the network has 2 classes"));
  if (auto opencv = open_engine("opencv")) {
    const auto refused = (*opencv)->train(graph, {});
    ASSERT_FALSE(refused);
    EXPECT_THAT(refused.error().to_string(), HasSubstr("engine opencv does not train"));
  }
}

}  // namespace
}  // namespace strobe::engines
