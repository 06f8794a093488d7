#include "measure/timing.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <random>
#include <thread>

namespace strobe::measure {
namespace {

// NIST/SEMATECH e-Handbook of Statistical Methods, 1.3.6.7.2, upper 0.025.
TEST(StudentT, IsThatOfPublishedTables) {
  const std::pair<size_t, double> table[] = {{1, 12.706}, {2, 4.303},  {5, 2.571},  {10, 2.228}, {11, 2.201},
                                             {15, 2.131}, {20, 2.086}, {30, 2.042}, {60, 2.000}, {100, 1.984}};
  for (const auto& [degrees, expected] : table) EXPECT_NEAR(student_t975(degrees), expected, 6e-4) << degrees;
  for (size_t degrees = 1; degrees < 200; ++degrees) EXPECT_LT(student_t975(degrees + 1), student_t975(degrees));
}

TEST(Summary, OfFiveValuesByHand) {
  // Mean 12, sum of squares 40, s = sqrt(10), half width 2.7764 * sqrt(10) / sqrt(5) / 12.
  const Summary summary = summarise({16, 8, 10, 14, 12});
  EXPECT_DOUBLE_EQ(summary.mean, 12);
  EXPECT_DOUBLE_EQ(summary.median, 12);
  EXPECT_DOUBLE_EQ(summary.p5, 8.4);
  EXPECT_DOUBLE_EQ(summary.p95, 15.6);
  EXPECT_NEAR(summary.half_width, 2.7764 * std::sqrt(2.0) / 12, 1e-6);
  EXPECT_EQ(summarise({3}).half_width, 0);
}

TEST(Summary, IntervalCoversTheMeanAsOftenAsItSays) {
  std::mt19937 random(7);
  std::normal_distribution<double> value(100, 10);
  int covered = 0;
  constexpr int kSamples = 4000;
  for (int i = 0; i < kSamples; ++i) {
    std::vector<double> values;
    for (int k = 0; k < 6; ++k) values.push_back(value(random));
    const Summary summary = summarise(values);
    if (std::abs(summary.mean - 100) <= summary.half_width * summary.mean) ++covered;
  }
  EXPECT_NEAR(covered, 0.95 * kSamples, 5 * std::sqrt(kSamples * 0.95 * 0.05));
}

size_t steps_until_stationary(const std::vector<double>& ms) {
  WarmUp warm_up;
  for (const double value : ms)
    if (warm_up.add(value)) return warm_up.steps();
  return 0;
}

TEST(WarmUp, SteadyStepsAreStationaryAfterTwoWindows) {
  EXPECT_EQ(steps_until_stationary(std::vector<double>(20, 100.0)), 6U);
  // 20 ms are 10 steps of 2 ms.
  EXPECT_EQ(steps_until_stationary(std::vector<double>(50, 2.0)), 20U);
}

TEST(WarmUp, WaitsForTheEndOfAFall) {
  std::vector<double> ms;
  for (int i = 0; i < 60; ++i) ms.push_back(100 + 200 * std::exp(-i / 5.0));
  const size_t steps = steps_until_stationary(ms);
  ASSERT_GT(steps, 0U);
  // The mean of what follows is within the tolerance of where it goes.
  EXPECT_LT(ms[steps], 105);
}

TEST(WarmUp, ASlowFallAllTheWayIsNotStationary) {
  std::vector<double> ms;
  for (int i = 0; i < 60; ++i) ms.push_back(100 * std::pow(0.995, i));
  EXPECT_EQ(steps_until_stationary(ms), 0U);
}

TEST(WarmUp, NoiseIsStationary) {
  std::mt19937 random(3);
  std::normal_distribution<double> value(100, 2);
  for (int run = 0; run < 200; ++run) {
    std::vector<double> ms(40);
    for (double& one : ms) one = value(random);
    EXPECT_GT(steps_until_stationary(ms), 0U);
  }
}

TimingOptions quick() {
  TimingOptions options;
  options.repetitions = 4;
  options.most_repetitions = 12;
  options.warmup_s = 0.01;
  options.pause_s = 0;
  return options;
}

TEST(TimeSteps, WarmsUpOnceAndRepeatsWithinItsBounds) {
  TimingOptions options = quick();
  options.half_width = 0;  // never reached: as many as are allowed
  options.attempts = 1;
  size_t steps = 0;
  const auto step = [&]() -> Result<void> {
    ++steps;
    return {};
  };
  const auto timing = time_steps(step, options);
  ASSERT_TRUE(timing) << timing.error().to_string();
  EXPECT_EQ(timing->ms.size(), 12U);
  EXPECT_EQ(timing->warmup_steps + 12, steps);
  EXPECT_EQ(timing->attempts, 1);

  options.measure_s = 0;  // over at once: as few as are allowed
  const auto few = time_steps(step, options);
  ASSERT_TRUE(few);
  EXPECT_EQ(few->ms.size(), 4U);
}

TEST(TimeSteps, EndsWhenTheMeanIsKnown) {
  TimingOptions options = quick();
  options.half_width = 1;  // any sample will do, once it is long enough
  options.attempts = 1;
  options.most_repetitions = 1000;
  const auto timing = time_steps(
      []() -> Result<void> {
        std::this_thread::sleep_for(std::chrono::milliseconds(25));
        return {};
      },
      options);
  ASSERT_TRUE(timing);
  // 0.2 s, and not a step more.
  double sum = 0;
  for (const double ms : timing->ms) sum += ms;
  EXPECT_GE(sum, 200);
  EXPECT_LT(sum - timing->ms.back(), 200);
}

TEST(TimeSteps, AnErrorOfTheStepEndsIt) {
  int steps = 0;
  const auto timing = time_steps(
      [&]() -> Result<void> {
        if (++steps == 9) return engine_error("planted");
        return {};
      },
      quick());
  ASSERT_FALSE(timing);
  EXPECT_EQ(timing.error().message(), "planted");
}

}  // namespace
}  // namespace strobe::measure
