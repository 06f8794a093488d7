#include "bench/run_benchmark.h"

#include <gtest/gtest.h>

#include "analyze/device_maker.h"
#include "base/file.h"
#include "bench/read.h"
#include "support/test_data.h"

namespace strobe::bench {
namespace {

constexpr int64_t kMs = 1'000'000;

// Six frames, two an inference, the stages at the same time:
//   read  0-5 5-10 ...       infer 10-30 30-50 50-70       post 30-31 31-32, 50-51 51-52, 70-71 71-72
trace::Timeline six_frames() {
  test::DeviceMaker maker;
  maker.timeline.facts["pipeline.stages"] = "read,infer,post";
  const int32_t main = maker.lane(1, "main"), read = maker.lane(2, "read"), infer = maker.lane(3, "infer"),
                post = maker.lane(4, "post"), stream = maker.stream(7);
  maker.range("run", main, 0, 80 * kMs);
  for (int64_t i = 0; i < 6; ++i) maker.range("read", read, 5 * i * kMs, 5 * (i + 1) * kMs, i);
  for (int64_t i = 0; i < 3; ++i) {
    const int64_t start = 10 + 20 * i;
    const int32_t batch = maker.range("infer", infer, start * kMs, (start + 20) * kMs, 2 * i);
    maker.argument(batch, "also_frame", 2 * i + 1);
    const int32_t call = maker.api("cudaLaunchKernel", infer, (start + 1) * kMs, (start + 2) * kMs);
    maker.kernel("conv", stream, (start + 3) * kMs, (start + 15) * kMs, call);
    for (int64_t k = 0; k < 2; ++k)
      maker.range("post", post, (start + 20 + k) * kMs, (start + 21 + k) * kMs, 2 * i + k);
  }
  return maker.finish();
}

TEST(RunBenchmark, BatchesAreInferencesAndTheirTimesAddUp) {
  const auto ranges = run_ranges(six_frames());
  ASSERT_TRUE(ranges) << ranges.error().to_string();
  const Json data = data_of(*ranges, {1, 1}, Rules::kStrobe)["strobe_run"]["run_sample"];
  EXPECT_EQ(data["cpu_time"], 80.0);
  const Json& pipeline = data["pipeline"];
  EXPECT_EQ(pipeline["cpu_time"], 72.0);
  EXPECT_EQ(pipeline["total_items"], 6);
  // Ends: 32, 52, 72.
  EXPECT_EQ(pipeline["batch_0"]["cpu_time"], 32.0);
  EXPECT_EQ(pipeline["batch_1"]["cpu_time"], 20.0);
  EXPECT_EQ(pipeline["batch_1"]["cpu_time_per_item"], 10.0);
  EXPECT_EQ(pipeline["batch_1"]["read"]["cpu_time"], 10.0);
  EXPECT_EQ(pipeline["batch_1"]["infer"]["cpu_time"], 20.0);
  EXPECT_EQ(pipeline["batch_1"]["post"]["cpu_time"], 2.0);
  EXPECT_EQ(pipeline["batch_1"]["gpu_time"], 12.0);
  EXPECT_EQ(pipeline["batch_1"]["infer"]["gpu_time"], 12.0);
  EXPECT_EQ(pipeline["batch_1"]["read"]["gpu_time"], 0.0);
  EXPECT_EQ(pipeline["cpu_time_minus_warmup"], 20.0);
  EXPECT_EQ(pipeline["cpu_time_minus_warmup_per_item"], 10.0);
}

TEST(RunBenchmark, WritesAFileThatReadsBack) {
  const test::ScratchFolder folder;
  const auto written =
      write_run_benchmark(six_frames(), {1, 1}, folder.path(), Json{{"device", {{"id", 0}, {"name", "CPU"}}}});
  ASSERT_TRUE(written) << written.error().to_string();
  const auto read = read_benchmark(*read_file(folder / "benchmark.json"));
  ASSERT_TRUE(read) << read.error().to_string();
  EXPECT_EQ(read->obj_name, "strobe_run");
  EXPECT_EQ(read->ranges.size(), run_ranges(six_frames())->size());
}

TEST(RunBenchmark, WithoutARunThereIsNone) {
  test::TimelineMaker maker;
  maker.range("read", maker.lane(1), 0, 5, 0);
  const trace::Timeline timeline = maker.finish();
  EXPECT_EQ(run_ranges(timeline).error().kind(), ErrorKind::kBadData);
}

}  // namespace
}  // namespace strobe::bench
