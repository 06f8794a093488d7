#include "analyze/work_owners.h"

#include <gmock/gmock.h>

#include "analyze/device_maker.h"
#include "analyze/idle.h"
#include "analyze/kernels.h"
#include "analyze/launches.h"
#include "analyze/memcpy.h"

namespace strobe::analyze {
namespace {

using test::DeviceMaker;
using test::row_with;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;

// Tenants a and b infer at once: a copies and then computes on stream 7, b computes on stream 8 meanwhile. What comes
// last was asked for outside of their frames.
//             0        20      30      40      60         90          160    170
//   stream 7           [ copy of a     | gemm of a ]                  [ warm ]
//   stream 8                   [ relu of b                  ]
struct TwoTenants : DeviceMaker {
  int32_t first = lane(1), second = lane(2), seven = stream(7), eight = stream(8);
  TwoTenants() {
    timeline.processes.push_back({100, timeline.strings.intern("strobe run")});
    timeline.facts["tenant.a.pid"] = timeline.facts["tenant.b.pid"] = "100";
    stage("a", "infer", first, 0, 100);
    copy(1, 1, 2, 4000, seven, 20, 40, api("cudaMemcpyAsync", first, 10, 12));
    kernel("gemm", seven, 40, 60, api("cudaLaunchKernel", first, 12, 14));
    stage("b", "infer", second, 0, 200);
    kernel("relu", eight, 30, 90, api("cudaLaunchKernel", second, 20, 22));
    kernel("warm", seven, 160, 170, api("cudaLaunchKernel", first, 150, 152));
  }
  void stage(const std::string& tenant, const std::string& name, int32_t lane, int64_t start, int64_t end) {
    range(name, lane, start, end, 0);
    timeline.ranges.categorize_last(timeline.strings.intern(tenant), timeline.strings.intern("strobe.tenant"));
  }
};

TEST(WorkOwners, KernelsByTenantAndStage) {
  const trace::Timeline timeline = TwoTenants().finish();
  const Table table = kernels(timeline, {.by = KernelsBy::kTenant, .top = 0, .filter = {}});
  ASSERT_EQ(table.row_count(), 3U);
  const auto check = [&](const char* tenant, const char* name, double total, double latency, double wait,
                         double delay) {
    const auto row = row_with(table, "tenant", tenant);
    ASSERT_TRUE(row) << tenant;
    EXPECT_EQ(table.text(*row, "name"), name);
    EXPECT_EQ(*table.number(*row, "total_ns"), total);
    EXPECT_EQ(*table.number(*row, "launch_latency_ns"), latency);
    EXPECT_EQ(*table.number(*row, "stream_wait_ns"), wait);
    EXPECT_EQ(*table.number(*row, "queue_delay_ns"), delay);
  };
  check("a", "gemm", 20, 28, 26, 0);
  check("b", "relu", 60, 10, 0, 8);
  check("strobe run", "warm", 10, 10, 0, 8);
  const Table stages = kernels(timeline, {.by = KernelsBy::kStage, .top = 0, .filter = {}});
  ASSERT_EQ(stages.row_count(), 3U);
  EXPECT_EQ(stages.text(0, "stage"), "infer");
  EXPECT_EQ(stages.text(1, "stage"), "infer");
  EXPECT_EQ(stages.text(2, "name"), "warm");
  EXPECT_TRUE(std::holds_alternative<std::monostate>(stages.rows()[2][0]));
  for (const Table& one : {stages, launches(timeline, IdleRules::kStrobe, WorkBy::kStage),
                           idle_by(timeline, {}, WorkBy::kStage), memcpy_overlap(timeline, WorkBy::kStage)})
    EXPECT_THAT(one.notes, Contains(HasSubstr("1 operation belongs to no stage"))) << one.title();
  for (const Table& one : {table, memcpy_table(timeline, WorkBy::kStage)})
    EXPECT_THAT(one.notes, Not(Contains(HasSubstr("no stage")))) << one.title();
}

TEST(WorkOwners, LaunchesByTenant) {
  const Table table = launches(TwoTenants().finish(), IdleRules::kStrobe, WorkBy::kTenant);
  ASSERT_EQ(table.row_count(), 4U);
  EXPECT_EQ(table.text(0, "tenant"), "a");
  EXPECT_EQ(table.text(0, "call"), "cudaLaunchKernel");
  EXPECT_EQ(*table.number(0, "delay_total_ns"), 26);
  const size_t b = *row_with(table, "tenant", "b");
  EXPECT_EQ(*table.number(b, "calls"), 1);
  EXPECT_EQ(*table.number(b, "delay_total_ns"), 8);
  EXPECT_EQ(*table.number(b, "device_total_ns"), 60);
}

TEST(WorkOwners, CopiesByTenantHideBehindOthersKernels) {
  const trace::Timeline timeline = TwoTenants().finish();
  const Table copies = memcpy_table(timeline, WorkBy::kTenant);
  ASSERT_EQ(copies.row_count(), 1U);
  EXPECT_EQ(copies.text(0, "tenant"), "a");
  EXPECT_EQ(*copies.number(0, "overlap_ns"), 10);
  const Table overlap = memcpy_overlap(timeline, WorkBy::kTenant);
  ASSERT_EQ(overlap.row_count(), 3U);
  const size_t a = *row_with(overlap, "tenant", "a"), b = *row_with(overlap, "tenant", "b");
  EXPECT_EQ(*overlap.number(a, "compute_ns"), 20);
  EXPECT_EQ(*overlap.number(a, "copy_ns"), 20);
  EXPECT_EQ(*overlap.number(a, "both_ns"), 10);
  EXPECT_EQ(*overlap.number(a, "own_ns"), 0);
  EXPECT_EQ(*overlap.number(a, "busy_ns"), 40);
  EXPECT_EQ(*overlap.number(a, "copy_hidden"), 0.5);
  EXPECT_EQ(*overlap.number(b, "busy_ns"), 60);
  EXPECT_FALSE(overlap.number(b, "copy_hidden"));
  // Of one stage, the kernels are its own.
  const Table stages = memcpy_overlap(timeline, WorkBy::kStage);
  const size_t infer = *row_with(stages, "stage", "infer");
  EXPECT_EQ(*stages.number(infer, "own_ns"), 10);
  EXPECT_EQ(*stages.number(infer, "busy_ns"), 70);
}

TEST(WorkOwners, IdleTimeBelongsToWhoeverEndedIt) {
  const trace::Timeline timeline = TwoTenants().finish();
  const Table table = idle_by(timeline, {}, WorkBy::kTenant);
  ASSERT_EQ(table.row_count(), 3U);
  EXPECT_EQ(table.text(0, "tenant"), "b");
  EXPECT_EQ(*table.number(0, "share"), 0.4);  // 60 of 150
  EXPECT_EQ(*table.number(0, "idle_ns"), 0);
  const size_t a = *row_with(table, "tenant", "a"), run = *row_with(table, "tenant", "strobe run");
  EXPECT_EQ(*table.number(a, "operations"), 2);
  EXPECT_EQ(*table.number(a, "compute_ns"), 20);
  EXPECT_EQ(*table.number(a, "non_compute_ns"), 20);
  EXPECT_EQ(*table.number(run, "idle_ns"), 70);  // from 90 to 160, asked for at 150
  EXPECT_EQ(*table.number(run, "host_wait_ns"), 70);
  // All of the device's idle time has an owner.
  double sum = 0;
  for (size_t row = 0; row < table.row_count(); ++row) sum += *table.number(row, "idle_ns");
  EXPECT_EQ(sum, *idle(timeline, {}).number(0, "idle_ns"));
}

TEST(WorkOwners, AProcessOfOneTenantIsTheTenants) {
  DeviceMaker maker;
  const int32_t thread = maker.lane(1, "", 7), other = maker.lane(2, "", 8), third = maker.lane(3, "", 9);
  for (const int32_t pid : {7, 8, 9})
    maker.timeline.processes.push_back({pid, maker.timeline.strings.intern("worker")});
  maker.timeline.facts["tenant.front.pid"] = "7";
  maker.kernel("k", maker.stream(7, 0, 7), 10, 20, maker.api("cudaLaunchKernel", thread, 0, 1));
  maker.kernel("k", maker.stream(7, 0, 8), 30, 45, maker.api("cudaLaunchKernel", other, 0, 1));
  maker.kernel("k", maker.stream(7, 0, 9), 50, 70);  // its call is not known, its process is
  (void)third;
  const Table table = idle_by(maker.finish(), {}, WorkBy::kTenant);
  ASSERT_EQ(table.row_count(), 3U);
  EXPECT_EQ(table.text(0, "tenant"), "worker 9");
  EXPECT_EQ(table.text(1, "tenant"), "worker 8");
  EXPECT_EQ(table.text(2, "tenant"), "front");
}

TEST(WorkOwners, StagesOfAPipeline) {
  DeviceMaker maker;
  const int32_t thread = maker.lane(1), stream = maker.stream(7);
  maker.timeline.facts["worker.cam.pipeline.stages"] = "read,infer";
  maker.range("run", thread, 0, 100);
  maker.range("infer", thread, 10, 50, 0);
  maker.range("read", thread, 20, 40);  // inside a stage: not a stage
  maker.kernel("k", stream, 60, 70, maker.api("cudaLaunchKernel", thread, 25, 26));
  maker.kernel("outside", stream, 80, 81, maker.api("cudaLaunchKernel", thread, 75, 76));
  const Table table = kernels(maker.finish(), {.by = KernelsBy::kStage, .top = 0, .filter = {}});
  ASSERT_EQ(table.row_count(), 2U);
  EXPECT_EQ(table.text(0, "stage"), "infer");
  EXPECT_TRUE(std::holds_alternative<std::monostate>(table.rows()[1][0]));
}

TEST(WorkOwners, Words) {
  EXPECT_EQ(*parse_work_by(""), WorkBy::kNobody);
  EXPECT_EQ(*parse_work_by("tenant"), WorkBy::kTenant);
  EXPECT_THAT(parse_work_by("frame").error().to_string(), HasSubstr("--by frame: expected stage or tenant"));
}

}  // namespace
}  // namespace strobe::analyze
