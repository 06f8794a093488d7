#include "predict/level_curves.h"

#include <gtest/gtest.h>

#include <cmath>

namespace strobe::predict {
namespace {

LevelPlace at(int64_t level, double size = 10) {
  return {"net", level, {size, size}};
}

double nothing(int64_t /*batch*/) {
  return 0;
}

// log(value) = 3 - 0.02 level + 0.5 log(batch): linear in both, so that interpolation is exact.
double law(int64_t level, int64_t batch) {
  return 3 - 0.02 * static_cast<double>(level) + 0.5 * std::log(static_cast<double>(batch));
}

LevelCurves curves_of_law(std::initializer_list<int64_t> levels) {
  LevelCurves curves;
  for (const int64_t level : levels) {
    std::vector<std::pair<int64_t, double>> values;
    for (const int64_t batch : {2, 8, 32}) values.emplace_back(batch, law(level, batch));
    curves.set(at(level), values);
  }
  return curves;
}

TEST(LevelCurves, FindsALinearLawBackBetweenLevelsAndBatches) {
  const LevelCurves curves = curves_of_law({0, 30, 90});
  for (const int64_t level : {0, 7, 30, 55, 90}) {
    for (const int64_t batch : {2, 3, 8, 20, 32}) {
      const auto value = curves.residual(at(level), batch, nothing);
      ASSERT_TRUE(value) << level;
      EXPECT_NEAR(*value, law(level, batch), 1e-12) << level << ' ' << batch;
    }
  }
}

TEST(LevelCurves, PhysicsCarriesBeyondTheBatchesOfALevel) {
  const LevelCurves curves = curves_of_law({0, 50});
  const auto physics = [](int64_t batch) { return law(20, batch) - 0.1; };
  const auto residual = curves.residual(at(20), 512, physics);
  ASSERT_TRUE(residual);
  EXPECT_NEAR(*residual, 0.1, 1e-12);  // 512 was never measured
}

TEST(LevelCurves, AWithheldLevelIsToldByItsNeighbours) {
  LevelCurves curves = curves_of_law({0, 40, 60, 80});
  curves.set(at(40), std::vector<std::pair<int64_t, double>>{{8, 100.0}});  // far off the law
  const auto told = curves.residual(at(40), 8, nothing, 40);
  ASSERT_TRUE(told);
  EXPECT_NEAR(*told, law(40, 8), 1e-12);
  EXPECT_FALSE(curves.residual(at(0), 8, nothing, 0));  // nothing below
  EXPECT_FALSE(curves.residual(at(80), 8, nothing, 80));
}

TEST(LevelCurves, SaysNothingOfOthers) {
  const LevelCurves curves = curves_of_law({10, 30});
  EXPECT_FALSE(curves.residual({"other", 20, {10, 10}}, 8, nothing));
  EXPECT_FALSE(curves.residual(at(5), 8, nothing));
  EXPECT_FALSE(curves.residual(at(31), 8, nothing));
  EXPECT_FALSE(curves.residual(at(20, 11), 8, nothing));  // equally named, but of e times the size
  EXPECT_TRUE(curves.residual(at(20, 10.2), 8, nothing));
}

TEST(LevelCurves, RepeatedBatchesCountByTheirMedian) {
  LevelCurves curves;
  curves.set(at(0), std::vector<std::pair<int64_t, double>>{{4, 1.0}, {4, 1.2}, {4, 9.0}});
  EXPECT_EQ(curves.residual(at(0), 4, nothing), 1.2);
}

TEST(InterpolationShare, FollowsWhatWasRight) {
  const std::vector<double> right = {1e-4, -1e-4}, wrong = {0.1, -0.08};
  const std::vector<LevelErrors> physics_right(3, {right, wrong}), curves_right(3, {wrong, right});
  EXPECT_LT(interpolation_share(physics_right), 0.05);
  EXPECT_GT(interpolation_share(curves_right), 0.95);
}

TEST(InterpolationShare, IsHalfWhereNeitherIsBetterAndNoneWithoutEvidence) {
  // Errors of equal size: by symmetry the posterior is symmetric around one half.
  const std::vector<LevelErrors> alike(4, {{0.05, 0}, {0, 0.05}});
  EXPECT_NEAR(interpolation_share(alike), 0.5, 1e-9);
  EXPECT_EQ(interpolation_share({}), 0);
}

}  // namespace
}  // namespace strobe::predict
