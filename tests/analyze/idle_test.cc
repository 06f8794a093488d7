#include "analyze/idle.h"

#include <gmock/gmock.h>

#include <map>
#include <set>

#include "analyze/device_maker.h"

namespace strobe::analyze {
namespace {

using test::DeviceMaker;
using testing::Contains;
using testing::HasSubstr;

constexpr int64_t kUs = 1000;

// Stream 7 (us): k1 100-200 | 40 idle | k2 240-300 | 10 idle | k3 310-400 | 600 idle | k4 1000-1100 | 50 idle | copy
// 1150-1200
//   k2 was asked for at 150, in time, gap 40 >= 30: other. k3 at 160: kernel wait. k4 at 900, after k3's end: host
//   wait. The copy has no launch: unknown.
// Stream 8: nccl 290-350.
trace::Timeline two_streams(bool with_sync = false) {
  DeviceMaker maker;
  const int32_t thread = maker.lane(1), main = maker.stream(7), side = maker.stream(8);
  const auto call = [&](int64_t start) {
    return maker.api("cudaLaunchKernel", thread, start * kUs, (start + 5) * kUs);
  };
  maker.kernel("k1", main, 100 * kUs, 200 * kUs, call(10));
  maker.kernel("k2", main, 240 * kUs, 300 * kUs, call(150));
  maker.kernel("k3", main, 310 * kUs, 400 * kUs, call(160));
  maker.kernel("k4", main, 1000 * kUs, 1100 * kUs, call(900));
  maker.copy(1, 0, 2, 10, main, 1150 * kUs, 1200 * kUs);
  maker.kernel("ncclKernel_AllReduce", side, 290 * kUs, 350 * kUs, call(170));
  if (with_sync) maker.device_op(trace::RangeKind::kSync, "Stream Sync", main, 1200 * kUs, 1500 * kUs, trace::kNone);
  return maker.finish();
}

TEST(Idle, ByHand) {
  const Table table = idle(two_streams(), {});
  ASSERT_EQ(table.row_count(), 3U);
  // Device: 100..1200. Computing kernels 100 + 60 + 90 + 100; beyond them nccl alone in 300-310, the copy 50.
  EXPECT_FALSE(table.number(0, "stream"));
  EXPECT_EQ(*table.number(0, "operations"), 6);
  EXPECT_EQ(*table.number(0, "span_ns"), 1100 * kUs);
  EXPECT_EQ(*table.number(0, "compute_ns"), 350 * kUs);
  EXPECT_EQ(*table.number(0, "non_compute_ns"), 60 * kUs);
  EXPECT_EQ(*table.number(0, "idle_ns"), 690 * kUs);
  EXPECT_NEAR(*table.number(0, "idle_share"), 690.0 / 1100, 1e-15);
  EXPECT_EQ(*table.number(0, "host_wait_ns"), 600 * kUs);
  EXPECT_EQ(*table.number(0, "kernel_wait_ns"), 0);
  EXPECT_EQ(*table.number(0, "other_ns"), 40 * kUs);
  EXPECT_EQ(*table.number(0, "unknown_ns"), 50 * kUs);
  // Stream 7 alone.
  EXPECT_EQ(*table.number(1, "stream"), 7);
  EXPECT_EQ(*table.number(1, "idle_ns"), 700 * kUs);
  EXPECT_EQ(*table.number(1, "kernel_wait_ns"), 10 * kUs);
  EXPECT_EQ(*table.number(1, "other_ns"), 40 * kUs);
  EXPECT_EQ(*table.number(2, "stream"), 8);
  EXPECT_EQ(*table.number(2, "compute_ns"), 0);
  EXPECT_EQ(*table.number(2, "non_compute_ns"), 60 * kUs);
  EXPECT_THAT(table.notes, Contains("threshold of kernel wait: 30000 ns"));

  IdleOptions wide;
  wide.threshold_ns = 40 * kUs + 1;
  EXPECT_EQ(*idle(two_streams(), wide).number(1, "kernel_wait_ns"), 50 * kUs);
  EXPECT_THAT(parse_idle_rules("x").error().to_string(), HasSubstr("expected strobe or hta"));
  EXPECT_THAT(idle(trace::Timeline(), {}).notes, Contains("no device operation in this trace"));
}

TEST(Idle, HtaCountsSynchronisationAndTakesUnknownForOther) {
  IdleOptions hta;
  hta.rules = IdleRules::kHta;
  const Table table = idle(two_streams(true), hta);
  EXPECT_EQ(*table.number(0, "span_ns"), 1400 * kUs);
  EXPECT_EQ(*table.number(0, "non_compute_ns"), 360 * kUs);
  EXPECT_FALSE(table.number(0, "host_wait_ns"));
  EXPECT_EQ(*table.number(1, "other_ns"), 90 * kUs);  // 40, and 50 before the copy
  EXPECT_EQ(*table.number(1, "unknown_ns"), 0);
  // In Strobe's rules a wait is no work.
  EXPECT_EQ(*idle(two_streams(true), {}).number(0, "span_ns"), 1100 * kUs);
}

TEST(Idle, HtaLeavesOutTheLastOfSeveralSteps) {
  DeviceMaker maker;
  const int32_t thread = maker.lane(1), stream = maker.stream(7);
  maker.range("ProfilerStep#1", thread, 0, 100 * kUs);
  maker.range("ProfilerStep#2", thread, 100 * kUs, 200 * kUs);
  const int32_t first = maker.api("cudaLaunchKernel", thread, 10 * kUs, 20 * kUs);
  const int32_t second = maker.api("cudaLaunchKernel", thread, 110 * kUs, 120 * kUs);
  maker.kernel("k", stream, 50 * kUs, 60 * kUs, first);
  maker.kernel("k", stream, 150 * kUs, 160 * kUs, second);
  const trace::Timeline timeline = maker.finish();
  IdleOptions hta;
  hta.rules = IdleRules::kHta;
  EXPECT_EQ(*idle(timeline, hta).number(0, "span_ns"), 10 * kUs);
  EXPECT_EQ(*idle(timeline, {}).number(0, "span_ns"), 110 * kUs);
}

TEST(WorkTypes, ByHand) {
  const Table table = work_types(two_streams(), {});
  // Computation alone 350 - 10 - 40 (beside nccl in 290-300 and 310-350), nccl alone 10, the copy 50.
  ASSERT_EQ(table.row_count(), 4U);
  std::map<std::string, double> ns;
  for (size_t row = 0; row < 4; ++row) ns[table.text(row, "work")] = *table.number(row, "time_ns");
  EXPECT_EQ(ns["computation"], 300 * kUs);
  EXPECT_EQ(ns["computation + communication"], 50 * kUs);
  EXPECT_EQ(ns["communication"], 10 * kUs);
  EXPECT_EQ(ns["memory"], 50 * kUs);
  EXPECT_NEAR(*table.number(0, "share"), 300.0 / 410, 1e-15);
}

// Against a look at every nanosecond, and at every pair of operations for the gaps.
TEST(Idle, EqualsTheDefinitionsOnRandomTimelines) {
  for (uint32_t seed = 1; seed <= 15; ++seed) {
    const trace::Timeline timeline = test::random_device_timeline(seed, 80);
    const trace::Ranges& r = timeline.ranges;
    IdleOptions options;
    options.threshold_ns = 20;
    const Table table = idle(timeline, options);
    for (size_t row = 0; row < table.row_count(); ++row) {
      const bool is_device_row = !table.number(row, "stream");
      const auto belongs = [&](size_t i) {
        const trace::Lane& lane = timeline.lanes[static_cast<size_t>(r.lane[i])];
        return is_device(r.kind[i]) && lane.device == *table.number(row, "device") &&
               (is_device_row || lane.tid == *table.number(row, "stream"));
      };
      std::set<int64_t> busy, compute;
      int64_t first = INT64_MAX, last = 0;
      std::map<std::string, int64_t> waits;
      for (const trace::DeviceOp& op : timeline.device_ops) {
        const auto i = static_cast<size_t>(op.range);
        if (!belongs(i)) continue;
        first = std::min(first, r.start_ns[i]);
        last = std::max(last, r.end_ns[i]);
        const bool computes =
            r.kind[i] == trace::RangeKind::kKernel && !timeline.strings[r.name[i]].starts_with("nccl");
        for (int64_t t = r.start_ns[i]; t < r.end_ns[i]; ++t) {
          busy.insert(t);
          if (computes) compute.insert(t);
        }
        int64_t before = INT64_MIN;
        for (size_t k = 0; k < i; ++k)
          if (belongs(k)) before = std::max(before, r.end_ns[k]);
        if (before == INT64_MIN || before >= r.start_ns[i]) continue;
        const int64_t gap = r.start_ns[i] - before;
        if (op.launch == trace::kNone)
          waits["unknown_ns"] += gap;
        else if (r.start_ns[static_cast<size_t>(op.launch)] > before)
          waits["host_wait_ns"] += gap;
        else
          waits[gap < 20 ? "kernel_wait_ns" : "other_ns"] += gap;
      }
      const auto compute_ns = static_cast<int64_t>(compute.size()), busy_ns = static_cast<int64_t>(busy.size());
      EXPECT_EQ(*table.number(row, "span_ns"), static_cast<double>(last - first));
      EXPECT_EQ(*table.number(row, "compute_ns"), static_cast<double>(compute_ns));
      EXPECT_EQ(*table.number(row, "non_compute_ns"), static_cast<double>(busy_ns - compute_ns));
      EXPECT_EQ(*table.number(row, "idle_ns"), static_cast<double>(last - first - busy_ns));
      for (const char* wait : {"host_wait_ns", "kernel_wait_ns", "other_ns", "unknown_ns"})
        EXPECT_EQ(*table.number(row, wait), static_cast<double>(waits[wait])) << wait << ", seed " << seed;
    }
  }
}

}  // namespace
}  // namespace strobe::analyze
