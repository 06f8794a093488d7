#include "gpu/clock_align.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace strobe::gpu {
namespace {

constexpr int64_t kOffset = 1'700'000'000'000'000'000;  // REALTIME against MONOTONIC
constexpr int64_t kSecond = 1'000'000'000;

ClockPair pair(int64_t monotonic, int64_t cupti, int64_t width = 100) {
  return {{static_cast<uint64_t>(cupti)}, monotonic, cupti, width};
}

TEST(ClockAlignment, ALineBetweenPairs) {
  const ClockAlignment clock({pair(0, kOffset), pair(kSecond, kOffset + kSecond + 100'000)});  // slewed by 100 ppm
  EXPECT_EQ(clock.steps(), 0U);
  EXPECT_EQ(clock.to_monotonic_ns(kOffset), 0);
  EXPECT_EQ(clock.to_monotonic_ns(kOffset + kSecond + 100'000), kSecond);
  EXPECT_NEAR(static_cast<double>(clock.to_monotonic_ns(kOffset + (kSecond + 100'000) / 2)), kSecond / 2.0, 1);
  // Outside: the offset of the nearest pair.
  EXPECT_EQ(clock.to_monotonic_ns(kOffset - 5'000), -5'000);
  EXPECT_EQ(clock.to_monotonic_ns(kOffset + kSecond + 100'000 + 7), kSecond + 7);
}

TEST(ClockAlignment, AClockThatIsSetDoesNotBendTimes) {
  // Set back by 3 s somewhere between the second pair and the third: what lies at a pair is still told right, while
  // times that came twice are those after the step.
  const ClockAlignment clock({pair(0, kOffset), pair(kSecond, kOffset + kSecond), pair(2 * kSecond, kOffset - kSecond),
                              pair(3 * kSecond, kOffset)});
  EXPECT_EQ(clock.steps(), 1U);
  EXPECT_EQ(clock.to_monotonic_ns(kOffset - kSecond + 7), 2 * kSecond + 7);
  EXPECT_EQ(clock.to_monotonic_ns(kOffset + 1'000), 3 * kSecond + 1'000);
  // Set forward by a minute.
  const ClockAlignment forward({pair(0, kOffset), pair(kSecond, kOffset + 61 * kSecond)});
  EXPECT_EQ(forward.steps(), 1U);
  EXPECT_EQ(forward.to_monotonic_ns(kOffset + 500), 500);
  EXPECT_EQ(forward.to_monotonic_ns(kOffset + 61 * kSecond + 9), kSecond + 9);
}

TEST(ClockAlignment, AnInterruptedReadingIsLeftOut) {
  const ClockAlignment clock({pair(0, kOffset), pair(kSecond, kOffset + kSecond + 900'000, 5'000'000),
                              pair(2 * kSecond, kOffset + 2 * kSecond)});
  EXPECT_EQ(clock.to_monotonic_ns(kOffset + kSecond), kSecond);
  EXPECT_EQ(clock.uncertainty_ns(), 50);
}

TEST(ClockAlignment, RandomSlewsAreFollowedWithinTheBrackets) {
  std::mt19937_64 random(7);
  for (int round = 0; round < 50; ++round) {
    // A clock whose rate changes every second by up to 500 ppm; readings off by up to 40 ns.
    std::vector<int64_t> truth{kOffset};
    std::uniform_int_distribution<int64_t> slew(-500'000, 500'000), off(-40, 40);
    for (int second = 0; second < 20; ++second) truth.push_back(truth.back() + kSecond + slew(random));
    std::vector<ClockPair> pairs;
    for (size_t i = 0; i < truth.size(); ++i)
      pairs.push_back(pair(static_cast<int64_t>(i) * kSecond, truth[i] + off(random)));
    std::shuffle(pairs.begin(), pairs.end(), random);
    const ClockAlignment clock(pairs);
    EXPECT_EQ(clock.steps(), 0U);
    std::uniform_real_distribution<double> at(0, 20);
    for (int i = 0; i < 100; ++i) {
      const double seconds = at(random);
      const auto whole = static_cast<size_t>(seconds);
      const double share = seconds - static_cast<double>(whole);
      const int64_t cupti =
          truth[whole] + static_cast<int64_t>(share * static_cast<double>(truth[whole + 1] - truth[whole]));
      EXPECT_NEAR(static_cast<double>(clock.to_monotonic_ns(static_cast<uint64_t>(cupti))), seconds * 1e9, 60);
    }
  }
}

TEST(ClockAlignment, WithoutPairsTimesStayAndNothingOverflows) {
  const ClockAlignment none({});
  EXPECT_TRUE(none.empty());
  EXPECT_EQ(none.to_monotonic_ns(123), 123);
  const ClockAlignment wild({pair(INT64_MIN, INT64_MAX), pair(INT64_MAX, INT64_MIN, INT64_MAX), pair(0, -1)});
  (void)wild.to_monotonic_ns(UINT64_MAX);
  (void)wild.to_monotonic_ns(0);
}

}  // namespace
}  // namespace strobe::gpu
