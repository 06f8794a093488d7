#include "analyze/core_runs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tuple>

#include "analyze/blame.h"
#include "analyze/tenant_maker.h"

namespace strobe::analyze {
namespace {

// Two tenants bound to core 0, a's stage from 0 to 100 us. Times in us.
struct Scene : test::TenantMaker {
  int32_t lane_a, lane_b;
  Scene() : TenantMaker("a,b") {
    timeline.facts["tenants.policy"] = "concurrent";
    timeline.facts["tenants.resource.cpu:0"] = "cores=1;run-queues=each";
    timeline.facts["tenant.a.cpu"] = timeline.facts["tenant.b.cpu"] = "cpu:0";
    lane_a = lane(11), lane_b = lane(12);
    frame("a", lane_a, 0, 0, 100);
  }
  void stage_a(int64_t runnable_us) {
    const int32_t row = stage("a", lane_a, 0, "infer", 0, 100);
    argument(row, "cpu_ns", (100 - runnable_us) * 1000);
    argument(row, "runnable_ns", runnable_us * 1000);
  }
  void run(int32_t core, int64_t from_us, int64_t to_us, int32_t tid, const std::string& name,
           const std::string& holder, bool preempted) {
    timeline.core_runs.push_back({from_us * 1000, to_us * 1000, core, 1, tid, timeline.strings.intern(name),
                                  timeline.strings.intern(holder), preempted});
  }
  BlameAnalysis analysis(int64_t to_us = 100) {
    timeline.facts["tenants.core_runs.from_ns"] = "0";
    timeline.facts["tenants.core_runs.to_ns"] = std::to_string(to_us * 1000);
    timeline.finish();
    auto trace = tenant_trace(timeline);
    EXPECT_TRUE(trace) << trace.error().to_string();
    return blame(std::move(*trace));
  }
};

double ns_of(const BlameAnalysis& analysis, const std::string& by) {
  double ns = 0;
  for (const BlameCell& cell : analysis.frames[0].direct)
    if (blamed_name(analysis.trace, cell.by, 0) == by) ns += cell.ns;
  return ns;
}

TEST(CoreRuns, WhoRanWhileAThreadWaitedIsBlamed) {
  Scene scene;
  scene.stage_a(60);
  scene.run(0, 0, 20, 11, "camera", "a", true);
  scene.run(0, 20, 50, 12, "lidar", "b", true);
  scene.run(0, 50, 65, 99, "backup", "system", false);
  scene.run(0, 65, 80, 77, "drain", "recorder", false);
  scene.run(0, 80, 100, 11, "camera", "a", false);
  const BlameAnalysis analysis = scene.analysis();
  EXPECT_DOUBLE_EQ(ns_of(analysis, "b"), 30'000);
  EXPECT_DOUBLE_EQ(ns_of(analysis, "system"), 15'000);
  EXPECT_DOUBLE_EQ(ns_of(analysis, "recorder"), 15'000);
  EXPECT_DOUBLE_EQ(ns_of(analysis, "unknown"), 0);
  EXPECT_DOUBLE_EQ(analysis.frames[0].intrinsic_path_ns, 40'000);
  ASSERT_EQ(analysis.programs.size(), 1U);
  EXPECT_DOUBLE_EQ(analysis.beside_idle_ns[0], 0);  // there is no other core
  EXPECT_EQ(analysis.programs[0].first, "backup");
  EXPECT_DOUBLE_EQ(analysis.programs[0].second, 15'000);
  EXPECT_EQ(analysis.estimated[static_cast<size_t>(analysis.trace.find_resource("cpu:0"))], 0);
}

// Asleep from 20 to 80, of which the kernel counted 10 as ready: the end of it.
TEST(CoreRuns, AfterASleepTheWaitIsItsEnd) {
  Scene scene;
  scene.stage_a(10);
  scene.run(0, 0, 20, 11, "camera", "a", false);
  scene.run(0, 20, 70, 99, "backup", "system", false);
  scene.run(0, 70, 76, 12, "lidar", "b", false);
  scene.run(0, 80, 100, 11, "camera", "a", false);
  const BlameAnalysis analysis = scene.analysis();
  EXPECT_DOUBLE_EQ(ns_of(analysis, "b"), 6'000);
  EXPECT_DOUBLE_EQ(ns_of(analysis, "idle"), 4'000);
  EXPECT_DOUBLE_EQ(ns_of(analysis, "system"), 0);
}

// The total is the kernel's own counter, whatever the log says.
TEST(CoreRuns, PartsAddUpToTheCounter) {
  Scene scene;
  scene.stage_a(50);
  scene.run(0, 0, 20, 11, "camera", "a", true);
  scene.run(0, 20, 50, 12, "lidar", "b", true);
  scene.run(0, 50, 60, 99, "backup", "system", false);
  scene.run(0, 60, 100, 11, "camera", "a", false);
  const BlameAnalysis analysis = scene.analysis();
  EXPECT_NEAR(ns_of(analysis, "b") + ns_of(analysis, "system"), 50'000, 1e-6);
  EXPECT_NEAR(ns_of(analysis, "b"), 37'500, 1e-6);
}

TEST(CoreRuns, BusyCoresShareTheBlameAndOtherCoresHaveNone) {
  Scene scene;
  scene.timeline.facts.erase("tenants.resource.cpu:0");
  scene.timeline.facts["tenants.resource.cpu:0-1"] = "cores=2;run-queues=each";
  scene.timeline.facts["tenant.a.cpu"] = scene.timeline.facts["tenant.b.cpu"] = "cpu:0-1";
  scene.stage_a(40);
  scene.run(0, 0, 30, 11, "camera", "a", true);
  scene.run(0, 30, 70, 12, "lidar", "b", true);
  scene.run(0, 70, 100, 11, "camera", "a", false);
  scene.run(1, 50, 90, 99, "backup", "system", false);
  scene.run(2, 0, 100, 98, "far away", "system", false);
  const BlameAnalysis analysis = scene.analysis();
  EXPECT_DOUBLE_EQ(ns_of(analysis, "b"), 30'000);  // 20 alone, half of 20
  EXPECT_DOUBLE_EQ(ns_of(analysis, "system"), 10'000);
  // From 30 to 50 the other core was idle.
  EXPECT_DOUBLE_EQ(analysis.beside_idle_ns[0], 20'000);
  EXPECT_DOUBLE_EQ(analysis.beside_idle_ns[1], 0);
  EXPECT_THAT(blame_matrix(analysis, BlameOf::kAll, false).notes,
              testing::Contains(testing::HasSubstr("although another one was idle: a 0.020 ms;")));
}

TEST(CoreRuns, AWaitOfAThreadThatRanAllTheTimeIsUnknown) {
  Scene scene;
  scene.stage_a(1);
  scene.run(0, 0, 100, 11, "camera", "a", false);
  const BlameAnalysis analysis = scene.analysis();
  EXPECT_DOUBLE_EQ(ns_of(analysis, "unknown"), 1'000);
  EXPECT_EQ(analysis.estimated[static_cast<size_t>(analysis.trace.find_resource("cpu:0"))], 0);
}

TEST(CoreRuns, WhatIsSaidToBeOffIsNotBelieved) {
  Scene scene;
  scene.timeline.facts["tenants.core_runs"] = "off: the kernel lost 3 switches";
  scene.stage_a(60);
  scene.run(0, 0, 20, 11, "camera", "a", true);
  scene.run(0, 20, 80, 99, "backup", "system", false);
  const BlameAnalysis analysis = scene.analysis();
  EXPECT_DOUBLE_EQ(ns_of(analysis, "unknown"), 60'000);
  EXPECT_THAT(blame_matrix(analysis, BlameOf::kAll, false).notes,
              testing::Contains(testing::HasSubstr("the kernel lost 3 switches")));
}

TEST(CoreRuns, WhereTheyEndTheSplitIsEstimated) {
  Scene scene;
  scene.stage_a(60);
  scene.run(0, 0, 20, 11, "camera", "a", true);
  scene.run(0, 20, 50, 12, "lidar", "b", true);
  const BlameAnalysis analysis = scene.analysis(50);
  EXPECT_EQ(analysis.estimated[static_cast<size_t>(analysis.trace.find_resource("cpu:0"))], 1);
  EXPECT_DOUBLE_EQ(ns_of(analysis, "unknown"), 60'000);
}

// a may use core 0, b both: from 0 to 100 us each beside the other, but a waits from 30 to 70 and b from 70 to 90. They
// run at the same time for 40 us, in which each loses half to the other.
TEST(CoreRuns, MemoryIsSharedWhileBothRun) {
  const auto lost_to_b = [](bool recorded) {
    test::TenantMaker maker("a,b");
    auto& facts = maker.timeline.facts;
    facts["tenants.policy"] = "concurrent";
    facts["tenants.resource.cpu:0"] = "cores=1;run-queues=each";
    facts["tenants.resource.cpu:0-1"] = "cores=2;run-queues=each";
    facts["tenant.a.cpu"] = "cpu:0", facts["tenant.b.cpu"] = "cpu:0-1";
    const int32_t a = maker.lane(11), b = maker.lane(12);
    for (const auto& [name, lane, waited_us] : {std::tuple("a", a, 40), std::tuple("b", b, 20)}) {
      maker.frame(name, lane, 0, 0, 100);
      const int32_t row = maker.stage(name, lane, 0, "infer", 0, 100);
      maker.argument(row, "cpu_ns", int64_t{100 - waited_us} * 1000);
      maker.argument(row, "runnable_ns", int64_t{waited_us} * 1000);
    }
    const auto run = [&](int32_t core, int64_t from_us, int64_t to_us, int32_t tid, const char* name, bool preempted) {
      maker.timeline.core_runs.push_back({from_us * 1000, to_us * 1000, core, 1, tid,
                                          maker.timeline.strings.intern(name), maker.timeline.strings.intern(name),
                                          preempted});
    };
    if (recorded) {
      facts["tenants.core_runs.from_ns"] = "0", facts["tenants.core_runs.to_ns"] = "100000";
      run(0, 0, 30, 11, "a", true);
      run(0, 30, 70, 12, "b", true);
      run(0, 70, 100, 11, "a", false);
      run(1, 0, 30, 12, "b", true);
      run(1, 90, 100, 12, "b", false);
    }
    const trace::Timeline timeline = maker.finish();
    auto trace = tenant_trace(timeline);
    EXPECT_TRUE(trace) << trace.error().to_string();
    const auto calibration = parse_calibration(R"({"classes":["cpu"],"a":[[1]],"of":"cores"})");
    EXPECT_TRUE(calibration) << calibration.error().to_string();
    apply_calibration(*trace, *calibration);
    const BlameAnalysis analysis = blame(std::move(*trace));
    double ns = 0;
    for (const BlameCell& cell : analysis.frames[0].direct)
      if (blamed_name(analysis.trace, cell.by, 0) == "b" &&
          blamed_resource_name(analysis.trace, cell.resource) == "mem")
        ns += cell.ns;
    return ns;
  };
  EXPECT_NEAR(lost_to_b(true), 20'000, 1e-6);
  // By the counters alone an estimate: together less often than by chance (26,667).
  EXPECT_GT(lost_to_b(false), 20'000);
  EXPECT_LT(lost_to_b(false), 23'000);
}

}  // namespace
}  // namespace strobe::analyze
