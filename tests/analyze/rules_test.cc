#include "analyze/rules.h"

#include <gmock/gmock.h>

#include "analyze/device_maker.h"

namespace strobe::analyze {
namespace {

using test::DeviceMaker;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr int64_t kUs = 1000;

TEST(Rules, CallsAndGaps) {
  DeviceMaker maker;
  const int32_t thread = maker.lane(1), stream = maker.stream(7);
  maker.range("load batch", thread, 100 * kUs, 1500 * kUs);
  const int32_t first = maker.api("cudaLaunchKernel", thread, 0, 5 * kUs);
  const int32_t copy = maker.api("cudaMemcpyAsync", thread, 1600 * kUs, 1610 * kUs);
  maker.api("cudaMemcpy", thread, 1700 * kUs, 1950 * kUs);
  maker.api("cudaMemcpy", thread, 1960 * kUs, 2010 * kUs);
  maker.api("cudaStreamSynchronize", thread, 2020 * kUs, 2120 * kUs);
  maker.kernel("k", stream, 10 * kUs, 200 * kUs, first);
  maker.copy(1, 0, 2, 100, stream, 1620 * kUs, 1700 * kUs, copy);  // after 1420 us of nothing
  const Table table = rules(maker.finish(), {});
  ASSERT_EQ(table.row_count(), 4U);
  EXPECT_EQ(table.text(0, "rule"), "device_gap");
  EXPECT_EQ(table.text(0, "where"), "the host: in load batch");  // half way from 200 to 1600
  EXPECT_EQ(*table.number(0, "ns"), 1420 * kUs);
  EXPECT_EQ(table.text(1, "rule"), "sync_copy");
  EXPECT_EQ(*table.number(1, "count"), 2);
  EXPECT_EQ(*table.number(1, "ns"), 300 * kUs);
  EXPECT_NEAR(*table.number(1, "share"), 300.0 / 2120, 1e-12);
  EXPECT_EQ(table.text(2, "rule"), "host_sync");
  EXPECT_EQ(table.text(2, "where"), "cudaStreamSynchronize");
  EXPECT_EQ(table.text(3, "rule"), "pageable_async");
  EXPECT_EQ(*table.number(3, "ns"), 80 * kUs);
  EXPECT_FALSE(table.text(3, "next_step").empty());
}

TEST(Rules, SmallKernels) {
  DeviceMaker maker;
  const int32_t stream = maker.stream(7);
  for (int64_t i = 0; i < 120; ++i) maker.kernel("tiny", stream, 20 * kUs * i, (20 * i + 5) * kUs);
  maker.kernel("large", stream, 3000 * kUs, 4000 * kUs);
  const trace::Timeline timeline = maker.finish();
  const Table table = rules(timeline, {});
  const auto row = test::row_with(table, "rule", "small_kernels");
  ASSERT_TRUE(row);
  EXPECT_EQ(*table.number(*row, "count"), 120);
  EXPECT_EQ(*table.number(*row, "ns"), 119 * 15 * kUs);  // the idle time before each but the first
  EXPECT_THAT(table.text(*row, "where"), HasSubstr("most often tiny"));
  RulesOptions strict;
  strict.small_kernel_ns = 5 * kUs;  // none takes less
  EXPECT_FALSE(test::row_with(rules(timeline, strict), "rule", "small_kernels"));
}

TEST(Rules, APipelineThatStarvesInferenceOnTooFewCores) {
  DeviceMaker maker;
  maker.timeline.facts["pipeline.stages"] = "read,infer";
  maker.timeline.facts["cores"] = "1";
  const int32_t main = maker.lane(1), reader = maker.lane(2), worker = maker.lane(3);
  maker.range("run", main, 0, 1000 * kUs);
  for (int64_t i = 0; i < 10; ++i) {
    maker.range("read", reader, 100 * i * kUs, (100 * i + 90) * kUs, i);
    maker.range("infer", worker, (100 * i + 50) * kUs, (100 * i + 90) * kUs, i);  // 40 of 100, beside read
  }
  const Table table = rules(maker.finish(), {});
  ASSERT_EQ(table.row_count(), 2U);
  EXPECT_EQ(table.text(0, "rule"), "starved_stage");
  EXPECT_EQ(*table.number(0, "ns"), 600 * kUs);
  EXPECT_THAT(table.text(0, "where"), HasSubstr("infer idles 60 % of the run; the busiest stage is read"));
  EXPECT_EQ(table.text(1, "rule"), "oversubscribed");
  EXPECT_EQ(*table.number(1, "ns"), 400 * kUs);
  EXPECT_THAT(rules(trace::Timeline(), {}).notes, ElementsAre("no rule found anything"));
}

}  // namespace
}  // namespace strobe::analyze
