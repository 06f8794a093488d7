#include "tenants/device_arbiter.h"

#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <mutex>
#include <thread>
#include <vector>

namespace strobe::tenants {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Waits until so many stand in the arbiter's queue.
void wait_for_waiting(const DeviceArbiter& arbiter, size_t count) {
  while (arbiter.waiting() < count) std::this_thread::yield();
}

// The order in which tenants get the device that tenant 0 holds while they ask one after the other, as `asks` says.
struct Ask {
  size_t tenant;
  Claim claim;
};
std::vector<size_t> order_of(Policy policy, const std::vector<Ask>& asks) {
  auto made = DeviceArbiter::create(policy, 8);
  EXPECT_TRUE(made);
  DeviceArbiter& arbiter = *made;
  arbiter.acquire(0, {.priority = 100, .deadline_ns = 0});
  std::mutex mutex;
  std::vector<size_t> order;
  std::vector<std::thread> threads;
  for (size_t i = 0; i < asks.size(); ++i) {
    threads.emplace_back([&, ask = asks[i]] {
      arbiter.acquire(ask.tenant, ask.claim);
      {
        const std::lock_guard lock(mutex);
        order.push_back(ask.tenant);
      }
      arbiter.release(ask.tenant);
    });
    wait_for_waiting(arbiter, i + 1);
  }
  arbiter.release(0);
  for (std::thread& thread : threads) thread.join();
  return order;
}

TEST(DeviceArbiterTest, FirstComeFirstServed) {
  EXPECT_THAT(order_of(Policy::kFifo, {{3, {9, 1}}, {1, {5, 2}}, {2, {7, 0}}}), ElementsAre(3, 1, 2));
}

TEST(DeviceArbiterTest, GreaterPriorityFirstThenWhoAskedFirst) {
  EXPECT_THAT(order_of(Policy::kPriority, {{3, {1, 0}}, {1, {5, 0}}, {2, {5, 0}}, {4, {2, 0}}}),
              ElementsAre(1, 2, 4, 3));
}

TEST(DeviceArbiterTest, EarliestDeadlineFirst) {
  EXPECT_THAT(order_of(Policy::kEdf, {{3, {9, 300}}, {1, {1, 100}}, {2, {5, 200}}}), ElementsAre(1, 2, 3));
}

// Tenant 0 was served last: 1, 2, ... are next in turn, whoever asked first.
TEST(DeviceArbiterTest, RoundRobinGoesOnFromWhoWasServedLast) {
  EXPECT_THAT(order_of(Policy::kRoundRobin, {{5, {}}, {2, {}}, {7, {}}, {1, {}}}), ElementsAre(1, 2, 5, 7));
}

TEST(DeviceArbiterTest, APlainLockServesAllInSomeOrder) {
  EXPECT_THAT(order_of(Policy::kExclusive, {{5, {}}, {2, {}}, {7, {}}}), testing::UnorderedElementsAre(2, 5, 7));
}

TEST(DeviceArbiterTest, ARunningInferenceGivesWayToGreaterPriorityOnly) {
  auto made = DeviceArbiter::create(Policy::kPriorityPreemptive, 3);
  ASSERT_TRUE(made);
  DeviceArbiter& arbiter = *made;
  arbiter.acquire(0, {.priority = 1});
  EXPECT_FALSE(arbiter.give_way(0));  // nobody waits
  std::atomic<int> step{0};
  std::thread equal([&] {
    arbiter.acquire(1, {.priority = 1});
    arbiter.release(1);
  });
  wait_for_waiting(arbiter, 1);
  EXPECT_FALSE(arbiter.give_way(0));  // no greater one
  std::thread greater([&] {
    arbiter.acquire(2, {.priority = 2});
    step = 1;
    arbiter.release(2);
  });
  wait_for_waiting(arbiter, 2);
  EXPECT_TRUE(arbiter.give_way(0));  // and is back before its equal, which asked later
  EXPECT_EQ(step, 1);
  EXPECT_EQ(arbiter.waiting(), 1u);
  arbiter.release(0);
  equal.join();
  greater.join();
}

TEST(DeviceArbiterTest, WorkOnTheDeviceIsFinishedBeforeAnotherHasItAndOnlyThen) {
  auto made = DeviceArbiter::create(Policy::kPriorityPreemptive, 3);
  ASSERT_TRUE(made);
  DeviceArbiter& arbiter = *made;
  arbiter.acquire(0, {.priority = 1});
  int finished = 0;
  std::atomic<bool> other_has_it{false};
  const auto finish = [&] {
    EXPECT_FALSE(other_has_it);
    ++finished;
  };
  EXPECT_FALSE(arbiter.give_way(0, finish));
  std::thread equal([&] {
    arbiter.acquire(1, {.priority = 1});
    arbiter.release(1);
  });
  wait_for_waiting(arbiter, 1);
  EXPECT_FALSE(arbiter.give_way(0, finish));
  EXPECT_EQ(finished, 0) << "nobody is to have the device";
  std::thread greater([&] {
    arbiter.acquire(2, {.priority = 2});
    other_has_it = true;
    arbiter.release(2);
  });
  wait_for_waiting(arbiter, 2);
  EXPECT_TRUE(arbiter.give_way(0, finish));
  EXPECT_EQ(finished, 1);
  EXPECT_TRUE(other_has_it);
  arbiter.release(0);
  equal.join();
  greater.join();
}

TEST(DeviceArbiterTest, OtherPoliciesDoNotPreempt) {
  auto arbiter = DeviceArbiter::create(Policy::kPriority, 2);
  ASSERT_TRUE(arbiter);
  arbiter->acquire(0, {.priority = 0});
  std::thread other([&] {
    arbiter->acquire(1, {.priority = 9});
    arbiter->release(1);
  });
  wait_for_waiting(*arbiter, 1);
  EXPECT_FALSE(arbiter->give_way(0));
  arbiter->release(0);
  other.join();
}

// Never more than one inside, and nobody is forgotten.
TEST(DeviceArbiterTest, ManyThreadsExcludeEachOther) {
  for (const Policy policy : {Policy::kFifo, Policy::kPriorityPreemptive, Policy::kRoundRobin, Policy::kExclusive}) {
    auto arbiter = DeviceArbiter::create(policy, 6);
    ASSERT_TRUE(arbiter);
    std::atomic<int> inside{0};
    int64_t counted = 0;  // guarded by the device alone
    std::vector<std::thread> threads;
    for (size_t t = 0; t < 6; ++t)
      threads.emplace_back([&, t] {
        for (int i = 0; i < 400; ++i) {
          arbiter->acquire(t, {.priority = static_cast<int64_t>(t % 3)});
          EXPECT_EQ(inside.fetch_add(1), 0);
          ++counted;
          inside.fetch_sub(1);
          arbiter->give_way(t);
          EXPECT_EQ(inside.fetch_add(1), 0);
          inside.fetch_sub(1);
          arbiter->release(t);
        }
      });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(counted, 6 * 400);
  }
}

TEST(DeviceArbiterTest, SeveralServersServeSeveral) {
  auto arbiter = DeviceArbiter::create(Policy::kFifo, 3, 2);
  ASSERT_TRUE(arbiter);
  arbiter->acquire(0, {});
  arbiter->acquire(1, {});
  std::atomic<bool> served{false};
  std::thread third([&] {
    arbiter->acquire(2, {});
    served = true;
    arbiter->release(2);
  });
  wait_for_waiting(*arbiter, 1);
  EXPECT_FALSE(served);
  arbiter->release(1);
  third.join();
  arbiter->release(0);
}

// A process that is killed while it holds the device, or waits for it, blocks nobody.
TEST(DeviceArbiterTest, AKilledProcessIsForgotten) {
  auto arbiter = DeviceArbiter::create(Policy::kFifo, 3);
  ASSERT_TRUE(arbiter);
  const pid_t holder = ::fork();
  if (holder == 0) {
    arbiter->acquire(0, {});
    for (;;) ::pause();
  }
  pid_t waiter = 0;
  {
    // The child holds it as soon as this process would have to wait.
    bool held = false;
    for (int i = 0; i < 2000 && !held; ++i) {
      ::usleep(1000);
      std::atomic<bool> done{false};
      const pid_t probe = ::fork();
      if (probe == 0) {
        ::alarm(1);
        arbiter->acquire(2, {});
        ::_exit(0);
      }
      ::usleep(20'000);
      held = arbiter->waiting() == 1;
      if (held) waiter = probe;
      if (!held) {
        ::kill(probe, SIGKILL);
        ::waitpid(probe, nullptr, 0);
        arbiter->forget(2);
      }
    }
    ASSERT_TRUE(held);
  }
  ::kill(waiter, SIGKILL);
  ::waitpid(waiter, nullptr, 0);
  arbiter->forget(2);
  ::kill(holder, SIGKILL);
  ::waitpid(holder, nullptr, 0);
  arbiter->forget(0);
  arbiter->acquire(1, {});  // would hang
  arbiter->release(1);
  EXPECT_EQ(arbiter->waiting(), 0u);
}

TEST(PolicyTest, NamesComeBack) {
  for (const std::string& name : policy_names()) {
    const auto policy = parse_policy(name);
    ASSERT_TRUE(policy);
    EXPECT_EQ(to_string(*policy), name);
  }
  const auto wrong = parse_policy("fifoo");
  ASSERT_FALSE(wrong);
  EXPECT_THAT(wrong.error().message(), HasSubstr("did you mean fifo"));
}

}  // namespace
}  // namespace strobe::tenants
