#include "analyze/launches.h"

#include <gmock/gmock.h>

#include "analyze/device_maker.h"

namespace strobe::analyze {
namespace {

using test::DeviceMaker;
using testing::Contains;
using testing::HasSubstr;

TEST(Launches, ByHand) {
  DeviceMaker maker;
  const int32_t thread = maker.lane(1), stream = maker.stream(7);
  const int32_t graph = maker.api("cudaGraphLaunch", thread, 0, 20);
  const int32_t kernel = maker.api("cudaLaunchKernel", thread, 30, 40);
  maker.kernel("a", stream, 50, 100, graph);   // delay 30
  maker.kernel("b", stream, 100, 105, graph);  // delay 80, shorter than its call
  maker.kernel("c", stream, 35, 45, kernel);   // begins before its call ends: no delay
  maker.kernel("d", stream, 200, 300);
  const trace::Timeline timeline = maker.finish();
  const Table table = launches(timeline, IdleRules::kStrobe);
  ASSERT_EQ(table.row_count(), 2U);
  EXPECT_EQ(table.text(0, "call"), "cudaGraphLaunch");
  EXPECT_EQ(*table.number(0, "calls"), 1);
  EXPECT_EQ(*table.number(0, "operations"), 2);
  EXPECT_EQ(*table.number(0, "call_total_ns"), 20);
  EXPECT_EQ(*table.number(0, "device_total_ns"), 55);
  EXPECT_EQ(*table.number(0, "delay_total_ns"), 110);
  EXPECT_EQ(*table.number(0, "delay_max_ns"), 80);
  EXPECT_EQ(*table.number(0, "short_share"), 0.5);
  EXPECT_EQ(*table.number(1, "delay_total_ns"), 0);
  EXPECT_DOUBLE_EQ(*table.coverage, 0.75);
}

// HTA joins calls and operations, and rounds to microseconds.
TEST(Launches, InHtasRulesACallCountsForEachOperation) {
  DeviceMaker maker;
  const int32_t thread = maker.lane(1), stream = maker.stream(7);
  const int32_t graph = maker.api("cudaGraphLaunch", thread, 0, 20'000);
  maker.kernel("a", stream, 50'000, 100'000, graph);
  maker.kernel("b", stream, 100'000, 105'000, graph);
  const trace::Timeline timeline = maker.finish();
  EXPECT_EQ(*launches(timeline, IdleRules::kStrobe).number(0, "call_total_ns"), 20'000);
  EXPECT_EQ(*launches(timeline, IdleRules::kHta).number(0, "call_total_ns"), 40'000);
}

// Frame 0-100: kernels 10-50 and 50-98: 88 % busy, idle 0-10 for the host (asked for in 2-8), 98-100 for the host (the
// next one is asked for in 150-160). Frame 100-200: nothing runs until 190; asked for only at 150: the host until 160.
// Frame 200-300: 190-295 runs on: 95 %. Frame 300-400: 380-390 runs, asked for long before: waits.
TEST(FrameBound, ByHand) {
  DeviceMaker maker;
  const int32_t thread = maker.lane(1), stream = maker.stream(7);
  for (int64_t i = 0; i < 4; ++i) maker.range("ProfilerStep#" + std::to_string(i), thread, 100 * i, 100 * i + 100);
  const int32_t first = maker.api("cudaLaunchKernel", thread, 2, 8);
  const int32_t second = maker.api("cudaLaunchKernel", thread, 12, 18);
  const int32_t third = maker.api("cudaLaunchKernel", thread, 150, 160);
  const int32_t fourth = maker.api("cudaLaunchKernel", thread, 170, 180);
  maker.kernel("a", stream, 10, 50, first);
  maker.kernel("b", stream, 50, 98, second);
  maker.kernel("c", stream, 190, 295, third);
  maker.kernel("d", stream, 380, 390, fourth);
  const trace::Timeline timeline = maker.finish();
  const Table table = frame_bound(timeline, {});
  ASSERT_EQ(table.row_count(), 4U);
  EXPECT_EQ(table.text(0, "frame"), "ProfilerStep#0");
  EXPECT_EQ(*table.number(0, "device_busy_ns"), 88);
  EXPECT_EQ(*table.number(0, "operations"), 2);
  EXPECT_EQ(*table.number(0, "idle_ns"), 12);
  EXPECT_EQ(*table.number(0, "host_ns"), 10);  // 0..8 and 98..100
  EXPECT_EQ(table.text(0, "verdict"), "host-bound");
  EXPECT_EQ(*table.number(1, "device_busy_ns"), 10);
  EXPECT_EQ(*table.number(1, "host_ns"), 60);
  EXPECT_EQ(*table.number(1, "idle_share"), 0.9);
  EXPECT_EQ(table.text(1, "verdict"), "host-bound");
  EXPECT_EQ(*table.number(2, "device_busy_ns"), 95);
  EXPECT_EQ(table.text(2, "verdict"), "device-bound");
  EXPECT_EQ(*table.number(3, "host_ns"), 10);  // after the last operation nothing came
  EXPECT_EQ(table.text(3, "verdict"), "waits");

  const Table named = frame_bound(timeline, {*NameFilter::parse("Step#2")});
  ASSERT_EQ(named.row_count(), 1U);
  EXPECT_THAT(frame_bound(timeline, {*NameFilter::parse("none")}).notes, Contains("no range has such a name"));
}

TEST(FrameBound, FramesByNumberAndWithoutADevice) {
  DeviceMaker maker;
  const int32_t thread = maker.lane(1), stream = maker.stream(7), elsewhere = maker.lane(1, "", 200);
  maker.range("prep", thread, 0, 10, 3);
  maker.range("infer", thread, 20, 100, 3);
  maker.range("prep", elsewhere, 0, 10, 4);
  const int32_t call = maker.api("cudaLaunchKernel", thread, 30, 35);
  maker.kernel("k", stream, 40, 120, call);  // of frame 3, as its call is
  const Table table = frame_bound(maker.finish(), {});
  ASSERT_EQ(table.row_count(), 1U);
  EXPECT_EQ(*table.number(0, "frame"), 3);
  EXPECT_EQ(*table.number(0, "duration_ns"), 120);
  EXPECT_EQ(*table.number(0, "device_busy_ns"), 80);
  EXPECT_THAT(table.notes, Contains(HasSubstr("1 frame is left out")));
}

}  // namespace
}  // namespace strobe::analyze
