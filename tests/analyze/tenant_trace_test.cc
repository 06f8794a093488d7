#include "analyze/tenant_trace.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tenant_maker.h"

namespace strobe::analyze {
namespace {

using test::TenantMaker;

TEST(TenantTrace, ReadsTenantsResourcesAndFrames) {
  TenantMaker maker("a.b,a");
  auto& facts = maker.timeline.facts;
  facts["tenants.policy"] = "round-robin";
  facts["tenants.resource.device"] = "exclusive=2;quantum_ns=500;switch_ns=20";
  facts["tenants.resource.cpu:0,2-3"] = "cores=3";
  facts["tenant.a.b.priority"] = "3";
  facts["tenant.a.priority"] = "1.5";
  facts["tenant.a.deadline_ms"] = "40";
  facts["tenant.a.drop"] = "oldest";
  facts["tenant.a.cpu"] = "cpu:0,2-3";
  facts["tenants.interference.compute.copy"] = "0.25";
  const int32_t lane = maker.lane(1);
  const int32_t frame = maker.frame("a", lane, 5, 10, 90);
  maker.argument(frame, "comm_ns", int64_t{3000});
  maker.stage("a", lane, 5, "decode", 20, 40);
  maker.stage("a", lane, 5, "infer", 50, 90);
  maker.operation("conv", lane, "device", "compute", 55, 60, 80);
  maker.frame("a.b", lane, 6, 100, 120, "dropped");
  const auto trace = tenant_trace(maker.finish());
  ASSERT_TRUE(trace) << trace.error().to_string();
  EXPECT_EQ(trace->tenants[0].priority, 3);
  EXPECT_EQ(trace->tenants[1].priority, 1.5);
  EXPECT_EQ(trace->tenants[1].deadline_ns, 40'000'000);
  EXPECT_EQ(trace->tenants[1].drop, DropPolicy::kOldest);
  const TenantResource& device = trace->resources[static_cast<size_t>(trace->find_resource("device"))];
  EXPECT_EQ(device.kind, ResourceKind::kExclusive);
  EXPECT_EQ(device.capacity, 2);
  EXPECT_EQ(device.policy, ServePolicy::kRoundRobin);
  EXPECT_TRUE(device.by_stage);
  EXPECT_EQ(device.quantum_ns, 500);
  const TenantResource& cores = trace->resources[static_cast<size_t>(trace->tenants[1].cpu)];
  EXPECT_EQ(cores.cores, (std::vector<int32_t>{0, 2, 3}));
  ASSERT_EQ(trace->frames.size(), 2U);
  const TenantFrame& first = trace->frames[0];
  EXPECT_EQ(first.stamp_ns, 7000);
  EXPECT_EQ(first.latency_ns(), 83'000);
  EXPECT_EQ(first.stage_count, 2);
  EXPECT_EQ(trace->frames[1].outcome, FrameOutcome::kDropped);
  // A stage without operations is one, on the tenant's run queue.
  const TenantOperation &decode = trace->operations[0], &conv = trace->operations[1];
  EXPECT_EQ(decode.resource, trace->tenants[1].cpu);
  EXPECT_EQ(decode.end_ns - decode.start_ns, 20'000);
  EXPECT_EQ(conv.ready_ns, 55'000);
  EXPECT_EQ(trace->stages[1].edge_count, 1);
  const auto row = [&](const char* name) {
    return static_cast<int32_t>(std::find(trace->classes.begin(), trace->classes.end(), name) - trace->classes.begin());
  };
  EXPECT_EQ(trace->slow(row("compute"), row("copy")), 0.25);
  EXPECT_TRUE(std::isnan(trace->slow(row("copy"), row("compute"))));
}

TEST(TenantTrace, AHandOverThatIsNotRecordedIsCounted) {
  for (const bool has_flow : {true, false}) {
    TenantMaker maker("a");
    const int32_t one = maker.lane(1), two = maker.lane(2);
    maker.frame("a", one, 1, 0, 100);
    const int32_t from = maker.stage("a", one, 1, "decode", 0, 40), to = maker.stage("a", two, 1, "infer", 60, 100);
    if (has_flow) maker.flow("frame", one, 40'000, two, 60'000, from, to);
    const auto trace = tenant_trace(maker.finish());
    ASSERT_TRUE(trace);
    EXPECT_EQ(trace->edges_wanted, 1U);
    EXPECT_EQ(trace->edges_recorded, has_flow ? 1U : 0U);
    EXPECT_EQ(trace->stages[1].cause_known, has_flow);
  }
}

TEST(TenantTrace, APushOfNoLengthBelongsToTheStageOfItsFrame) {
  TenantMaker maker("a");
  const int32_t lane = maker.lane(1);
  maker.frame("a", lane, 1, 0, 100);
  maker.frame("a", lane, 2, 10, 200);
  maker.stage("a", lane, 1, "decode", 0, 50);
  maker.stage("a", lane, 2, "decode", 50, 100);
  const int32_t push = maker.operation("push", lane, "queue:a.infer", "cpu", 30, 50, 50);
  maker.timeline.ranges.frame[static_cast<size_t>(push)] = 1;
  const auto trace = tenant_trace(maker.finish());
  ASSERT_TRUE(trace);
  const TenantStage& first = trace->stages[0];
  ASSERT_EQ(first.operation_count, 1);
  EXPECT_TRUE(trace->operations[static_cast<size_t>(first.first_operation)].is_push);
  EXPECT_EQ(trace->frames[static_cast<size_t>(first.frame)].id, 1);
}

TEST(TenantTrace, RefusesWhatItCannotRead) {
  EXPECT_EQ(tenant_trace(trace::Timeline{}).error().kind(), ErrorKind::kBadData);
  const auto with = [](const std::string& key, const std::string& value) {
    TenantMaker maker("a");
    maker.frame("a", maker.lane(1), 1, 0, 10);
    maker.timeline.facts[key] = value;
    const auto trace = tenant_trace(maker.finish());
    return trace ? "" : trace.error().to_string();
  };
  EXPECT_NE(with("tenants.policy", "fastest").find("'fastest' is no policy"), std::string::npos);
  EXPECT_NE(with("tenant.a.priority", "high").find("tenant.a.priority"), std::string::npos);
  EXPECT_NE(with("tenants.resource.device", "exclusive=0").find("at least 1"), std::string::npos);
  EXPECT_NE(with("tenants", "a,a").find("twice"), std::string::npos);
  TenantMaker empty("a");
  EXPECT_EQ(tenant_trace(empty.finish()).error().kind(), ErrorKind::kNotFound);
}

TEST(TenantTrace, CalibrationReplacesTheMatrix) {
  const auto calibration = parse_calibration(R"({"classes":["compute","copy"],"a":[[1,0.5],[null,0]],"saturation":2,
      "wake_up_ms":[0,0.5,4],"balance_ms":[1],"turn_ms":[2,3],"hand_over_stays":0.75,"wake_up_stays":0.25})");
  ASSERT_TRUE(calibration) << calibration.error().to_string();
  TenantTrace trace;
  apply_calibration(trace, *calibration);
  EXPECT_EQ(trace.slow(0, 1), 0.5);
  EXPECT_TRUE(std::isnan(trace.slow(1, 0)));
  EXPECT_EQ(trace.saturation, 2);
  EXPECT_EQ(calibration->run_queues.wake_up_ns, (std::vector<double>{0, 5e5, 4e6}));
  EXPECT_EQ(calibration->run_queues.balance_ns, std::vector<double>{1e6});
  EXPECT_EQ(calibration->run_queues.turn_ns, (std::vector<double>{2e6, 3e6}));
  EXPECT_EQ(calibration->run_queues.hand_over_stays, 0.75);
  EXPECT_EQ(calibration->run_queues.wake_up_stays, 0.25);
  for (const char* bad :
       {"", "[]", R"({"classes":["a"],"a":[]})", R"({"classes":["a"],"a":[["x"]]})", R"({"classes":[1],"a":[[0]]})",
        R"({"classes":["a"],"a":[[0]],"saturation":"much"})", R"({"classes":["a"],"a":[[0]],"wake_up_ms":[2,1]})",
        R"({"classes":["a"],"a":[[0]],"wake_up_ms":[-1]})", R"({"classes":["a"],"a":[[0]],"balance_ms":3})",
        R"({"classes":["a"],"a":[[0]],"turn_ms":[0,0.01]})", R"({"classes":["a"],"a":[[0]],"wake_up_stays":1.1})",
        R"({"classes":["a"],"a":[[0]],"hand_over_stays":"x"})"})
    EXPECT_FALSE(parse_calibration(bad)) << bad;
}

// The source wanted to send at 5 and could at 20, because it waited for room with the frame before: of the 17 us since
// the stamp 15 are queueing. It cannot have waited for longer than since the stamp.
TEST(TenantTrace, WhatABlockedSourceWaitedIsQueueing) {
  TenantMaker maker("a");
  const int32_t lane = maker.lane(1);
  const int32_t frame = maker.frame("a", lane, 1, 20, 40);
  maker.argument(frame, "comm_ns", int64_t{17'000});
  maker.argument(frame, "blocked_ns", int64_t{15'000});
  maker.stage("a", lane, 1, "infer", 22, 40);
  const int32_t late = maker.frame("a", lane, 2, 50, 60);
  maker.argument(late, "comm_ns", int64_t{3'000});
  maker.argument(late, "blocked_ns", int64_t{15'000});
  const auto trace = tenant_trace(maker.finish());
  ASSERT_TRUE(trace) << trace.error().to_string();
  EXPECT_EQ(trace->frames[0].stamp_ns, 3'000);
  EXPECT_EQ(trace->frames[0].arrival_ns, 5'000);
  EXPECT_EQ(trace->frames[1].arrival_ns, trace->frames[1].stamp_ns);
}

}  // namespace
}  // namespace strobe::analyze
