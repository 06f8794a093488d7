#include "measure/interference.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>

namespace strobe::measure {
namespace {

constexpr int64_t kSecond = 1'000'000'000;

UseCounters counters(int64_t time, int64_t own, int64_t wait, int64_t busy, int64_t stolen) {
  UseCounters made;
  made.time_ns = time;
  made.own_cpu_ns = own;
  made.wait_ns = wait;
  made.cpus = collect::CpuUse{busy, stolen};
  return made;
}

// One second on two CPUs: 2 s of CPU time in all.
Interference of_a_second(int64_t own, int64_t wait, int64_t busy, int64_t stolen) {
  const auto begin = counters(5 * kSecond, kSecond, kSecond, 7 * kSecond, 0);
  const auto end = counters(6 * kSecond, kSecond + own, kSecond + wait, 7 * kSecond + busy, stolen);
  return interference_between(begin, end, 2, 2);
}

TEST(Interference, SharesByHand) {
  const Interference quiet = of_a_second(kSecond, 0, kSecond, 0);
  EXPECT_EQ(quiet.others_share, 0);
  EXPECT_FALSE(quiet.disturbed());

  const Interference others = of_a_second(kSecond, 0, kSecond * 3 / 2, 0);
  EXPECT_DOUBLE_EQ(others.others_share, 0.25);  // half a second of two
  EXPECT_DOUBLE_EQ(others.degree(), 5);
  EXPECT_TRUE(others.disturbed());

  const Interference waited = of_a_second(kSecond, kSecond / 10, kSecond, 0);
  EXPECT_DOUBLE_EQ(waited.wait_share, 0.05);
  EXPECT_TRUE(waited.disturbed());

  const Interference stolen = of_a_second(kSecond, 0, kSecond, kSecond / 10);
  EXPECT_DOUBLE_EQ(stolen.stolen_share, 0.05);
  EXPECT_TRUE(stolen.disturbed());
}

TEST(Interference, OfAGpuCountsWhereItIsTold) {
  Interference found = of_a_second(kSecond, 0, kSecond, 0);
  EXPECT_EQ(found.degree(), 0) << "nothing is told";
  found.gpu.others_share = 0.01;
  EXPECT_DOUBLE_EQ(found.degree(), 0.5);
  found.gpu.clock_spread = 0.03;
  EXPECT_DOUBLE_EQ(found.degree(), 1.5);
  found.gpu.throttled_share = 0.5;
  EXPECT_DOUBLE_EQ(found.degree(), 10);
}

TEST(Interference, TicksAreNoOthers) {
  // 40 ms are two ticks on each of two CPUs: what the kernel's counting may be off.
  EXPECT_EQ(of_a_second(kSecond, 0, kSecond + 40'000'000, 0).others_share, 0);
  EXPECT_GT(of_a_second(kSecond, 0, kSecond + 41'000'000, 0).others_share, 0);
  EXPECT_EQ(of_a_second(kSecond, 0, kSecond - 40'000'000, 0).others_share, 0);
}

TEST(Interference, WithoutTheCountersOfTheCpusWaitingIsStillSeen) {
  auto begin = counters(0, 0, 0, 0, 0), end = counters(kSecond, kSecond, kSecond / 2, 0, 0);
  begin.cpus = end.cpus = std::nullopt;
  const Interference found = interference_between(begin, end, 2, 1);
  EXPECT_EQ(found.others_share, 0);
  EXPECT_DOUBLE_EQ(found.wait_share, 0.5);
}

// A program that never sleeps on the very CPU that is measured on takes half of it.
TEST(Interference, ABusyLoopBesideIsFound) {
  cpu_set_t before;
  ASSERT_EQ(::sched_getaffinity(0, sizeof before, &before), 0);
  int cpu = 0;
  while (CPU_ISSET(cpu, &before) == 0) ++cpu;
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(cpu, &one);
  ASSERT_EQ(::sched_setaffinity(0, sizeof one, &one), 0);
  const pid_t loop = ::fork();
  if (loop == 0) {
    for (;;) asm volatile("");
  }
  const UseCounters begin = count_use();
  const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(500);
  while (std::chrono::steady_clock::now() < until) {
  }
  const Interference found = interference_between(begin, count_use(), 1, 1);
  ::kill(loop, SIGKILL);
  ::waitpid(loop, nullptr, 0);
  ::sched_setaffinity(0, sizeof before, &before);
  EXPECT_TRUE(found.disturbed());
  EXPECT_GT(found.wait_share, 0.2);
  EXPECT_GT(found.involuntary_switches, 0);
}

}  // namespace
}  // namespace strobe::measure
