#include "bench/timeline_times.h"

#include <gtest/gtest.h>

#include "analyze/device_maker.h"

namespace strobe::bench {
namespace {

constexpr int64_t kMs = 1'000'000;

RangeTimes wanted() {
  return {{.path = "demo/run/batch_0/infer", .inside = true},
          {.path = "demo/run/batch_0", .batch = BatchMark{0, 4}},
          {.path = "demo/run"},
          {.path = "demo/absent"}};
}

TEST(TimelineTimes, PathsAreThoseOfThreadsAndTheGpuIsProjected) {
  test::DeviceMaker maker;
  const int32_t thread = maker.lane(1, "main"), stream = maker.stream(7);
  maker.range("run", thread, 0, 100 * kMs);
  maker.range("batch_0", thread, 10 * kMs, 40 * kMs);
  maker.op("aten::conv2d", thread, 15 * kMs, 30 * kMs);  // lies between two ranges of the program
  maker.range("infer", thread, 16 * kMs, 26 * kMs);
  const int32_t first = maker.api("cudaLaunchKernel", thread, 17 * kMs, 18 * kMs);
  const int32_t second = maker.api("cudaLaunchKernel", thread, 27 * kMs, 28 * kMs);
  maker.kernel("conv", stream, 20 * kMs, 32 * kMs, first);
  maker.kernel("relu", stream, 35 * kMs, 45 * kMs, second);
  maker.range("infer", thread, 50 * kMs, 60 * kMs);  // another path: not inside the batch
  const trace::Timeline timeline = maker.finish();
  RangeTimes ranges = wanted();
  const Filled filled = fill_times(ranges, timeline, true);
  EXPECT_EQ(filled.found, 3U);
  EXPECT_TRUE(filled.device);
  EXPECT_DOUBLE_EQ(ranges[0].cpu_ms, 10);
  EXPECT_DOUBLE_EQ(ranges[1].cpu_ms, 30);
  EXPECT_DOUBLE_EQ(ranges[2].cpu_ms, 100);
  EXPECT_DOUBLE_EQ(ranges[3].cpu_ms, 0);
  // What was launched inside, the gap between included; the kernel outlives its range.
  EXPECT_DOUBLE_EQ(ranges[0].gpu_ms, 12);
  EXPECT_DOUBLE_EQ(ranges[1].gpu_ms, 25);
}

TEST(TimelineTimes, TheLastOfAThreadAndTheMeanOfThreads) {
  test::TimelineMaker maker;
  const int32_t one = maker.lane(1), two = maker.lane(2);
  maker.range("run", one, 0, 5 * kMs);
  maker.range("run", one, 10 * kMs, 20 * kMs);
  maker.range("run", two, 0, 40 * kMs);
  const trace::Timeline timeline = maker.finish();
  RangeTimes ranges{{.path = "demo/run", .cpu_ms = 3}};
  EXPECT_FALSE(fill_times(ranges, timeline, false).device);
  EXPECT_DOUBLE_EQ(ranges[0].cpu_ms, 3);
  fill_times(ranges, timeline, true);
  EXPECT_DOUBLE_EQ(ranges[0].cpu_ms, 25);
}

}  // namespace
}  // namespace strobe::bench
