#include "analyze/kernel_metrics.h"

#include <gmock/gmock.h>

#include "analyze/device_maker.h"

namespace strobe::analyze {
namespace {

using test::DeviceMaker;
using test::row_with;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;

// A sample each 100 ns from 0 on: sm_busy is the sample's number, tensor ten times that.
struct WithCounters : DeviceMaker {
  int32_t host = lane(1), seven = stream(7), eight = stream(8);
  void samples(int count, int from = 0, int gpu = 0) {
    const std::string prefix = "gpu." + std::to_string(gpu) + ".";
    for (int i = from; i < count; ++i) {
      counter(prefix + "sm_busy_percent", 1, i * 100, i);
      counter(prefix + "tensor_percent", 1, i * 100, 10.0 * i);
    }
  }
  void stage(const std::string& tenant, const std::string& name, int32_t lane, int64_t start, int64_t end) {
    range(name, lane, start, end, 0);
    timeline.ranges.categorize_last(timeline.strings.intern(tenant), timeline.strings.intern("strobe.tenant"));
  }
};

Table by(const trace::Timeline& timeline, KernelsBy by) {
  return kernel_metrics(timeline, {.by = by, .top = 0, .filter = {}});
}

TEST(KernelMetrics, OfALongKernelTheSamplesInsideAreMeant) {
  WithCounters maker;
  maker.samples(20);
  maker.kernel("gemm", maker.seven, 250, 850);  // whole: samples 3 to 7
  const Table table = by(maker.finish(), KernelsBy::kName);
  ASSERT_EQ(table.row_count(), 1U);
  EXPECT_EQ(table.text(0, "name"), "gemm");
  EXPECT_EQ(*table.number(0, "gpu"), 0);
  EXPECT_EQ(*table.number(0, "device_ns"), 600);
  EXPECT_EQ(*table.number(0, "alone_share"), 1);
  EXPECT_EQ(*table.number(0, "samples"), 5);
  EXPECT_EQ(*table.number(0, "filled_share"), 1);
  EXPECT_DOUBLE_EQ(*table.number(0, "sm_busy_percent"), 5);
  EXPECT_DOUBLE_EQ(*table.number(0, "tensor_percent"), 50);
  EXPECT_THAT(table.notes, Contains(HasSubstr("GPU 0: 20 samples, one each 0.1 us")));
}

TEST(KernelMetrics, WhileOthersRunAtOnceTheyBelongToNobodyAlone) {
  WithCounters maker;
  maker.samples(20);
  maker.kernel("gemm", maker.seven, 200, 1000);
  maker.kernel("relu", maker.eight, 600, 1400);
  const Table table = by(maker.finish(), KernelsBy::kName);
  ASSERT_EQ(table.row_count(), 2U);
  const auto gemm = *row_with(table, "name", "gemm"), relu = *row_with(table, "name", "relu");
  EXPECT_EQ(*table.number(gemm, "device_ns"), 800);
  EXPECT_EQ(*table.number(gemm, "alone_share"), 0.5);
  EXPECT_EQ(*table.number(gemm, "samples"), 4);  // 2 to 5
  EXPECT_DOUBLE_EQ(*table.number(gemm, "sm_busy_percent"), 3.5);
  EXPECT_EQ(*table.number(relu, "alone_share"), 0.5);
  EXPECT_DOUBLE_EQ(*table.number(relu, "sm_busy_percent"), 11.5);  // 10 to 13
}

TEST(KernelMetrics, ACopyAtTheSameTimeIsOtherWork) {
  WithCounters maker;
  maker.samples(20);
  maker.kernel("gemm", maker.seven, 200, 1000);
  maker.copy(1, 1, 2, 4000, maker.eight, 400, 800);
  const Table table = by(maker.finish(), KernelsBy::kName);
  ASSERT_EQ(table.row_count(), 1U);  // the copy is no kernel
  EXPECT_EQ(*table.number(0, "alone_share"), 0.5);
  EXPECT_EQ(*table.number(0, "samples"), 4);
  EXPECT_DOUBLE_EQ(*table.number(0, "sm_busy_percent"), (2 + 3 + 8 + 9) / 4.0);
}

TEST(KernelMetrics, ShortKernelsTogetherAreMeansOfWhatTheyHaveAPartOf) {
  WithCounters maker;
  maker.samples(60);
  // 40 of each sample's 100 ns, of samples 10 to 39: 30 runs, 1200 ns of 3000.
  for (int i = 10; i < 40; ++i) maker.kernel("short", maker.seven, i * 100 + 30, i * 100 + 70);
  // 9 periods together are too little.
  for (int i = 45; i < 54; ++i) maker.kernel("rare", maker.seven, i * 100 + 10, i * 100 + 95);
  maker.kernel("once", maker.seven, 5500, 5650);
  const Table table = by(maker.finish(), KernelsBy::kName);
  const auto row = *row_with(table, "name", "short");
  EXPECT_EQ(*table.number(row, "count"), 30);
  EXPECT_EQ(*table.number(row, "samples"), 30);
  EXPECT_DOUBLE_EQ(*table.number(row, "filled_share"), 0.4);
  EXPECT_DOUBLE_EQ(*table.number(row, "sm_busy_percent"), 24.5);
  for (const char* name : {"rare", "once"}) {
    const auto without = *row_with(table, "name", name);
    EXPECT_FALSE(table.number(without, "sm_busy_percent")) << name;
    EXPECT_FALSE(table.number(without, "filled_share")) << name;
  }
  EXPECT_EQ(*table.number(*row_with(table, "name", "rare"), "samples"), 9);
  EXPECT_THAT(table.notes, Contains(HasSubstr("1 row's runs are shorter than the sampling")));
  EXPECT_THAT(table.notes, Contains(HasSubstr("2 rows have too few samples")));
}

TEST(KernelMetrics, PartsOfSamplesCountByTheirTime) {
  WithCounters maker;
  maker.samples(60);
  // Of samples 0, 2, 4, ... a quarter, of 1, 3, 5, ... three quarters: 20 times 25 and 75 ns.
  for (int i = 0; i < 40; ++i) maker.kernel("uneven", maker.seven, i * 100, i * 100 + (i % 2 == 0 ? 25 : 75));
  const Table table = by(maker.finish(), KernelsBy::kName);
  EXPECT_DOUBLE_EQ(*table.number(0, "filled_share"), 0.5);
  // Even ones sum to 380, odd ones to 400: (25 * 380 + 75 * 400) / 2000.
  EXPECT_DOUBLE_EQ(*table.number(0, "sm_busy_percent"), 19.75);
}

TEST(KernelMetrics, RunsThatFollowEachOtherFillSamplesTogether) {
  WithCounters maker;
  maker.samples(20);
  for (int i = 0; i < 12; ++i) maker.kernel("tile", maker.seven, 200 + 50 * i, 250 + 50 * i);
  const Table table = by(maker.finish(), KernelsBy::kName);
  EXPECT_EQ(*table.number(0, "device_ns"), 600);
  EXPECT_EQ(*table.number(0, "samples"), 6);
  EXPECT_EQ(*table.number(0, "filled_share"), 1);
  EXPECT_DOUBLE_EQ(*table.number(0, "sm_busy_percent"), 4.5);
}

TEST(KernelMetrics, ByStageAndTenantCopiesBelongToThem) {
  WithCounters maker;
  const int32_t other = maker.lane(2);
  maker.timeline.processes.push_back({100, maker.timeline.strings.intern("strobe run")});
  maker.timeline.facts["tenant.a.pid"] = maker.timeline.facts["tenant.b.pid"] = "100";
  maker.samples(40);
  maker.stage("a", "infer", maker.host, 0, 900);
  maker.stage("b", "infer", other, 0, 900);
  const auto call = [&](const char* name, int32_t lane, int64_t at) { return maker.api(name, lane, at, at + 10); };
  maker.copy(1, 1, 2, 4000, maker.seven, 200, 600, call("cudaMemcpyAsync", maker.host, 10));
  maker.kernel("gemm", maker.seven, 600, 1400, call("cudaLaunchKernel", maker.host, 30));
  maker.kernel("relu", maker.eight, 1000, 2000, call("cudaLaunchKernel", other, 50));
  const trace::Timeline timeline = maker.finish();
  const Table table = by(timeline, KernelsBy::kTenant);
  ASSERT_EQ(table.row_count(), 2U);
  const auto a = *row_with(table, "tenant", "a"), b = *row_with(table, "tenant", "b");
  EXPECT_EQ(*table.number(a, "count"), 2);
  EXPECT_EQ(*table.number(a, "device_ns"), 1200);
  EXPECT_DOUBLE_EQ(*table.number(a, "alone_share"), 800 / 1200.0);
  EXPECT_DOUBLE_EQ(*table.number(a, "sm_busy_percent"), 5.5);  // 2 to 9
  EXPECT_DOUBLE_EQ(*table.number(b, "alone_share"), 0.6);
  EXPECT_DOUBLE_EQ(*table.number(b, "sm_busy_percent"), 16.5);  // 14 to 19
  // Both are the same stage: then they run alone all the time.
  const Table stages = by(timeline, KernelsBy::kStage);
  ASSERT_EQ(stages.row_count(), 1U);
  EXPECT_EQ(stages.text(0, "stage"), "infer");
  EXPECT_EQ(*stages.number(0, "alone_share"), 1);
  EXPECT_DOUBLE_EQ(*stages.number(0, "sm_busy_percent"), 10.5);  // 2 to 19
}

TEST(KernelMetrics, AGapInTheSamplesIsNotFilled) {
  WithCounters maker;
  maker.samples(10);
  maker.samples(40, 30);
  maker.kernel("gemm", maker.seven, 700, 3300);  // 7 to 9, 30 to 32
  const Table table = by(maker.finish(), KernelsBy::kName);
  EXPECT_EQ(*table.number(0, "samples"), 6);
  EXPECT_DOUBLE_EQ(*table.number(0, "sm_busy_percent"), (7 + 8 + 9 + 30 + 31 + 32) / 6.0);
}

TEST(KernelMetrics, AFigureThatASampleLacksIsMeantOverTheOthers) {
  WithCounters maker;
  maker.samples(20);
  for (int i = 4; i < 6; ++i) maker.counter("gpu.0.l2_hit_percent", 1, i * 100, 80 + i);
  maker.kernel("gemm", maker.seven, 200, 1000);
  const Table table = by(maker.finish(), KernelsBy::kName);
  EXPECT_DOUBLE_EQ(*table.number(0, "l2_hit_percent"), 84.5);
  EXPECT_EQ(*table.number(0, "samples"), 8);
}

TEST(KernelMetrics, DevicesAreKeptApart) {
  WithCounters maker;
  const int32_t second = maker.stream(7, 1);
  maker.samples(20);
  maker.samples(40, 20, 1);  // the second device's begin at 2000
  maker.kernel("gemm", maker.seven, 200, 600);
  maker.kernel("gemm", second, 2200, 2600);
  const Table table = by(maker.finish(), KernelsBy::kName);
  ASSERT_EQ(table.row_count(), 2U);
  for (const size_t row : {0U, 1U})
    EXPECT_DOUBLE_EQ(*table.number(row, "sm_busy_percent"), *table.number(row, "gpu") == 0 ? 3.5 : 23.5);
}

TEST(KernelMetrics, WithoutCountersItSaysWhy) {
  WithCounters maker;
  maker.kernel("gemm", maker.seven, 200, 600);
  trace::Timeline timeline = maker.finish();
  EXPECT_THAT(by(timeline, KernelsBy::kName).notes, Contains(HasSubstr("--gpu-metrics")));
  timeline.facts["gpu.metrics"] = "off: CUPTI error 35: no permission";
  EXPECT_THAT(by(timeline, KernelsBy::kName).notes, Contains("GPU counters are off: CUPTI error 35: no permission"));
  EXPECT_EQ(by(timeline, KernelsBy::kName).row_count(), 0U);
}

TEST(KernelMetrics, TheFilterAndTheTopAreOfRows) {
  WithCounters maker;
  maker.samples(40);
  maker.kernel("gemm", maker.seven, 200, 600);
  maker.kernel("relu", maker.seven, 600, 1400);
  maker.kernel("tanh", maker.seven, 1400, 1600);
  const trace::Timeline timeline = maker.finish();
  auto filter = NameFilter::parse("gemm|tanh");
  ASSERT_TRUE(filter);
  const Table filtered = kernel_metrics(timeline, {.by = KernelsBy::kName, .top = 1, .filter = *filter});
  ASSERT_EQ(filtered.row_count(), 1U);
  EXPECT_EQ(filtered.text(0, "name"), "gemm");
  EXPECT_THAT(filtered.notes, Contains(HasSubstr("1 row is left out")));
  EXPECT_THAT(filtered.notes, Not(Contains(HasSubstr("too few"))));
}

}  // namespace
}  // namespace strobe::analyze
