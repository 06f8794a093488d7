// Times of run queues in a replay, by hand.
#include "analyze/tenant_replay.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "tenant_maker.h"

namespace strobe::analyze {
namespace {

using test::TenantMaker;

constexpr double kMs = 1e6;

// Tenants of one frame and one operation each on the cores.
ReplayModel model_of(double cores, const std::vector<std::pair<double, double>>& stamp_and_service_ms) {
  ReplayModel model;
  TenantResource cpu;
  cpu.name = "cpu";
  cpu.kind = ResourceKind::kCores;
  cpu.capacity = cores;
  cpu.queue_a_core = true;
  model.resources.push_back(cpu);
  model.classes = {"cpu"};
  model.slowdown = {0};
  for (const auto& [stamp, service] : stamp_and_service_ms) {
    const auto number = static_cast<int32_t>(model.tenants.size());
    ReplayTenant tenant;
    tenant.name = std::string(1, static_cast<char>('a' + number));
    tenant.cpu = 0;
    model.tenants.push_back(tenant);
    model.pools.push_back({number, 1, true});
    ReplayOperation operation;
    operation.resource = 0;
    operation.service_ns = service * kMs;
    operation.cores = 1;
    model.operations.push_back(operation);
    ReplayStage stage;
    stage.pool = number;
    stage.first_operation = number;
    stage.operation_count = 1;
    model.stages.push_back(stage);
    model.works.push_back({number, 1});
    model.frames.push_back({number, number, stamp * kMs, 0, 0, true});
  }
  return model;
}

TEST(TenantReplay, ASourceWaitsForItsBusyCore) {
  ReplayModel model = model_of(1, {{0, 10}, {1, 4}});
  ReplayResult result = replay(model);
  EXPECT_NEAR(result.latency_ns[1] / kMs, 8, 1e-6);  // half the core from 1 on
  EXPECT_NEAR(result.latency_ns[0] / kMs, 14, 1e-6);
  model.run_queues.wake_up_ns = {3 * kMs, 3 * kMs};
  result = replay(model);
  EXPECT_NEAR(result.latency_ns[0] / kMs, 14, 1e-6);  // the first came to an idle core
  EXPECT_NEAR(result.latency_ns[1] / kMs, 3 + 8, 1e-6);
  model.interference = Interference::kNone;
  EXPECT_NEAR(replay(model).latency_ns[1] / kMs, 4, 1e-6);
}

// The second one has the core from 1 to 3, from 5 on again and is done at 7.
// A month after the timeline's begin a double knows half nanoseconds: what is less is over.
TEST(TenantReplay, TimesMayBeLarge) {
  constexpr double kMonthMs = 2.6e9;
  const ReplayModel model = model_of(1, {{kMonthMs, 10.0 / 3}, {kMonthMs + 1, 4.0 / 3}});
  const ReplayResult result = replay(model);
  EXPECT_NEAR(result.latency_ns[1] / kMs, 8.0 / 3, 1e-5);
  EXPECT_NEAR(result.latency_ns[0] / kMs, 14.0 / 3, 1e-5);
}

TEST(TenantReplay, ThreadsOfACoreTakeTurns) {
  ReplayModel model = model_of(1, {{0, 10}, {1, 4}});
  model.run_queues.turn_ns = {2 * kMs, 2 * kMs};
  const ReplayResult result = replay(model);
  EXPECT_NEAR(result.latency_ns[1] / kMs, 6, 1e-6);
  EXPECT_NEAR(result.latency_ns[0] / kMs, 14, 1e-6);
}

// Two on a device that serves one, the second one from `second_at` on; the first one has a little left to do after it.
ReplayModel on_a_device(double second_at_ms, double rest_ms) {
  ReplayModel model = model_of(2, {{0, 5}, {second_at_ms, 10}});
  TenantResource device;
  device.kind = ResourceKind::kExclusive;
  model.resources.push_back(device);
  for (ReplayOperation& operation : model.operations) operation.resource = 1;
  ReplayOperation rest = model.operations[0];
  rest.resource = 0;
  rest.service_ns = rest_ms * kMs;
  model.operations.insert(model.operations.begin() + 1, rest);
  model.stages[0].operation_count = 2;
  model.stages[1].first_operation = 2;
  model.run_queues.turn_ns = {3 * kMs, 3 * kMs};
  model.run_queues.balance_ns = {100 * kMs, 100 * kMs};
  return model;
}

// The first one is done with the device at 5; its core is taken by the second one when that is woken up, or is not.
TEST(TenantReplay, WhoHandsADeviceOverMayLoseItsCore) {
  ReplayModel model = on_a_device(0, 0.05);
  ReplayResult result = replay(model);
  EXPECT_NEAR(result.latency_ns[0] / kMs, 5.05, 1e-6);
  EXPECT_NEAR(result.latency_ns[1] / kMs, 15, 1e-6);
  model.run_queues.hand_over_stays = 1;
  result = replay(model);
  EXPECT_NEAR(result.latency_ns[0] / kMs, 8.05, 1e-6);
  EXPECT_NEAR(result.latency_ns[1] / kMs, 15.05, 1e-6);
}

double last_done_ms(const ReplayResult& result) {
  double done = 0;
  for (const double ns : result.done_ns) done = std::max(done, ns);
  return done / kMs;
}

// Whatever ends while nobody waits, or while threads share evenly, whoever comes next gets its turns.
TEST(TenantReplay, NobodyStarvesBehindATurn) {
  // Balance moves the one that waits away, and another one there.
  for (uint64_t seed = 1; seed < 20; ++seed) {
    ReplayModel model = model_of(2, {{0, 600}, {0, 300}, {5, 200}, {10, 100}});
    model.seed = seed;
    model.run_queues.turn_ns = {20 * kMs, 20 * kMs};
    model.run_queues.balance_ns = {1 * kMs, 1 * kMs};
    const ReplayResult result = replay(model);
    EXPECT_GE(last_done_ms(result), 600);
    EXPECT_LE(last_done_ms(result), 800) << seed;
    // In 700 ms the short ones have had what is theirs of two cores.
    EXPECT_LE(result.latency_ns[3] / kMs, 100 * 4 + 40) << seed;
  }
  // Work that does not fill the core comes between the turns.
  ReplayModel model = model_of(1, {{0, 100}, {0, 50}});
  std::vector<ReplayOperation> operations;
  for (int i = 0; i < 9; ++i) {
    operations.push_back(model.operations[0]);
    operations.back().service_ns = 100 * kMs / 9;
    operations.back().cores = i % 2 == 0 ? 1 : 0.85;
  }
  operations.push_back(model.operations[1]);
  model.operations = operations;
  model.stages[0].operation_count = 9;
  model.stages[1].first_operation = 9;
  model.run_queues.turn_ns = {4 * kMs, 4 * kMs};
  EXPECT_LE(replay(model).latency_ns[1] / kMs, 115);
}

// Three on a core, and how finely the work of one is cut does not matter.
TEST(TenantReplay, TurnsDoNotGetShorterWithMoreOperations) {
  std::vector<double> done;
  for (const int pieces : {1, 300}) {
    ReplayModel model = model_of(1, {{0, 300}, {0, 300}, {0, 300}});
    std::vector<ReplayOperation> operations;
    for (int i = 0; i < pieces; ++i) {
      operations.push_back(model.operations[0]);
      operations.back().service_ns = 300 * kMs / pieces;
    }
    for (const int i : {1, 2}) operations.push_back(model.operations[static_cast<size_t>(i)]);
    model.operations = operations;
    model.stages[0].operation_count = pieces;
    for (const int i : {1, 2}) model.stages[static_cast<size_t>(i)].first_operation = pieces + i - 1;
    model.run_queues.turn_ns = {1 * kMs, 20 * kMs};
    const ReplayResult result = replay(model);
    EXPECT_NEAR(last_done_ms(result), 900, 1e-3);
    for (const double ns : result.latency_ns) EXPECT_GE(ns / kMs, 840) << pieces;
  }
}

// 500 short frames a second want nearly all of a core beside one long piece of work: that gets about half.
TEST(TenantReplay, FrequentShortFramesDoNotStarveALongOne) {
  std::vector<std::pair<double, double>> frames = {{0, 500}};
  for (int i = 0; i < 600; ++i) frames.emplace_back(2.0 * i, 1.9);
  ReplayModel model = model_of(1, frames);
  // All of them are one tenant's, of one thread.
  model.pools.resize(2);
  model.tenants.resize(2);
  for (size_t i = 1; i < frames.size(); ++i) {
    model.frames[i].tenant = 1;
    model.stages[i].pool = 1;
  }
  model.run_queues.turn_ns = {2 * kMs, 6 * kMs};
  const ReplayResult result = replay(model);
  EXPECT_GE(result.latency_ns[0] / kMs, 900);
  EXPECT_LE(result.latency_ns[0] / kMs, 1150);
}

// Who asks for a device that somebody gave back before was not woken up by that one; nor is a core of one's own run
// queue the other's. With a cost of switching it is a hand-over all the same.
TEST(TenantReplay, OnlyWhoWaitedIsWokenUp) {
  const auto made = [](double second_at_ms) {
    ReplayModel model = on_a_device(second_at_ms, 4);
    model.run_queues.hand_over_stays = 1;
    return model;
  };
  EXPECT_GT(replay(made(0)).latency_ns[0] / kMs, 11.9);
  EXPECT_NEAR(replay(made(6)).latency_ns[0] / kMs, 9, 1e-6);
  ReplayModel apart = made(0);
  apart.resources.push_back(apart.resources[0]);
  apart.tenants[1].cpu = 2;
  EXPECT_NEAR(replay(apart).latency_ns[0] / kMs, 9, 1e-6);
  ReplayModel switching = made(0);
  switching.resources[1].switch_ns = 5000;
  EXPECT_GT(replay(switching).latency_ns[0] / kMs, 11.9);
}

// The source of c wakes up on the core of a or b and may leave c there; else c goes back to its own core.
TEST(TenantReplay, WhoASourceWakesUpMayTakeTheCore) {
  double taken = 0;
  for (uint64_t seed = 1; seed < 30; ++seed) {
    ReplayModel model = model_of(2, {{0, 10}, {2, 4}});
    model.seed = seed;
    model.run_queues.turn_ns = {50 * kMs, 50 * kMs};
    model.run_queues.balance_ns = {100 * kMs, 100 * kMs};
    const double alone = replay(model).latency_ns[0] / kMs;
    EXPECT_NEAR(alone, 10, 1e-6);
    model.run_queues.wake_up_stays = 1;
    taken += replay(model).latency_ns[0] / kMs > 13.9 ? 1 : 0;
  }
  EXPECT_GT(taken, 5);  // wherever both sources sit on one core
  EXPECT_LT(taken, 25);
}

// What the trace itself tells of it: b waits for what a has, and a third of a's stages wait for a core after they gave
// it.
TEST(TenantReplay, HandOversThatStayAreCounted) {
  for (const int64_t frames : {30, 10}) {
    TenantMaker maker("a,b");
    maker.timeline.facts["tenants.resource.device"] = "exclusive=1";
    const int32_t a = maker.lane(1), b = maker.lane(2);
    for (int64_t i = 0; i < frames; ++i) {
      const int64_t at = 20'000 * i, rest = i % 3 == 0 ? 4'000 : 50;
      maker.frame("a", a, i, at, at + 5'000 + rest);
      const int32_t stage = maker.stage("a", a, i, "infer", at, at + 5'000 + rest);
      maker.argument(stage, "cpu_ns", int64_t{5'050'000});
      maker.argument(stage, "runnable_ns", (rest - 50) * 1000);
      maker.operation("net", a, "device", "compute", at, at, at + 5'000);
      maker.frame("b", b, i, at + 1'000, at + 11'000);
      maker.stage("b", b, i, "infer", at + 1'000, at + 11'000);
      maker.operation("net", b, "device", "compute", at + 1'000, at + 5'010, at + 11'000);
    }
    const auto trace = tenant_trace(maker.finish());
    ASSERT_TRUE(trace) << trace.error().to_string();
    const auto share = hand_over_stays(*trace);
    EXPECT_EQ(share.has_value(), frames >= 20);
    if (share) {
      EXPECT_DOUBLE_EQ(*share, 1.0 / 3);
    }
  }
}

// a and b take a core each, c comes to one of them. When the other is done, its core is idle for the time of balance.
TEST(TenantReplay, AnIdleCoreTakesItsTime) {
  ReplayModel model = model_of(2, {{0, 4}, {0, 4}, {2, 20}});
  const double at_once = replay(model).latency_ns[2] / kMs;
  for (uint64_t seed = 1; seed < 20; ++seed) {
    model.seed = seed;
    model.run_queues.balance_ns = {2 * kMs, 2 * kMs};
    const ReplayResult result = replay(model);
    // c shares with one of them until that is done at 6, or at once where both came to one core and were moved.
    EXPECT_GE(result.latency_ns[2] / kMs, at_once - 1e-6) << seed;
    EXPECT_LE(result.latency_ns[2] / kMs, 20 + 8) << seed;
    double done = 0;
    for (const double ns : result.done_ns) done = std::max(done, ns);
    EXPECT_GE(done / kMs, 22 - 1e-6);
  }
}

// Each takes twice as long while the other runs on the other core, and not on the same one.
TEST(TenantReplay, CoresShareMemory) {
  for (const bool run_queues : {true, false}) {
    ReplayModel model = model_of(2, {{0, 10}, {4, 3}});
    model.resources[0].queue_a_core = run_queues;
    model.slowdown = {1};
    EXPECT_NEAR(replay(model).latency_ns[0] / kMs, 10, 1e-6);
    model.cores_share_memory = true;
    const ReplayResult result = replay(model);
    EXPECT_NEAR(result.latency_ns[1] / kMs, 6, 1e-6);
    EXPECT_NEAR(result.latency_ns[0] / kMs, 13, 1e-6);
    model.saturation = 0.5;
    EXPECT_NEAR(replay(model).latency_ns[1] / kMs, 4.5, 1e-6);
    model.interference = Interference::kNone;
    EXPECT_NEAR(replay(model).latency_ns[0] / kMs, 10, 1e-6);
  }
  ReplayModel one = model_of(1, {{0, 10}, {4, 3}});
  one.slowdown = {1};
  one.cores_share_memory = true;
  EXPECT_NEAR(replay(one).latency_ns[1] / kMs, 6, 1e-6);  // half of the core
}

TEST(TenantReplay, DrawsAreThoseOfTheSeed) {
  ReplayModel model = model_of(1, {{0, 10}, {1, 4}});
  model.run_queues.wake_up_ns = {0, 4 * kMs};
  std::set<double> found;
  for (uint64_t seed = 1; seed < 10; ++seed) {
    model.seed = seed;
    const double once = replay(model).latency_ns[1];
    EXPECT_EQ(once, replay(model).latency_ns[1]);
    found.insert(once);
    EXPECT_GE(once, 8 * kMs);
    EXPECT_LE(once, 12.1 * kMs);
  }
  EXPECT_GT(found.size(), 5u);
}

}  // namespace
}  // namespace strobe::analyze
