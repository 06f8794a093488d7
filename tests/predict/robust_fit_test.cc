#include "predict/robust_fit.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "predict/cholesky.h"
#include "predict/conformal.h"

namespace strobe::predict {
namespace {

TEST(Cholesky, SolvesAndInverts) {
  // A = [[4, 2], [2, 3]]: L = [[2, 0], [1, sqrt 2]], A^-1 = [[3, -2], [-2, 4]] / 8.
  const auto factor = Cholesky::of({4, 2, 2, 3}, 2);
  ASSERT_TRUE(factor);
  const auto x = factor->solve(std::vector<double>{8, 7});  // A (1.25, 1.5)
  EXPECT_NEAR(x[0], 1.25, 1e-12);
  EXPECT_NEAR(x[1], 1.5, 1e-12);
  const auto inverse = factor->inverse();
  EXPECT_NEAR(inverse[0], 0.375, 1e-12);
  EXPECT_NEAR(inverse[1], -0.25, 1e-12);
  EXPECT_NEAR(inverse[3], 0.5, 1e-12);
  EXPECT_FALSE(Cholesky::of({1, 2, 2, 1}, 2));  // eigenvalues 3 and -1
}

TEST(Cholesky, OfRandomMatrices) {
  std::mt19937_64 random(3);
  std::normal_distribution<double> normal;
  for (const size_t n : {1, 7, 8, 9, 40}) {
    std::vector<double> b(n * n), a(n * n, 0), x(n);
    for (double& value : b) value = normal(random);
    for (double& value : x) value = normal(random);
    for (size_t i = 0; i < n; ++i)
      for (size_t j = 0; j < n; ++j) {
        for (size_t k = 0; k < n; ++k) a[i * n + j] += b[i * n + k] * b[j * n + k];
        if (i == j) a[i * n + j] += 1;
      }
    std::vector<double> ax(n, 0);
    for (size_t i = 0; i < n; ++i)
      for (size_t j = 0; j < n; ++j) ax[i] += a[i * n + j] * x[j];
    const auto factor = Cholesky::of(a, n);
    ASSERT_TRUE(factor);
    const auto solved = factor->solve(ax), inverse = factor->inverse();
    for (size_t i = 0; i < n; ++i) {
      EXPECT_NEAR(solved[i], x[i], 1e-9);
      double sum = 0;
      for (size_t j = 0; j < n; ++j) sum += inverse[i * n + j] * ax[j];
      EXPECT_NEAR(sum, x[i], 1e-9);
    }
  }
}

RobustFit line(const std::vector<Prior>& priors, const std::vector<double>& observed) {
  return {.priors = priors,
          .observed = observed,
          .model =
              [](std::span<const double> at, std::span<double> predicted) {
                for (size_t i = 0; i < predicted.size(); ++i)
                  predicted[i] = std::exp(at[0]) + std::exp(at[1]) * static_cast<double>(i);
              },
          .noise = 0.1};
}

TEST(RobustFit, FindsWhatMadeTheRowsInSpiteOfWildOnes) {
  const std::vector<Prior> priors = {{0, 2}, {0, 2}};
  std::vector<double> observed;
  for (int i = 0; i < 30; ++i) observed.push_back(3 + 0.5 * i);
  const auto clean = fit_robustly(line(priors, observed));
  EXPECT_NEAR(std::exp(clean[0]), 3, 0.01);
  EXPECT_NEAR(std::exp(clean[1]), 0.5, 0.001);
  observed[10] += 40;
  observed[20] += 60;
  const auto wild = fit_robustly(line(priors, observed));
  EXPECT_NEAR(std::exp(wild[0]), 3, 0.1);
  EXPECT_NEAR(std::exp(wild[1]), 0.5, 0.01);
}

TEST(RobustFit, IsItsPriorWhereNothingIsKnown) {
  const std::vector<Prior> priors = {{0.25, 1}, {-1, 0.5}};
  const auto at = fit_robustly(line(priors, {}));
  EXPECT_EQ(at, (std::vector<double>{0.25, -1}));
}

TEST(RobustFit, WeighsARowAgainstThePrior) {
  // One number, seen once as 2 with deviation 1, expected as 0 with deviation 1: in the middle.
  const std::vector<Prior> priors = {{0, 1}};
  const std::vector<double> observed = {2};
  const auto at = fit_robustly({.priors = priors,
                                .observed = observed,
                                .model = [](std::span<const double> p, std::span<double> out) { out[0] = p[0]; },
                                .noise = 1,
                                .huber = 100});
  EXPECT_NEAR(at[0], 1, 1e-6);
}

TEST(ConformalQuantile, IsTheRankThatOneMoreErrorWouldKeep) {
  EXPECT_EQ(conformal_quantile({}), 0);
  EXPECT_EQ(conformal_quantile({5}), 5);  // ceil(0.9 x 2) = 2 > 1: the largest
  std::vector<double> errors;
  for (int i = 99; i >= 1; --i) errors.push_back(i);
  EXPECT_EQ(conformal_quantile(errors), 90);  // ceil(0.9 x 100)
  EXPECT_EQ(conformal_quantile(errors, 0.5), 50);
}

TEST(ConformalQuantile, CoversAsPromised) {
  std::mt19937_64 random(11);
  std::normal_distribution<double> normal;
  int covered = 0;
  constexpr int kRounds = 4000;
  for (int round = 0; round < kRounds; ++round) {
    std::vector<double> errors(50);
    for (double& error : errors) error = std::abs(normal(random));
    covered += std::abs(normal(random)) <= conformal_quantile(errors) ? 1 : 0;
  }
  // At least 90 % in expectation, at most 1 / 51 more; four standard errors of the count.
  EXPECT_GT(covered, kRounds * 0.9 - 4 * std::sqrt(kRounds * 0.09));
  EXPECT_LT(covered, kRounds * 0.92 + 4 * std::sqrt(kRounds * 0.09));
}

}  // namespace
}  // namespace strobe::predict
