#include "predict/residual_process.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "predict/capacity.h"

namespace strobe::predict {
namespace {

ProcessPoint at(double feature, double batch) {
  return {{feature}, std::log(batch)};
}

TEST(ResidualProcess, OnePointByHand) {
  const ProcessScale scale = {.batch = 0.3, .network = 0.4, .both = 0, .noise = 0.5};
  const ResidualProcess process(scale, {at(0, 8)}, std::vector<double>{0.2});
  // Prior variance 0.09 + 0.16, noise 0.25: half of the residual is believed.
  EXPECT_NEAR(process.mean(at(0, 8)), 0.1, 1e-12);
  // Far away in the network's features: only what the batch tells, 0.09 / 0.5.
  EXPECT_NEAR(process.mean(at(100, 8)), 0.2 * 0.09 / 0.5, 1e-12);
  EXPECT_NEAR(process.closeness(at(0, 1)), 1, 1e-12);
  EXPECT_NEAR(process.closeness(at(0.3, 1)), std::exp(-0.5), 1e-12);
  EXPECT_EQ(ResidualProcess().mean(at(0, 8)), 0);
  EXPECT_EQ(ResidualProcess().closeness(at(0, 8)), 0);
}

TEST(ResidualProcess, WithholdingAGroupIsAFitWithoutIt) {
  std::mt19937_64 random(5);
  std::normal_distribution<double> normal;
  std::vector<ProcessPoint> points;
  std::vector<double> residuals;
  std::vector<size_t> groups;
  for (size_t net = 0; net < 4; ++net) {
    for (const double batch : {2.0, 8.0, 32.0}) {
      points.push_back(at(0.2 * static_cast<double>(net), batch));
      residuals.push_back(0.02 * normal(random));  // nothing wild: all rows are trusted alike
      groups.push_back(net);
    }
  }
  const ProcessScale scale = {.noise = 0.1};
  const std::vector<double> said = ResidualProcess(scale, points, residuals).without_group(groups);
  for (size_t net = 0; net < 4; ++net) {
    std::vector<ProcessPoint> others;
    std::vector<double> theirs;
    for (size_t i = 0; i < points.size(); ++i) {
      if (groups[i] == net) continue;
      others.push_back(points[i]);
      theirs.push_back(residuals[i]);
    }
    const ResidualProcess without(scale, others, theirs);
    for (size_t i = 0; i < points.size(); ++i) {
      if (groups[i] == net) {
        EXPECT_NEAR(said[i], without.mean(points[i]), 1e-9);
      }
    }
  }
}

TEST(ResidualProcess, AWildRowHardlyMovesIt) {
  std::vector<ProcessPoint> points;
  std::vector<double> residuals;
  for (int batch = 1; batch <= 20; ++batch) {
    points.push_back(at(0, batch));
    residuals.push_back(0.01);
  }
  const ResidualProcess clean({}, points, residuals);
  residuals[10] = 0.5;
  const ResidualProcess wild({}, points, residuals);
  EXPECT_NEAR(wild.mean(at(0, 11)), clean.mean(at(0, 11)), 0.02);
}

TEST(ResidualProcess, RestoresAndRefuses) {
  const std::vector<ProcessPoint> points = {at(0, 2), at(1, 4)};
  const ResidualProcess process({}, points, std::vector<double>{0.1, -0.1});
  const auto again = ResidualProcess::restore({}, points, process.weights());
  ASSERT_TRUE(again);
  EXPECT_EQ(again->mean(at(0.5, 3)), process.mean(at(0.5, 3)));
  EXPECT_FALSE(ResidualProcess::restore({}, points, {1}));
  EXPECT_FALSE(ResidualProcess::restore({}, {at(0, 1), {{1, 2}, 0}}, {1, 2}));
}

TEST(Capacity, IsTheBestCut) {
  const auto capacity =
      learn_capacity(std::vector<Trial>{{1, true}, {2, true}, {3, true}, {4, false}, {5, false}, {6, false}});
  ASSERT_TRUE(capacity);
  EXPECT_EQ(capacity->log_threshold, 3.5);
  EXPECT_EQ(capacity->chance(3.5), 0.5);
  EXPECT_GT(capacity->chance(3), 0.99);
  EXPECT_LT(capacity->chance(4), 0.01);
  // One that ran where it should not have does not move the threshold, but makes the answer less sure.
  const auto blurred = learn_capacity(
      std::vector<Trial>{{1, true}, {2, true}, {3, true}, {4, false}, {4.1, true}, {5, false}, {6, false}});
  ASSERT_TRUE(blurred);
  EXPECT_GT(blurred->width, capacity->width);
}

TEST(Capacity, IsUnknownWhereOnlyOneThingWasSeen) {
  EXPECT_FALSE(learn_capacity({}));
  EXPECT_FALSE(learn_capacity(std::vector<Trial>{{1, true}, {2, true}}));
  EXPECT_FALSE(learn_capacity(std::vector<Trial>{{1, false}, {2, false}}));
  EXPECT_FALSE(learn_capacity(std::vector<Trial>{{1, true}, {1, false}}));
}

}  // namespace
}  // namespace strobe::predict
