// Sessions at the same time, precisions, and requests that an engine must refuse.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

#include "engines/engine_case.h"
#include "models/model.h"

namespace strobe::engines {
namespace {

using test::GraphPtr;
using test::Values;
using testing::HasSubstr;
using testing::Not;

// Large enough that an engine splits its work among threads.
GraphPtr detector() {
  auto graph = models::open_graph("yolov4-tiny", {.width = 96, .height = 96});
  if (!graph) throw std::logic_error(graph.error().to_string());
  return std::make_shared<const models::Graph>(*std::move(graph));
}

std::string fact(const Network& network, const std::string& key) {
  for (const auto& [name, value] : network.facts()) {
    if (name == key) return value;
  }
  return "";
}

class Sessions : public test::EachEngine {
 protected:
  std::string failure(const ModelSource& source, const LoadOptions& options, ErrorKind kind) {
    const auto network = engine().load(source, options);
    if (network) return "loaded";
    EXPECT_EQ(network.error().kind(), kind) << network.error().to_string();
    EXPECT_THAT(network.error().to_string(), Not(HasSubstr("\n")));
    return network.error().to_string();
  }
};

TEST_P(Sessions, AtTheSameTimeGiveWhatOneGives) {
  constexpr int kThreads = 4;
  constexpr int kRuns = 5;
  const auto graph = detector();
  const int64_t count = 2 * graph->input_shape().elements();
  std::vector<Values> inputs;
  for (uint32_t i = 0; i < kThreads; ++i) inputs.push_back(test::random_values(count, i));

  LoadOptions options{.batch = 2, .sessions = kThreads, .threads_per_session = 1, .hint = Hint::kThroughput};
  const auto network = engine().load(graph, options);
  ASSERT_TRUE(network) << network.error().to_string();
  std::vector<std::vector<Values>> expected;
  for (const auto& input : inputs) {
    auto outputs = test::run_once(**network, input);
    ASSERT_TRUE(outputs) << outputs.error().to_string();
    expected.push_back(*std::move(outputs));
  }
  EXPECT_GT(test::difference(expected[0], expected[1]), 1e-3) << "inputs that differ must give what differs";

  std::vector<double> largest(kThreads);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      const auto session = (*network)->create_session();
      if (!session) return void(largest[static_cast<size_t>(t)] = 1e9);
      for (int run = 0; run < kRuns; ++run) {
        const auto which = static_cast<size_t>((t + run) % kThreads);
        const auto outputs = test::run_on(**session, **network, inputs[which]);
        const double found = outputs ? test::difference(*outputs, expected[which]) : 1e9;
        largest[static_cast<size_t>(t)] = std::max(largest[static_cast<size_t>(t)], found);
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(*std::max_element(largest.begin(), largest.end()), 0.0) << "same order of additions, same bits";
}

TEST_P(Sessions, ThreadsAndHintDoNotChangeTheResult) {
  const auto graph = detector();
  const auto input = test::random_values(graph->input_shape().elements(), 3);
  std::vector<std::vector<Values>> results;
  for (const Hint hint : {Hint::kLatency, Hint::kThroughput}) {
    for (const int threads : {1, 2, 3}) {
      const auto network = engine().load(graph, {.sessions = 1, .threads_per_session = threads, .hint = hint});
      ASSERT_TRUE(network) << network.error().to_string();
      auto outputs = test::run_once(**network, input);
      ASSERT_TRUE(outputs) << outputs.error().to_string();
      results.push_back(*std::move(outputs));
      EXPECT_LE(test::difference(results.back(), results.front()), 1e-5);
    }
  }
}

TEST_P(Sessions, ANetworkOutlivesTheGraphsOwner) {
  // The plugin must hold what it shares weights with, and a session what its network has.
  auto graph = detector();
  const auto input = test::random_values(graph->input_shape().elements(), 4);
  auto network = engine().load(graph, {});
  ASSERT_TRUE(network) << network.error().to_string();
  const auto before = test::run_once(**network, input);
  ASSERT_TRUE(before);
  const std::weak_ptr<const models::Graph> watched = graph;
  graph.reset();
  const auto session = (*network)->create_session();
  ASSERT_TRUE(session);
  const auto after = test::run_on(**session, **network, input);
  ASSERT_TRUE(after);
  EXPECT_EQ(test::difference(*after, *before), 0.0);
}

TEST_P(Sessions, ASessionOutlivesItsNetwork) {
  const auto graph = detector();
  const auto input = test::random_values(graph->input_shape().elements(), 4);
  auto network = engine().load(graph, {});
  ASSERT_TRUE(network) << network.error().to_string();
  const auto expected = test::run_once(**network, input);
  ASSERT_TRUE(expected);
  const auto session = (*network)->create_session();
  ASSERT_TRUE(session);
  std::vector<Values> outputs;
  std::vector<float*> pointers;
  for (const auto& info : (*network)->outputs()) outputs.emplace_back(static_cast<size_t>(info.elements()));
  for (auto& output : outputs) pointers.push_back(output.data());
  network->reset();
  const float* in = input.data();
  const auto ran = (*session)->run(std::span(&in, 1), pointers);
  ASSERT_TRUE(ran) << ran.error().to_string();
  EXPECT_EQ(test::difference(outputs, *expected), 0.0);
}

TEST_P(Sessions, TheWrongNumberOfBuffersIsAnError) {
  const auto graph = detector();
  const auto network = engine().load(graph, {});
  ASSERT_TRUE(network) << network.error().to_string();
  const auto session = (*network)->create_session();
  ASSERT_TRUE(session);
  const auto input = test::random_values(graph->input_shape().elements(), 1);
  const float* inputs[] = {input.data(), input.data()};
  Values output(static_cast<size_t>((*network)->outputs()[0].elements()));
  float* outputs[] = {output.data()};
  const auto few = (*session)->run(std::span(inputs, 1), outputs);
  ASSERT_FALSE(few);
  EXPECT_THAT(few.error().to_string(), HasSubstr("1 inputs and 1 outputs; the network has 1 and 2"));
  EXPECT_FALSE((*session)->run(std::span(inputs, 2), outputs));
  EXPECT_FALSE((*session)->run({}, {}));
}

TEST_P(Sessions, RefuseWhatCannotBe) {
  const auto graph = detector();
  EXPECT_THAT(failure(graph, {.batch = 0}, ErrorKind::kUsage), HasSubstr("batch 0"));
  EXPECT_THAT(failure(graph, {.sessions = 0}, ErrorKind::kUsage), HasSubstr("sessions 0"));
  EXPECT_THAT(failure(graph, {.variant = "nonsense"}, ErrorKind::kUsage), HasSubstr("nonsense"));
  EXPECT_THAT(failure(graph, {.input_shape = {3, 96, 96}}, ErrorKind::kUsage), HasSubstr("3x96x96"));
}

TEST_P(Sessions, ANetworkThatComputesNothingIsCopiedOrRefused) {
  test::Sketch sketch({3, 4, 5});
  sketch.add(models::Dropout{});
  sketch.add(models::Activation{models::ActivationKind::kLinear});
  const auto graph = sketch.finish();
  const auto network = engine().load(graph, {});
  if (!network) {
    EXPECT_EQ(network.error().kind(), ErrorKind::kUnsupported);
    EXPECT_THAT(network.error().to_string(), HasSubstr("sketch: every output is an input"));
    return;
  }
  const auto input = test::random_values(60, 1);
  const auto outputs = test::run_once(**network, input);
  ASSERT_TRUE(outputs) << outputs.error().to_string();
  EXPECT_EQ(outputs->front(), input);
}

TEST_P(Sessions, PrecisionsThatTheEngineLacksAreRefusedWithThoseThatItHas) {
  const auto graph = detector();
  const auto has = engine().precisions();
  ASSERT_FALSE(has.empty());
  EXPECT_EQ(has.front(), Precision::kF32);
  for (const auto precision : {Precision::kBf16, Precision::kF16, Precision::kInt8}) {
    if (std::find(has.begin(), has.end(), precision) != has.end()) continue;
    EXPECT_THAT(failure(graph, {.precision = precision}, ErrorKind::kUnsupported),
                testing::AllOf(HasSubstr("does not run " + std::string(to_string(precision))), HasSubstr("f32")));
  }
}

TEST_P(Sessions, Int8NeedsAQuantisedModel) {
  const auto has = engine().precisions();
  if (std::find(has.begin(), has.end(), Precision::kInt8) == has.end()) GTEST_SKIP() << GetParam() << " has no i8";
  EXPECT_THAT(failure(detector(), {.precision = Precision::kInt8}, ErrorKind::kUnsupported),
              testing::AllOf(HasSubstr("yolov4-tiny"), HasSubstr("quantised")));
}

TEST_P(Sessions, Bfloat16IsNearFloat32) {
  const auto has = engine().precisions();
  if (std::find(has.begin(), has.end(), Precision::kBf16) == has.end()) {
    GTEST_SKIP() << GetParam() << " has no bf16 on this CPU";
  }
  const auto graph = detector();
  const auto input = test::random_values(2 * graph->input_shape().elements(), 5);
  const auto full = engine().load(graph, {.batch = 2});
  const auto half = engine().load(graph, {.batch = 2, .precision = Precision::kBf16});
  ASSERT_TRUE(full && half);
  EXPECT_EQ(fact(**full, "precision"), "f32");
  EXPECT_EQ(fact(**half, "precision"), "bf16");
  const auto expected = test::run_once(**full, input);
  const auto outputs = test::run_once(**half, input);
  ASSERT_TRUE(expected && outputs);
  const double found = test::difference(*outputs, *expected);
  RecordProperty("difference", std::to_string(found));
  EXPECT_LE(found, 0.05) << "8 bits of mantissa, 21 convolutions deep";
  EXPECT_GE(found, 1e-4) << "nothing was computed in bf16";
}
STROBE_FOR_EACH_ENGINE(Sessions);

}  // namespace
}  // namespace strobe::engines
