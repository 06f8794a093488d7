#include "analyze/grid_effects.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace strobe::analyze {
namespace {

RunLatencies run_of(std::map<std::string, std::string> factors, const std::string& tenant, std::vector<double> ms) {
  RunLatencies run;
  run.factors = std::move(factors);
  run.groups.push_back({.name = tenant, .latency_ms = std::move(ms), .interval_ms = {}});
  for (const auto& [factor, level] : run.factors) run.name += factor + "=" + level + " ";
  return run;
}

size_t row_where(const Table& table, std::map<std::string, std::string> texts) {
  for (size_t row = 0; row < table.row_count(); ++row) {
    bool all = true;
    for (const auto& [column, text] : texts) all = all && table.text(row, column) == text;
    if (all) return row;
  }
  ADD_FAILURE() << "no such row";
  return 0;
}

// Four constant cells of a crossed design: AA 10, AB 13, BA 14, BB 22.
std::vector<RunLatencies> four_cells() {
  const auto cell = [](const char* lidar, const char* camera, double ms) {
    return run_of({{"lidar.source.scene", lidar}, {"camera.source.scene", camera}}, "lidar",
                  std::vector<double>(120, ms));
  };
  std::vector<RunLatencies> runs = {cell("A", "A", 10), cell("A", "B", 13), cell("B", "A", 14), cell("B", "B", 22)};
  for (RunLatencies& run : runs) run.groups.push_back({.name = "camera", .latency_ms = {1, 2}, .interval_ms = {}});
  return runs;
}

TEST(GridEffects, ContrastsOfFourCellsByHand) {
  auto effects = main_effects(four_cells(), {});
  ASSERT_TRUE(effects) << effects.error().to_string();
  for (const char* statistic : {"p50", "mean", "p99"}) {
    // Own input: (BA - AA + BB - AB) / 2 = (4 + 9) / 2; co-runner's: (AB - AA + BB - BA) / 2 = (3 + 8) / 2.
    const size_t own = row_where(*effects, {{"tenant", "lidar"}, {"whose", "own"}, {"statistic", statistic}});
    EXPECT_DOUBLE_EQ(*effects->number(own, "difference_ms"), 6.5);
    EXPECT_EQ(effects->text(own, "factor"), "lidar.source.scene");
    EXPECT_EQ(*effects->number(own, "pairs"), 2);
    EXPECT_NEAR(*effects->number(own, "change"), 100 * 6.5 / 11.5, 1e-9);
    const size_t other = row_where(*effects, {{"tenant", "lidar"}, {"whose", "co-runner"}, {"statistic", statistic}});
    EXPECT_DOUBLE_EQ(*effects->number(other, "difference_ms"), 5.5);
    // Frames that do not vary leave no doubt.
    EXPECT_DOUBLE_EQ(*effects->number(other, "low_ms"), 5.5);
    EXPECT_DOUBLE_EQ(*effects->number(other, "high_ms"), 5.5);
  }
  const Table both = interactions(four_cells(), {});
  const size_t row = row_where(both, {{"tenant", "lidar"}, {"statistic", "p50"}});
  EXPECT_DOUBLE_EQ(*both.number(row, "difference_ms"), 22.0 - 14 - 13 + 10);
  EXPECT_EQ(*both.number(row, "quadruples"), 1);
}

TEST(GridEffects, ACellThatFailedTakesItsPartnerAlong) {
  std::vector<RunLatencies> runs = four_cells();
  runs[3].groups.clear();
  auto effects = main_effects(runs, {});
  ASSERT_TRUE(effects);
  const size_t own = row_where(*effects, {{"tenant", "lidar"}, {"whose", "own"}, {"statistic", "p50"}});
  EXPECT_DOUBLE_EQ(*effects->number(own, "difference_ms"), 4);
  EXPECT_EQ(*effects->number(own, "pairs"), 1);
  EXPECT_EQ(interactions(runs, {}).row_count(), 0U);
}

TEST(GridEffects, IntervalsHoldTheTruth) {
  // A factor that adds 2 ms to a median of 10, seen through noise, and one that does nothing.
  std::mt19937_64 random(5);
  int held = 0, clear = 0;
  constexpr int kTrials = 60;
  for (int trial = 0; trial < kTrials; ++trial) {
    std::vector<RunLatencies> runs;
    for (const char* policy : {"fifo", "edf"})
      for (const char* rate : {"10", "12"}) {
        std::normal_distribution<double> noise(std::string(policy) == "edf" ? 12 : 10, 1.5);
        std::vector<double> ms;
        for (int i = 0; i < 200; ++i) ms.push_back(noise(random));
        runs.push_back(run_of({{"policy", policy}, {"rate", rate}}, "a", std::move(ms)));
      }
    auto effects = main_effects(runs, {.resamples = 300, .seed = static_cast<uint64_t>(trial) + 1});
    ASSERT_TRUE(effects);
    const size_t policy = row_where(*effects, {{"factor", "policy"}, {"statistic", "mean"}});
    const size_t rate = row_where(*effects, {{"factor", "rate"}, {"statistic", "mean"}});
    held += *effects->number(policy, "low_ms") <= 2 && 2 <= *effects->number(policy, "high_ms");
    held += *effects->number(rate, "low_ms") <= 0 && 0 <= *effects->number(rate, "high_ms");
    clear += *effects->number(policy, "low_ms") > 0;
  }
  EXPECT_GE(held, 2 * kTrials * 85 / 100);
  EXPECT_EQ(clear, kTrials);
}

TEST(GridEffects, RepetitionsAreAveragedAndWidenTheInterval) {
  const auto runs = [](double second) {
    return std::vector<RunLatencies>{run_of({{"policy", "fifo"}}, "a", std::vector<double>(100, 10)),
                                     run_of({{"policy", "edf"}}, "a", std::vector<double>(100, 12)),
                                     run_of({{"policy", "fifo"}}, "a", std::vector<double>(100, 10)),
                                     run_of({{"policy", "edf"}}, "a", std::vector<double>(100, second))};
  };
  auto same = main_effects(runs(12), {}), apart = main_effects(runs(16), {});
  ASSERT_TRUE(same);
  ASSERT_TRUE(apart);
  EXPECT_DOUBLE_EQ(*same->number(0, "difference_ms"), 2);
  EXPECT_DOUBLE_EQ(*same->number(0, "high_ms") - *same->number(0, "low_ms"), 0);
  EXPECT_DOUBLE_EQ(*apart->number(0, "difference_ms"), 4);
  EXPECT_DOUBLE_EQ(*apart->number(0, "low_ms"), 2);
  EXPECT_DOUBLE_EQ(*apart->number(0, "high_ms"), 6);
}

TEST(GridEffects, NothingThatVariesIsAnError) {
  const std::vector<RunLatencies> one = {run_of({{"policy", "fifo"}}, "a", std::vector<double>(50, 1))};
  EXPECT_FALSE(main_effects(one, {}));
  EXPECT_EQ(interactions({}, {}).row_count(), 0U);
  EXPECT_EQ(grid_levels({}).row_count(), 0U);
}

TEST(GridEffects, RangesKeepTheTail) {
  // One frame in 200 is ten times as long: the original's outlier removal would report a range of 2.
  std::vector<double> ms(200, 10);
  for (size_t i = 0; i < 100; ++i) ms[i] = 9;
  for (size_t i = 0; i < 50; ++i) ms[i] = 11;
  ms[199] = 100;
  const std::vector<RunLatencies> runs = {run_of({{"priorities", "equal"}}, "a", ms),
                                          run_of({{"priorities", "a-first"}}, "a", std::vector<double>(200, 5))};
  const Table cells = grid_cells(runs), levels = grid_levels(runs);
  EXPECT_DOUBLE_EQ(*cells.number(0, "range_ms"), 91);
  EXPECT_DOUBLE_EQ(*cells.number(0, "max_ms"), 100);
  EXPECT_EQ(levels.text(0, "level"), "equal");
  EXPECT_DOUBLE_EQ(*levels.number(0, "range_ms"), 91);
  EXPECT_DOUBLE_EQ(*levels.number(1, "range_ms"), 0);
  double sum = 0;
  for (const double value : ms) sum += value;
  EXPECT_NEAR(*levels.number(1, "mean_change"), 100 * (5 / (sum / 200) - 1), 1e-9);
}

TEST(GridEffects, QuartilesAreQuarters) {
  // 1 to 101: p25 26 and p75 76 (type 7); the original took the 28th percentile for the quartile in its priority plots.
  std::vector<double> ms;
  for (int i = 1; i <= 101; ++i) ms.push_back(i);
  const std::vector<RunLatencies> runs = {run_of({{"policy", "fifo"}}, "a", ms), run_of({{"policy", "edf"}}, "a", ms)};
  const Table levels = grid_levels(runs);
  EXPECT_DOUBLE_EQ(*levels.number(0, "p25_ms"), 26);
  EXPECT_DOUBLE_EQ(*levels.number(0, "p75_ms"), 76);
}

}  // namespace
}  // namespace strobe::analyze
