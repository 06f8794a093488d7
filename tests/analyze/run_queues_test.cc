#include "analyze/run_queues.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace strobe::analyze {
namespace {

TEST(RunQueues, OfThreeThreadsOnTwoCoresTwoShareOne) {
  RunQueues queues(2);
  queues.join(0, 1, 0);
  queues.join(1, 1, 0);
  EXPECT_EQ(queues.speed(0), 1);
  EXPECT_EQ(queues.speed(1), 1);
  queues.join(2, 1, 0);
  EXPECT_EQ(queues.speed(0) + queues.speed(1) + queues.speed(2), 2);
  EXPECT_EQ(queues.speed(2), 0.5);
  // Whoever had a core for itself has left: the idle core takes one of the two.
  queues.leave(queues.speed(0) == 1 ? 0 : 1, 0);
  EXPECT_EQ(queues.speed(2), 1);
}

TEST(RunQueues, AThreadWakesUpOnItsCoreUnlessAnotherIsIdle) {
  RunQueues queues(2);
  queues.join(0, 1, 0);  // core 0
  queues.leave(0, 0);
  queues.join(1, 1, 0);  // core 0: it is idle, too
  queues.join(2, 1, 0);  // core 1
  queues.join(0, 1, 0);  // none is idle: back to core 0
  EXPECT_EQ(queues.speed(0), 0.5);
  EXPECT_EQ(queues.speed(1), 0.5);
  EXPECT_EQ(queues.speed(2), 1);
}

TEST(RunQueues, WorkThatWaitsLeavesItsCoreToOthers) {
  RunQueues queues(1);
  queues.join(0, 0.4, 0);
  queues.join(1, 0.5, 0);
  EXPECT_EQ(queues.speed(0), 1);
  queues.join(2, 0.6, 0);
  EXPECT_DOUBLE_EQ(queues.speed(2), 1 / 1.5);
}

TEST(RunQueues, WorkOfSeveralThreadsGoesAsFastAsTheSlowest) {
  RunQueues queues(2);
  queues.join(0, 2, 0);
  EXPECT_EQ(queues.speed(0), 1);
  queues.join(1, 1, 0);
  EXPECT_EQ(queues.speed(0), 0.5);
  queues.leave(0, 0);
  EXPECT_EQ(queues.speed(1), 1);
}

TEST(RunQueues, AnIdleCoreTakesAThreadWhenItIsTold) {
  RunQueues queues(2, false);
  queues.join(0, 1, 0);
  queues.join(1, 1, 0);
  queues.join(2, 1, 0);
  queues.leave(queues.speed(0) == 1 ? 0 : 1, 0);
  EXPECT_EQ(queues.speed(2), 0.5);
  EXPECT_TRUE(queues.is_uneven());
  queues.balance(0);
  EXPECT_FALSE(queues.is_uneven());
  EXPECT_EQ(queues.speed(2), 1);
}

// A thread that wakes up goes before the one that runs, which has its next turn when the other's is over.
TEST(RunQueues, ThreadsOfACoreTakeTurns) {
  RunQueues queues(2, false, 10);
  queues.join(0, 1, 0, {.waker = 0});
  EXPECT_FALSE(queues.has_turn(0));  // nobody waits
  queues.join(1, 1, 1, {.waker = 0, .stays_with_waker = true});
  EXPECT_EQ(queues.speed(0), 0);
  EXPECT_EQ(queues.speed(1), 1);
  ASSERT_TRUE(queues.has_turn(0));
  EXPECT_EQ(queues.turn_end(0), RunQueues::kNoTurn);
  queues.set_turn_end(0, 5);
  // From one operation to the next its turn goes on.
  queues.leave(1, 2);
  EXPECT_EQ(queues.speed(0), 1);
  queues.join(1, 1, 2, {.goes_on = true});
  EXPECT_EQ(queues.speed(1), 1);
  EXPECT_EQ(queues.turn_end(0), 5);
  queues.end_turn(0, 5);
  EXPECT_EQ(queues.speed(0), 1);
  EXPECT_EQ(queues.speed(1), 0);
  EXPECT_EQ(queues.turn_end(0), RunQueues::kNoTurn);
  // The idle core takes the one that waits.
  queues.balance(6);
  EXPECT_EQ(queues.speed(0) + queues.speed(1), 2);
  EXPECT_EQ(queues.core_of(1), 1u);
}

// Of three the one that has had least is next.
TEST(RunQueues, TheNextTurnIsThatOfWhoHasHadLeast) {
  RunQueues queues(1, false, 100);
  queues.join(0, 1, 0);
  queues.join(1, 1, 10);  // 0 has had 10
  queues.join(2, 1, 12);  // 1 has had 2 of its own, 12 as its core counts
  queues.end_turn(0, 13);
  const int32_t second = queues.speed(0) == 1 ? 0 : 1;
  queues.end_turn(0, 23);
  EXPECT_EQ(queues.speed(second), 0);
  EXPECT_EQ(queues.speed(0) + queues.speed(1) + queues.speed(2), 1);
}

// Who had the core nearly all the time does not take it again at once; after a sleep it may.
TEST(RunQueues, WhoHadMoreThanItsShareWaits) {
  RunQueues queues(1, false, 10);
  queues.join(0, 1, 0);
  queues.join(1, 1, 0);  // takes the core
  queues.leave(1, 8);
  queues.join(1, 1, 9);
  EXPECT_EQ(queues.speed(1), 0);
  EXPECT_EQ(queues.speed(0), 1);
  queues.leave(1, 9);
  queues.join(1, 1, 30);
  EXPECT_EQ(queues.speed(1), 1);
}

// What a worker of several threads gets is not known turn by turn, nor what work gets that does not fill a core, or
// wants more than one.
TEST(RunQueues, BesideWorkOfAnotherKindCoresAreShared) {
  RunQueues queues(2, false, 10);
  queues.join(0, 2, 0);
  queues.join(1, 1, 0);
  EXPECT_FALSE(queues.has_turn(0) || queues.has_turn(1));
  EXPECT_EQ(queues.speed(0), 0.5);
  EXPECT_EQ(queues.speed(1), 0.5);
  for (const double wanted : {0.8, 1.4}) {
    RunQueues one(1, false, 10);
    one.join(0, wanted, 0);
    EXPECT_DOUBLE_EQ(one.speed(0), std::min(1.0, 1 / wanted));
    one.join(1, 1, 0);
    EXPECT_FALSE(one.has_turn(0));
    EXPECT_DOUBLE_EQ(one.speed(1), 1 / (1 + wanted));
  }
}

// While a source runs, its core is not idle, however little it does there.
TEST(RunQueues, WhoIsWokenFromTheIdleCoreStaysOnItsOwn) {
  RunQueues queues(2, false);
  queues.join(0, 1, 0, {.waker = 0});  // core 0, where its waker is
  queues.leave(0, 0);
  queues.join(1, 1, 0, {.waker = 0});
  queues.join(0, 1, 0, {.waker = 1});  // its core is busy, its waker on the other one
  EXPECT_EQ(queues.speed(0), 0.5);
  EXPECT_EQ(queues.speed(1), 0.5);
  queues.leave(0, 0);
  queues.join(0, 1, 0, {.waker = 0});  // its waker is on the busy core: the other one is idle
  EXPECT_EQ(queues.speed(0), 1);
  EXPECT_EQ(queues.speed(1), 1);
  queues.leave(1, 0);
  queues.leave(0, 0);
  queues.join(0, 1, 0, {.waker = 0});  // both are idle: to its waker
  queues.join(1, 1, 0, {.waker = 1});
  EXPECT_EQ(queues.speed(0), 0.5);
  EXPECT_EQ(queues.speed(1), 0.5);
}

// No core is idle while another has two threads, and no core does more than it can.
TEST(RunQueues, CoresAreUsedAndNotOverused) {
  std::mt19937 random(3);
  for (int round = 0; round < 200; ++round) {
    const size_t cores = 1 + random() % 6;
    RunQueues queues(cores);
    std::vector<int32_t> there;
    for (int step = 0; step < 60; ++step) {
      if (there.empty() || random() % 2 == 0) {
        int32_t worker = static_cast<int32_t>(random() % 20);
        while (std::find(there.begin(), there.end(), worker) != there.end()) ++worker;
        queues.join(worker, 1, 0);
        there.push_back(worker);
      } else {
        const size_t i = random() % there.size();
        queues.leave(there[i], 0);
        there.erase(there.begin() + static_cast<ptrdiff_t>(i));
      }
      double done = 0;
      for (const int32_t worker : there) done += queues.speed(worker);
      EXPECT_NEAR(done, static_cast<double>(std::min(cores, there.size())), 1e-9);
    }
  }
}

}  // namespace
}  // namespace strobe::analyze
