#include "analyze/spread.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <random>
#include <sstream>

#include "../support/test_data.h"

namespace strobe::analyze {
namespace {

using testing::DoubleNear;
using testing::HasSubstr;

// Rows of a CSV file without quotes.
std::vector<std::map<std::string, std::string>> read_csv(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  const auto cut = [](const std::string& text) {
    std::vector<std::string> cells;
    std::stringstream stream(text);
    for (std::string cell; std::getline(stream, cell, ',');) cells.push_back(cell);
    return cells;
  };
  const auto header = cut(line);
  std::vector<std::map<std::string, std::string>> rows;
  while (std::getline(file, line)) {
    const auto cells = cut(line);
    auto& row = rows.emplace_back();
    for (size_t i = 0; i < std::min(cells.size(), header.size()); ++i) row[header[i]] = cells[i];
  }
  return rows;
}

// By hand: 1..5 in an order that moves.
TEST(SpreadTest, OfFiveValues) {
  const std::vector<double> values{3, 1, 2, 5, 4};
  const Spread all = spread_of(values);
  EXPECT_EQ(all.count, 5u);
  EXPECT_DOUBLE_EQ(all.p0, 1);
  EXPECT_DOUBLE_EQ(all.p50, 3);
  EXPECT_NEAR(all.p99, 4.96, 1e-12);
  EXPECT_NEAR(all.p0_p99_range, 3.96, 1e-12);
  EXPECT_NEAR(all.normalized_range, 1.32, 1e-12);
  EXPECT_NEAR(all.r, 1.96 / 3, 1e-12);
  EXPECT_DOUBLE_EQ(all.iqr, 2);
  EXPECT_DOUBLE_EQ(all.mad, 1);
  EXPECT_NEAR(all.cv, std::sqrt(2.5) / 3, 1e-12);
  EXPECT_DOUBLE_EQ(all.jitter, (2 + 1 + 3 + 1) / 4.0);
  EXPECT_NEAR(all.jitter_p99, 2.97, 1e-12);
  EXPECT_NEAR(all.max_ratio, 5.0 / 3, 1e-12);
}

TEST(SpreadTest, OfNothingIsNoNumber) {
  const Spread all = spread_of({});
  EXPECT_TRUE(std::isnan(all.p50) && std::isnan(all.mean) && std::isnan(all.jitter));
}

TEST(SpreadTest, OfOneValueHasNoJitter) {
  const std::vector<double> one{7};
  const Spread all = spread_of(one);
  EXPECT_DOUBLE_EQ(all.p99, 7);
  EXPECT_DOUBLE_EQ(all.cv, 0);
  EXPECT_TRUE(std::isnan(all.jitter));
}

TEST(SpreadTest, NothingIsTrimmedUnlessAsked) {
  std::vector<double> values(200, 10);
  values.push_back(1000);
  EXPECT_EQ(trimmed(values, Trim::kNone).size(), 201u);
  EXPECT_EQ(trimmed(values, Trim::kIqr).size(), 200u);
  EXPECT_EQ(trimmed(values, Trim::kP1P99).size(), 200u);
  EXPECT_DOUBLE_EQ(spread_of(values).p100, 1000);
  const auto wrong = parse_trim("p5");
  ASSERT_FALSE(wrong);
  EXPECT_THAT(wrong.error().message(), HasSubstr("expected none, p1-p99 or iqr"));
}

TEST(SpreadTest, WidthsAgainstAReference) {
  EXPECT_EQ(width_change(12, 10).label, "amplified");
  EXPECT_NEAR(width_change(12, 10).percentage_change, 20, 1e-12);
  EXPECT_EQ(width_change(9, 10).label, "damped");
  EXPECT_EQ(width_change(10 * (1 + 5e-10), 10).label, "unchanged");
  EXPECT_EQ(width_change(1, 0).label, "unknown");
}

// Against the definition, by integrating |Q_a - Q_b| over a fine grid; a shifted sample is the shift away.
TEST(SpreadTest, WassersteinDistance) {
  std::mt19937 random(7);
  std::lognormal_distribution<double> law(1, 0.5);
  std::vector<double> a(700), b(300);
  for (double& value : a) value = law(random);
  for (double& value : b) value = 1.3 * law(random);
  const double distance = wasserstein_1(a, b);
  auto of_a = a, of_b = b;
  std::sort(of_a.begin(), of_a.end());
  std::sort(of_b.begin(), of_b.end());
  double integral = 0;
  constexpr int kSteps = 2'100'000;
  for (int i = 0; i < kSteps; ++i) {
    const double u = (i + 0.5) / kSteps;
    integral += std::abs(of_a[static_cast<size_t>(u * 700)] - of_b[static_cast<size_t>(u * 300)]) / kSteps;
  }
  EXPECT_NEAR(distance, integral, 1e-9);
  auto shifted = a;
  for (double& value : shifted) value += 2.5;
  EXPECT_NEAR(wasserstein_1(a, shifted), 2.5, 1e-12);
  EXPECT_EQ(wasserstein_1(a, a), 0);
}

TEST(SpreadTest, SpearmanTakesAverageRanks) {
  // Ranks 1 2.5 2.5 4 5 and 2 1 3.5 3.5 5: 7.25 / 9.5.
  EXPECT_NEAR(spearman(std::vector<double>{1, 2, 2, 3, 5}, std::vector<double>{2, 1, 4, 4, 9}), 7.25 / 9.5, 1e-12);
  EXPECT_TRUE(std::isnan(spearman(std::vector<double>{1, 1}, std::vector<double>{1, 2})));
}

// The published tables' own identities, which these definitions must satisfy to 1e-9.
TEST(SpreadTest, PublishedLatencySummariesHold) {
  const auto path = test::shared_data("pperf/latency_summary_mps_on_excerpt.csv");
  STROBE_REQUIRE_DATA(path);
  const auto rows = read_csv(path);
  ASSERT_GE(rows.size(), 5u);
  for (auto row : rows) {
    const auto number = [&](const char* key) { return std::stod(row.at(key)); };
    EXPECT_NEAR(number("p99_ms") - number("p0_ms"), number("p0_p99_range_ms"), 1e-9);
    EXPECT_NEAR(width_change(number("p0_p99_range_ms"), number("p50_ms")).factor, number("normalized_range"), 1e-9);
    EXPECT_NEAR(number("p75_ms") - number("p25_ms"), number("iqr_ms"), 1e-9);
  }
}

TEST(SpreadTest, PublishedWidthChangesAreReproduced) {
  const auto path = test::shared_data("pperf/predictability_min_to_p99_mps_on_excerpt.csv");
  STROBE_REQUIRE_DATA(path);
  int compared = 0;
  for (auto row : read_csv(path))
    for (const std::string rate : {"r7p5", "r15", "r25", "r50"}) {
      const WidthChange change =
          width_change(std::stod(row.at(rate + "_p0_p99_range_ms")), std::stod(row.at("clear_p0_p99_range_ms")));
      EXPECT_NEAR(change.percentage_change, std::stod(row.at(rate + "_percentage_change")), 1e-9);
      ++compared;
    }
  EXPECT_GE(compared, 40);
}

}  // namespace
}  // namespace strobe::analyze
