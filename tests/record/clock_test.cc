#include "record/clock.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "record/recorded.h"
#include "strobe/record/annotate.h"
#include "support/test_data.h"

namespace strobe::record {
namespace {

using strobe::test::ScratchFolder;
using testing::HasSubstr;
using testing::StartsWith;

TEST(ClockChoice, CounterOnlyWhereProcessorAndKernelTrustIt) {
  EXPECT_TRUE(choose_clock(true, "tsc").counter);
  EXPECT_TRUE(choose_clock(true, "kvm-clock").counter);
  EXPECT_TRUE(choose_clock(true, "").counter);
  EXPECT_EQ(choose_clock(true, "tsc").note, "tsc");
  const ClockChoice distrusted = choose_clock(true, "hpet");
  EXPECT_FALSE(distrusted.counter);
  EXPECT_THAT(distrusted.note, HasSubstr("hpet"));
  const ClockChoice uneven = choose_clock(false, "tsc");
  EXPECT_FALSE(uneven.counter);
  EXPECT_THAT(uneven.note, StartsWith("monotonic (the processor has no invariant"));
}

TEST(ClockMap, FollowsEachPieceAndTheWholeOutside) {
  // 2 ticks a nanosecond, then 4: a clock that was slewed hard.
  const ClockMap map(true, {{1000, 500, 0, 0}, {3000, 1500, 0, 0}, {7000, 2500, 0, 0}});
  EXPECT_EQ(map.to_monotonic_ns(1000), 500);
  EXPECT_EQ(map.to_monotonic_ns(2000), 1000);
  EXPECT_EQ(map.to_monotonic_ns(3000), 1500);
  EXPECT_EQ(map.to_monotonic_ns(5000), 2000);
  EXPECT_EQ(map.to_monotonic_ns(1500), 750) << "back to an earlier piece";
  EXPECT_EQ(map.to_monotonic_ns(10'000), 3500) << "2000 ns in 6000 ticks";
  EXPECT_EQ(map.to_monotonic_ns(400), 300);
  EXPECT_EQ(map.rejected(), 0U);
}

TEST(ClockMap, CountsPairsThatRunBackwards) {
  const ClockMap map(true, {{1000, 500, 0, 0}, {900, 600, 0, 0}, {2000, 1500, 0, 0}, {3000, -5, 0, 0}});
  EXPECT_EQ(map.rejected(), 2U);
  EXPECT_EQ(map.to_monotonic_ns(1500), 1000);
}

TEST(ClockMap, WidensReadingsCutTo56Bits) {
  const uint64_t turn = kClockMask + 1;
  const ClockMap map(true, {{5 * turn + 100, 1, 0, 0}, {5 * turn + 200, 2, 0, 0}});
  EXPECT_EQ(map.widen(150), 5 * turn + 150);
  EXPECT_EQ(map.widen(50), 5 * turn + 50);
  const ClockMap late(true, {{6 * turn - 10, 1, 0, 0}, {6 * turn - 5, 2, 0, 0}});
  EXPECT_EQ(late.widen(7), 6 * turn + 7) << "the cut counter began anew";
}

TEST(ClockMap, AnyPairsAndReadingsGiveANumber) {
  const std::vector<ClockPair> wild = {
      {~0ULL, INT64_MAX, INT64_MIN, -1}, {0, INT64_MIN, 0, 0}, {1, 1, 1, 1}, {~0ULL, 4'000'000'000'000'000'000, 0, 0}};
  const ClockMap map(true, wild);
  for (const uint64_t reading : {uint64_t{0}, uint64_t{1}, ~uint64_t{0}, uint64_t{1} << 63}) {
    map.to_monotonic_ns(reading);
    map.widen(reading);
  }
  EXPECT_GE(map.rejected(), 2U);
}

// Events lie between readings of CLOCK_MONOTONIC taken around them.
void expect_times_within_brackets(bool use_counter) {
  constexpr int64_t kSlackNs = 2000;
  const ScratchFolder folder;
  Options options;
  options.folder = folder.path();
  options.use_counter = use_counter;
  ASSERT_TRUE(start(options));
  std::vector<std::pair<int64_t, int64_t>> brackets;
  for (int i = 0; i < 60; ++i) {
    const int64_t before = monotonic_ns();
    mark(Name("m"), i);
    brackets.emplace_back(before, monotonic_ns());
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  timespec wall{};
  ::clock_gettime(CLOCK_REALTIME, &wall);
  const int64_t offset = wall.tv_sec * 1'000'000'000LL + wall.tv_nsec - monotonic_ns();
  ASSERT_TRUE(stop());
  auto recorded = test::read_all(folder.path());
  ASSERT_TRUE(recorded);
  const auto& thread = recorded->threads.at(0);
  ASSERT_EQ(thread.events.size(), brackets.size());
  for (size_t i = 0; i < brackets.size(); ++i) {
    EXPECT_GE(thread.events[i].time_ns, brackets[i].first - kSlackNs) << i;
    EXPECT_LE(thread.events[i].time_ns, brackets[i].second + kSlackNs) << i;
  }
  EXPECT_NEAR(static_cast<double>(thread.utc_minus_monotonic_ns - offset), 0, 50e6);
  const std::string clock = recorded->summary.facts.at("clock");
  if (use_counter) {
    EXPECT_EQ(clock, choose_clock().note);
  } else {
    EXPECT_EQ(clock, "monotonic (asked for)");
  }
}
TEST(Clock, CounterAgreesWithTheSystemsClock) {
  expect_times_within_brackets(true);
}
TEST(Clock, FallsBackToTheSystemsClock) {
  expect_times_within_brackets(false);
}

TEST(Clock, ARecordingKilledAtOnceHasARateAlready) {
  const ScratchFolder folder;
  Options options;
  options.folder = folder.path();
  ASSERT_TRUE(start(options));
  const int64_t before = monotonic_ns();
  mark(Name("m"), 1);
  const int64_t after = monotonic_ns();
  auto recorded = test::read_all(folder.path());  // as it would be found after a kill
  ASSERT_TRUE(stop());
  ASSERT_TRUE(recorded);
  EXPECT_GE(recorded->threads.at(0).events.at(0).time_ns, before - 2000);
  EXPECT_LE(recorded->threads.at(0).events.at(0).time_ns, after + 2000);
}

}  // namespace
}  // namespace strobe::record
