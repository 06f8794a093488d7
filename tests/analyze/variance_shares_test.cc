#include "analyze/variance_shares.h"

#include <gmock/gmock.h>

#include <random>

namespace strobe::analyze {
namespace {

using testing::HasSubstr;

double share_of(const VarianceShares& shares, const std::string& name) {
  for (const auto& [factor, share] : shares.shares)
    if (factor == name) return share;
  return -1;
}

// Levels drawn so that each factor's main effect has a known part of the variance.
TEST(VarianceSharesTest, RecoversPlantedShares) {
  std::mt19937 random(3);
  std::normal_distribution<double> noise(0, 1);
  std::vector<FactorCell> cells;
  // Variances: policy +-2 -> 4, model +-1 -> 1, noise 1: of 6.
  for (const int policy : {0, 1})
    for (const int model : {0, 1})
      for (const int idle : {0, 1}) {
        FactorCell cell;
        cell.factors = {
            {"policy", std::to_string(policy)}, {"model", std::to_string(model)}, {"idle", std::to_string(idle)}};
        for (int i = 0; i < 4000; ++i) cell.values.push_back(4.0 * policy - 2 + 2.0 * model - 1 + noise(random));
        cells.push_back(std::move(cell));
      }
  const auto shares = variance_shares(cells);
  ASSERT_TRUE(shares);
  EXPECT_NEAR(share_of(*shares, "policy"), 4.0 / 6, 0.02);
  EXPECT_NEAR(share_of(*shares, "model"), 1.0 / 6, 0.02);
  EXPECT_NEAR(share_of(*shares, "idle"), 0, 0.02);
  EXPECT_NEAR(shares->within, 1.0 / 6, 0.02);
  EXPECT_EQ(shares->shares.front().first, "policy");
  double sum = shares->interactions + shares->within;
  for (const auto& [factor, share] : shares->shares) sum += share;
  EXPECT_NEAR(sum, 1, 1e-9);
}

// An exclusive or is all interaction.
TEST(VarianceSharesTest, InteractionsAreNoMainEffect) {
  std::vector<FactorCell> cells;
  for (const int a : {0, 1})
    for (const int b : {0, 1})
      cells.push_back({{{"a", std::to_string(a)}, {"b", std::to_string(b)}}, std::vector<double>(10, a ^ b)});
  const auto shares = variance_shares(cells);
  ASSERT_TRUE(shares);
  EXPECT_NEAR(shares->explained, 0, 1e-9);
  EXPECT_NEAR(shares->interactions, 1, 1e-9);
}

// Two factors that always go together share what they explain.
TEST(VarianceSharesTest, TwinsShareAlike) {
  const auto shares = variance_shares({{{{"a", "0"}, {"b", "0"}}, {1, 1}}, {{{"a", "1"}, {"b", "1"}}, {3, 3}}});
  ASSERT_TRUE(shares);
  EXPECT_NEAR(share_of(*shares, "a"), 0.5, 1e-12);
  EXPECT_NEAR(share_of(*shares, "b"), 0.5, 1e-12);
}

TEST(VarianceSharesTest, SaysWhatIsMissing) {
  const auto one = variance_shares({{{{"a", "0"}}, {1, 2}}});
  ASSERT_FALSE(one);
  EXPECT_THAT(one.error().message(), HasSubstr("at least two cells"));
  const auto constant = variance_shares({{{{"a", "0"}}, {1, 1}}, {{{"a", "1"}}, {1, 1}}});
  ASSERT_FALSE(constant);
  EXPECT_THAT(constant.error().message(), HasSubstr("no variance"));
  const auto none = variance_shares({{{{"a", "0"}}, {1, 1}}, {{{"a", "0"}}, {2, 1}}});
  ASSERT_FALSE(none);
  EXPECT_THAT(none.error().message(), HasSubstr("no factor has several levels"));
}

}  // namespace
}  // namespace strobe::analyze
