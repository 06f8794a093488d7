#include "analyze/steps.h"

#include <gmock/gmock.h>

#include "trace/timeline_maker.h"

namespace strobe::analyze {
namespace {

using test::TimelineMaker;
using testing::ElementsAre;

constexpr int64_t kMs = 1'000'000;

std::vector<std::optional<double>> row(const Table& table, size_t at) {
  std::vector<std::optional<double>> values;
  for (const Column& column : table.columns()) values.push_back(table.number(at, column.name));
  return values;
}

// Two batches of two frames: read 2 ms and prep 1 ms a frame; the first is taken by the network from 10 to 14, the
// second one, which was read later, from 14 to 20.
TimelineMaker two_batches(const char* network) {
  TimelineMaker maker;
  maker.timeline.facts["pipeline.stages"] = std::string("read,prep,") + network;
  const int32_t main = maker.lane(1, "main"), read = maker.lane(2, "read"), prep = maker.lane(3, "prep"),
                exec = maker.lane(4, network);
  maker.range("run", main, 0, 30 * kMs);
  for (int64_t frame = 0; frame < 4; ++frame) {
    maker.range("read", read, 2 * frame * kMs, 2 * (frame + 1) * kMs, frame);
    maker.range("prep", prep, (2 * frame + 2) * kMs, (2 * frame + 3) * kMs, frame);
  }
  maker.argument(maker.range(network, exec, 10 * kMs, 14 * kMs, 0), "also_frame", int64_t{1});
  maker.argument(maker.range(network, exec, 14 * kMs, 20 * kMs, 2), "also_frame", int64_t{3});
  return maker;
}

TEST(Steps, OneRowABatchWithTheTimesOfItsFrames) {
  const Table table = steps(two_batches("infer").finish());
  ASSERT_EQ(table.columns().size(), 5U);
  ASSERT_EQ(table.row_count(), 2U);
  EXPECT_THAT(row(table, 0), ElementsAre(0, 4, 2, 4, 14));
  EXPECT_THAT(row(table, 1), ElementsAre(1, 4, 2, 6, 16));
}

TEST(Steps, OfTrainingHaveTheirLoss) {
  TimelineMaker maker = two_batches("train");
  maker.counter("loss", 1, 13 * kMs, 2.5);
  maker.counter("loss", 1, 19 * kMs, 1.25);
  const Table table = steps(maker.finish());
  EXPECT_THAT(row(table, 0), ElementsAre(0, 4, 2, 4, 14, 2.5));
  EXPECT_THAT(row(table, 1), ElementsAre(1, 4, 2, 6, 16, 1.25));
}

TEST(Steps, WithoutAPipelineThereAreNone) {
  TimelineMaker maker;
  maker.range("something", maker.lane(1, "main"), 0, kMs);
  EXPECT_EQ(steps(maker.finish()).row_count(), 0U);
}

}  // namespace
}  // namespace strobe::analyze
