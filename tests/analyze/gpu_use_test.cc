#include "analyze/gpu_use.h"

#include <gmock/gmock.h>

#include "base/tenant_words.h"
#include "trace/timeline_maker.h"

namespace strobe::analyze {
namespace {

using test::TimelineMaker;
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr int64_t kSecond = 1'000'000'000;

// From 0 to 10 s, ten times a second: 100 W in the first half, 300 W in the second; the clock falls at 8 s by the power
// cap, and before 1 s the device is idle.
void add_curves(TimelineMaker& maker, int pid = 1, double energy_from = 0, bool counter = true) {
  for (int i = 0; i <= 100; ++i) {
    const int64_t time = i * kSecond / 10;
    const double seconds = i / 10.0;
    maker.counter("gpu.0.power_w", pid, time, i <= 50 ? 100 : 300);
    maker.counter("gpu.0.busy_percent", pid, time, i <= 50 ? 20 : 90);
    maker.counter("gpu.0.sm_clock_mhz", pid, time, i < 10 ? 345 : i < 80 ? 1980 : 1755);
    maker.counter("gpu.0.clock_event_reasons", pid, time, i < 10 ? 1 : i < 80 ? 0 : 4);
    maker.counter("gpu.0.memory_used_bytes", pid, time, (100 + i) * 1048576.0);
    maker.counter("gpu.0.temperature_c", pid, time, 50 + i / 10.0);
    if (counter)
      maker.counter("gpu.0.energy_j", pid, time,
                    energy_from + (seconds <= 5 ? 100 * seconds : 500 + 300 * (seconds - 5)));
  }
}

TEST(GpuUse, FiguresOfTheStretchAlone) {
  TimelineMaker maker;
  add_curves(maker);
  maker.timeline.facts["gpu.0.name"] = "Test";
  const Table table = gpu_use(maker.finish(), {4 * kSecond, 6 * kSecond, 200});
  ASSERT_EQ(table.row_count(), 1U);
  EXPECT_EQ(table.text(0, "name"), "Test");
  EXPECT_EQ(table.number(0, "samples"), 21);
  EXPECT_NEAR(*table.number(0, "energy_j"), 400, 1e-6);
  EXPECT_NEAR(*table.number(0, "mean_w"), 200, 1e-6);
  EXPECT_NEAR(*table.number(0, "energy_j_per_frame"), 2, 1e-8);
  EXPECT_EQ(table.number(0, "memory_used_mib"), 160);
  EXPECT_NEAR(*table.number(0, "temperature_c"), 56, 1e-9);
  EXPECT_NEAR(*table.number(0, "busy_percent"), (11 * 20 + 10 * 90) / 21.0, 1e-9);
  EXPECT_FALSE(table.number(0, "memory_busy_percent"));
  EXPECT_EQ(table.number(0, "throttled_share"), 0);
  EXPECT_EQ(table.number(0, "sm_clock_mhz"), 1980);
  EXPECT_THAT(table.notes, Contains(HasSubstr("short for the energy counter")));  // 2 s: up to 5 %
}

TEST(GpuUse, EdgesBetweenSamplesLieOnStraightLines) {
  TimelineMaker maker;
  maker.counter("gpu.3.power_w", 1, 0, 100);
  maker.counter("gpu.3.energy_j", 1, 0, 0);
  maker.counter("gpu.3.power_w", 1, 10 * kSecond, 100);
  maker.counter("gpu.3.energy_j", 1, 10 * kSecond, 1000);
  const Table table = gpu_use(maker.finish(), {0, 25 * kSecond / 10, 0});
  EXPECT_EQ(table.number(0, "gpu"), 3);
  EXPECT_NEAR(*table.number(0, "energy_j"), 250, 1e-6);
  EXPECT_FALSE(table.number(0, "energy_j_per_frame"));
}

TEST(GpuUse, AStretchBetweenTwoSamplesHasItsEnergy) {
  for (const bool counter : {true, false}) {
    TimelineMaker maker;
    add_curves(maker, 1, 0, counter);
    const Table table = gpu_use(maker.finish(), {501 * kSecond / 100, 504 * kSecond / 100, 3});
    ASSERT_EQ(table.row_count(), 1U);
    EXPECT_EQ(table.number(0, "samples"), 0);
    const double watts = counter ? 300 : 200;  // the mean of the two samples
    EXPECT_NEAR(*table.number(0, "energy_j"), 0.03 * watts, 1e-6);
    EXPECT_NEAR(*table.number(0, "energy_j_per_frame"), 0.01 * watts, 1e-6);
    EXPECT_FALSE(table.number(0, "busy_percent"));
    EXPECT_FALSE(table.number(0, "sm_clock_mhz"));
  }
}

TEST(GpuUse, ThrottlingAndMovingClocksAreTold) {
  TimelineMaker maker;
  add_curves(maker);
  const Table table = gpu_use(maker.finish(), {0, 10 * kSecond, 0});
  EXPECT_NEAR(*table.number(0, "throttled_share"), 21.0 / 91, 1e-9);  // of those that are not idle
  EXPECT_EQ(table.text(0, "throttled_by"), "power cap 23 %");
  EXPECT_EQ(table.number(0, "sm_clock_low_mhz"), 1755);  // not the idle 345
  EXPECT_EQ(table.number(0, "sm_clock_high_mhz"), 1980);
  EXPECT_THAT(table.notes, Contains(HasSubstr("between 1755 and 1980 MHz while it worked (11 %)")));
}

TEST(GpuUse, ASteadyClockIsNotTold) {
  TimelineMaker maker;
  add_curves(maker);
  EXPECT_THAT(gpu_use(maker.finish(), {0, 7 * kSecond, 0}).notes, IsEmpty());
}

TEST(GpuUse, WithoutACounterEnergyIsTheAreaUnderThePower) {
  TimelineMaker maker;
  add_curves(maker, 1, 0, false);
  const Table table = gpu_use(maker.finish(), {0, 10 * kSecond, 0});
  EXPECT_NEAR(*table.number(0, "energy_j"), 500 + 1500 - 10, 1e-6);  // the step at 5 s is a slope of 0.1 s
}

TEST(GpuUse, AStretchThatSamplesHardlyCoverHasNoEnergy) {
  TimelineMaker maker;
  add_curves(maker);
  const trace::Timeline timeline = maker.finish();
  const Table table = gpu_use(timeline, {5 * kSecond, 15 * kSecond, 10});
  EXPECT_FALSE(table.number(0, "energy_j"));
  EXPECT_NEAR(*table.number(0, "mean_w"), 300, 1e-6);
  EXPECT_EQ(gpu_use(timeline, {20 * kSecond, 30 * kSecond, 0}).row_count(), 0U);
}

TEST(GpuUse, SamplersOfOneDeviceAreNotMixed) {
  TimelineMaker maker;
  add_curves(maker, 1);
  maker.counter("gpu.0.power_w", 2, 4 * kSecond, 9999);  // another one, whose energy begins elsewhere
  maker.counter("gpu.0.energy_j", 2, 4 * kSecond, 7e6);
  EXPECT_NEAR(*gpu_use(maker.finish(), {0, 10 * kSecond, 0}).number(0, "energy_j"), 2000, 1e-6);
}

TEST(GpuUse, InstancesUnderMigHaveALineEach) {
  TimelineMaker maker;
  add_curves(maker);
  for (const int second : {1, 2, 3}) {
    maker.counter("gpu.0.mig.2.memory_used_bytes", 1, second * kSecond, second * 1048576.0);
    maker.counter("gpu.0.mig.2.gpm_sm_busy_percent", 1, second * kSecond, second * 10);
    maker.counter("gpu.0.mig.11.memory_used_bytes", 1, second * kSecond, 7 * 1048576.0);
    maker.counter("gpu.0.mig.11.0.process_memory_bytes", 5, second * kSecond, 9 * 1048576.0);
  }
  const Table table = gpu_use(maker.finish(), {0, 2 * kSecond, 0});
  EXPECT_THAT(table.notes, Contains("GPU 0, MIG instance 2: 2 MiB used at most, its SMs at work 15.0 %"));
  EXPECT_THAT(table.notes, Contains("GPU 0, MIG instance 11: 7 MiB used at most"));
  EXPECT_EQ(table.number(0, "memory_used_mib"), 120) << "of the whole device";
}

TEST(GpuUse, TheStretchIsThatOfTheRun) {
  TimelineMaker maker;
  maker.timeline.facts["pipeline.stages"] = "read,write";
  const int32_t main = maker.lane(1, "main"), read = maker.lane(2, "read"), write = maker.lane(3, "write");
  maker.range("run", main, 2 * kSecond, 8 * kSecond);
  for (int64_t frame = 0; frame < 5; ++frame) {
    maker.range("read", read, (3 + frame) * kSecond, (3 + frame) * kSecond + 1, frame);
    maker.range("write", write, (3 + frame) * kSecond + 2, (3 + frame) * kSecond + 3, frame);
  }
  const Stretch stretch = measured_stretch(maker.finish());
  EXPECT_EQ(stretch.start_ns, 2 * kSecond);
  EXPECT_EQ(stretch.end_ns, 8 * kSecond);
  EXPECT_EQ(stretch.frames, 5U);
  TimelineMaker other;
  const int32_t supervisor = other.lane(1, "main");
  other.range("anything", supervisor, 0, kSecond);
  other.timeline.duration_ns = 5 * kSecond;
  trace::Timeline timeline = other.finish();
  EXPECT_EQ(measured_stretch(timeline).end_ns, 5 * kSecond);

  TimelineMaker tenants;
  const int32_t lane = tenants.lane(1, "main");
  tenants.range(tenant_words::kWindow, lane, 0, 9 * kSecond);  // a name that somebody else uses
  tenants.range(tenant_words::kWindow, lane, kSecond, 3 * kSecond);
  tenants.timeline.ranges.categorize_last(0, tenants.timeline.strings.intern(tenant_words::kWindowDomain));
  timeline = tenants.finish();
  EXPECT_EQ(measured_stretch(timeline).start_ns, kSecond);
  EXPECT_EQ(measured_stretch(timeline).end_ns, 3 * kSecond);
}

TEST(GpuUse, SamplesHaveARowALookWithTheUseSinceTheOneBefore) {
  TimelineMaker maker;
  for (const int64_t second : {1, 2}) {
    maker.counter("gpu.0.power_w", 1, second * kSecond, 100.0 * static_cast<double>(second));
    maker.counter("gpu.0.memory_used_bytes", 1, second * kSecond, 512 * 1048576.0);
    maker.counter("gpu.0.clock_event_reasons", 1, second * kSecond, 0x24);
  }
  maker.counter("gpu.0.busy_percent", 1, kSecond / 2, 10);  // out of the ring, at times of their own
  maker.counter("gpu.0.busy_percent", 1, kSecond + 1, 20);
  maker.counter("gpu.0.busy_percent", 1, 2 * kSecond, 40);
  maker.counter("gpu.1.power_w", 1, 2 * kSecond, 7);
  const Table table = gpu_samples(maker.finish());
  ASSERT_EQ(table.row_count(), 3U);
  for (size_t i = 0; i < 5; ++i)
    EXPECT_EQ(table.columns()[i].name,
              (std::vector<std::string>{"time", "gpu_util", "mem_util", "mem_used_MB", "power_W"})[i]);
  EXPECT_EQ(table.number(0, "gpu_util"), 10);
  EXPECT_EQ(table.number(1, "gpu_util"), 30);
  EXPECT_EQ(table.number(1, "time"), 2);
  EXPECT_EQ(table.number(1, "mem_used_MB"), 512);
  EXPECT_EQ(table.number(1, "power_W"), 200);
  EXPECT_EQ(table.text(1, "clock_event_reasons"), "power cap, thermal slowdown");
  EXPECT_FALSE(table.number(1, "mem_util"));
  EXPECT_EQ(table.number(2, "gpu"), 1);
  EXPECT_FALSE(table.number(2, "gpu_util"));
}

}  // namespace
}  // namespace strobe::analyze
