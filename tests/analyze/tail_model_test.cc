#include "analyze/tail_model.h"

#include <gmock/gmock.h>

#include <array>
#include <cmath>
#include <random>

namespace strobe::analyze {
namespace {

using testing::HasSubstr;

constexpr std::array kProbabilities = {1e-3, 1e-4};

// An exponential law: P(X > x) = exp(-x / 10), so the bound at p is -10 ln p.
TEST(TailModelTest, FindsTheTailOfAKnownLaw) {
  double worst = 0;
  int held = 0;
  constexpr int kTrials = 20;
  for (int trial = 0; trial < kTrials; ++trial) {
    std::mt19937 random(static_cast<unsigned>(trial));
    std::exponential_distribution<double> law(0.1);
    std::vector<double> values(10'000);
    for (double& value : values) value = 50 + law(random);
    const TailModel model = tail_model(values, kProbabilities);
    if (!model.accepted) continue;  // 5 % of right models are refused
    const double truth = 50 - 10 * std::log(1e-4);
    worst = std::max(worst, std::abs(model.bounds[1].value / truth - 1));
    if (model.bounds[1].low <= truth && truth <= model.bounds[1].high) ++held;
    EXPECT_NEAR(model.shape, 0, 0.3);
  }
  EXPECT_LT(worst, 0.25);
  EXPECT_GE(held, 15);
}

TEST(TailModelTest, BoundsOfAHeavyTailAreFurtherOut) {
  std::mt19937 random(1);
  std::uniform_real_distribution<double> uniform(0, 1);
  std::vector<double> values(20'000);
  for (double& value : values) value = std::pow(1 - uniform(random), -0.3);  // Pareto: P(X > x) = x^(-1 / 0.3)
  const TailModel model = tail_model(values, kProbabilities);
  ASSERT_TRUE(model.accepted) << model.refusal;
  EXPECT_NEAR(model.shape, -0.3, 0.12);
  EXPECT_NEAR(model.bounds[0].value, std::pow(1e-3, -0.3), 0.1 * std::pow(1e-3, -0.3));
  EXPECT_GT(model.bounds[1].value, model.bounds[0].value);
  EXPECT_LT(model.bounds[1].low, model.bounds[1].high);
}

TEST(TailModelTest, IsRefusedForFewValues) {
  const TailModel model = tail_model(std::vector<double>(999, 1.0), kProbabilities);
  EXPECT_FALSE(model.accepted);
  EXPECT_THAT(model.refusal, HasSubstr("needs 1000 values, there are 999"));
}

TEST(TailModelTest, IsRefusedWhereTheTailIsAnotherLaw) {
  // Two clusters above the threshold: no such tail.
  std::mt19937 random(1);
  std::uniform_real_distribution<double> uniform(0, 1);
  std::vector<double> values(10'000);
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = i % 20 == 0 ? (i % 40 == 0 ? 100 : 200) + 0.1 * uniform(random) : uniform(random);
  const TailModel model = tail_model(values, kProbabilities);
  EXPECT_FALSE(model.accepted);
  EXPECT_THAT(model.refusal, HasSubstr("Anderson-Darling"));
}

TEST(TailModelTest, EqualValuesHaveNoTail) {
  const TailModel model = tail_model(std::vector<double>(2000, 5.0), kProbabilities);
  EXPECT_FALSE(model.accepted);
}

}  // namespace
}  // namespace strobe::analyze
