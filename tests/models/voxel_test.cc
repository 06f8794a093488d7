#include "models/voxel.h"

#include <gmock/gmock.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <random>

#include "base/file.h"
#include "models/lidar_detector.h"
#include "models/pillar_scatter.h"
#include "support/test_data.h"

namespace strobe::models {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::FloatEq;

PillarRule small_rule() {
  PillarRule rule;
  rule.low[0] = 0, rule.low[1] = -2, rule.low[2] = -1;
  rule.high[0] = 4, rule.high[1] = 2, rule.high[2] = 1;
  rule.side_x = rule.side_y = 1;
  rule.max_points = 3;
  rule.max_pillars = 5;
  return rule;
}

// What the paper says, point by point.
struct PlainPillars {
  std::vector<int32_t> cells, points;
  std::vector<float> features;
  int64_t in_range = 0, dropped = 0;
};
PlainPillars plain_pillars(const PillarRule& rule, std::span<const float> points, int columns) {
  PlainPillars out;
  std::map<int32_t, size_t> pillar_of;
  std::vector<std::vector<const float*>> held;
  for (size_t at = 0; at + static_cast<size_t>(columns) <= points.size(); at += static_cast<size_t>(columns)) {
    const float* p = points.data() + at;
    bool inside = true;
    for (int axis = 0; axis < 3; ++axis) inside = inside && p[axis] >= rule.low[axis] && p[axis] < rule.high[axis];
    if (!inside) continue;
    ++out.in_range;
    const auto cell_on = [](float value, float low, float side, int64_t count) {
      return std::min<int64_t>(static_cast<int64_t>(std::floor((value - low) * (1 / side))), count - 1);
    };
    const auto cell = static_cast<int32_t>(cell_on(p[1], rule.low[1], rule.side_y, rule.rows()) * rule.columns() +
                                           cell_on(p[0], rule.low[0], rule.side_x, rule.columns()));
    if (!pillar_of.contains(cell)) {
      if (static_cast<int64_t>(held.size()) == rule.max_pillars) {
        ++out.dropped;
        continue;
      }
      pillar_of[cell] = held.size();
      held.emplace_back();
      out.cells.push_back(cell);
    }
    auto& own = held[pillar_of[cell]];
    if (static_cast<int64_t>(own.size()) < rule.max_points) {
      own.push_back(p);
    } else {
      ++out.dropped;
    }
  }
  out.features.assign(static_cast<size_t>(kPillarFeatures * rule.max_points * rule.max_pillars), 0);
  for (size_t pillar = 0; pillar < held.size(); ++pillar) {
    float mean[3] = {0, 0, 0};
    for (const float* p : held[pillar])
      for (int axis = 0; axis < 3; ++axis) mean[axis] += p[axis];
    for (float& value : mean) value /= static_cast<float>(held[pillar].size());
    const float centre_x = rule.low[0] + (static_cast<float>(out.cells[pillar] % rule.columns()) + 0.5F) * rule.side_x;
    const float centre_y = rule.low[1] + (static_cast<float>(out.cells[pillar] / rule.columns()) + 0.5F) * rule.side_y;
    for (size_t row = 0; row < held[pillar].size(); ++row) {
      const float* p = held[pillar][row];
      const float values[] = {p[0],           p[1],           p[2],           p[3] * rule.intensity_scale,
                              p[0] - mean[0], p[1] - mean[1], p[2] - mean[2], p[0] - centre_x,
                              p[1] - centre_y};
      for (size_t f = 0; f < kPillarFeatures; ++f)
        out.features[(f * static_cast<size_t>(rule.max_points) + row) * static_cast<size_t>(rule.max_pillars) +
                     pillar] = values[f];
    }
    out.points.push_back(static_cast<int32_t>(held[pillar].size()));
  }
  return out;
}

void expect_same(const Pillars& found, const PlainPillars& wanted) {
  EXPECT_EQ(found.points_in_range(), wanted.in_range);
  EXPECT_EQ(found.dropped_points(), wanted.dropped);
  EXPECT_EQ(std::vector<int32_t>(found.cells().begin(), found.cells().end()), wanted.cells);
  EXPECT_EQ(std::vector<int32_t>(found.points().begin(), found.points().end()), wanted.points);
  ASSERT_EQ(found.features().size(), wanted.features.size());
  double worst = 0;
  for (size_t i = 0; i < wanted.features.size(); ++i)
    worst = std::max(worst, std::abs(double{found.features()[i]} - wanted.features[i]));
  EXPECT_LE(worst, 1e-5);
}

TEST(Pillars, ByHand) {
  Pillars pillars(small_rule());
  //                 cell (2, 1)          same pillar           off the map      cell (3, 3)
  pillars.fill(std::vector<float>{1.25F, 0.5F, 0, 0.5F, 1.75F, 0, 0.5F, 1, 4, 0, 0, 1, 3.5F, 1.5F, -1, 0.25F}, 4);
  EXPECT_THAT(pillars.cells(), ElementsAre(2 * 4 + 1, 3 * 4 + 3));
  EXPECT_THAT(pillars.points(), ElementsAre(2, 1));
  const auto feature = [&](size_t f, size_t row, size_t pillar) {
    return pillars.features()[(f * 3 + row) * 5 + pillar];
  };
  std::vector<float> first, second, alone;
  for (size_t f = 0; f < 9; ++f) {
    first.push_back(feature(f, 0, 0));
    second.push_back(feature(f, 1, 0));
    alone.push_back(feature(f, 0, 1));
  }
  EXPECT_THAT(first, ElementsAre(1.25F, 0.5F, 0, 0.5F, -0.25F, 0.25F, -0.25F, -0.25F, 0));
  EXPECT_THAT(second, ElementsAre(1.75F, 0, 0.5F, 1, 0.25F, -0.25F, 0.25F, 0.25F, -0.5F));
  EXPECT_THAT(alone, ElementsAre(3.5F, 1.5F, -1, 0.25F, 0, 0, 0, 0, 0));
  EXPECT_EQ(pillars.points_in_range(), 3);
}

TEST(Pillars, LimitsAndWhatIsNoNumber) {
  Pillars pillars(small_rule());
  const float nan = std::numeric_limits<float>::quiet_NaN(), infinite = std::numeric_limits<float>::infinity();
  std::vector<float> points;
  for (int i = 0; i < 5; ++i) points.insert(points.end(), {0.5F, -1.5F, 0, 1});  // two more than a pillar holds
  points.insert(points.end(), {nan, 0, 0, 1, 0, nan, 0, 1, infinite, 0, 0, 1, 1, 1, -infinite, 1});
  for (int i = 0; i < 6; ++i) points.insert(points.end(), {3.5F, static_cast<float>(i % 4) - 1.5F, 0, nan});
  for (int i = 0; i < 4; ++i) points.insert(points.end(), {2.5F, static_cast<float>(i) - 1.5F, 0, 1});
  points.push_back(1);  // half a point
  pillars.fill(points, 4);
  EXPECT_EQ(pillars.count(), 5);
  EXPECT_EQ(pillars.points_in_range(), 15);
  EXPECT_EQ(pillars.dropped_points(), 2 + 4);
  for (const float value : pillars.features()) EXPECT_TRUE(std::isfinite(value));
  pillars.fill({}, 4);
  EXPECT_EQ(pillars.count(), 0);
  EXPECT_THAT(pillars.features(), Each(0.0F)) << "the sweep before is cleared";
}

TEST(Pillars, AgreeWithThePlainOnesSweepAfterSweep) {
  std::mt19937 random(3);
  for (const int64_t max_pillars : {16, 37, 200}) {
    PillarRule rule = small_rule();
    rule.side_x = rule.side_y = 0.25F;
    rule.max_pillars = max_pillars;
    rule.max_points = 6;
    rule.intensity_scale = 1.0F / 255;
    Pillars pillars(rule);
    for (const size_t count : {2000, 10, 0, 700, 50'000}) {
      std::vector<float> points;
      for (size_t i = 0; i < count; ++i) {
        const auto uniform = [&](float low, float high) {
          return std::uniform_real_distribution<float>(low, high)(random);
        };
        points.insert(points.end(), {uniform(-1, 5), uniform(-3, 3), uniform(-1.5F, 1.5F), uniform(0, 255), 0});
      }
      pillars.fill(points, 5, 2);
      expect_same(pillars, plain_pillars(rule, points, 5));
    }
  }
}

TEST(Pillars, AgreeOnRealSweepsOfKittiAndNuscenes) {
  const auto check = [](const char* detector, const std::filesystem::path& path, int columns) {
    const std::string bytes = *read_file(path);
    std::vector<float> points(bytes.size() / sizeof(float));
    std::memcpy(points.data(), bytes.data(), points.size() * sizeof(float));
    LidarOptions options;
    options.max_pillars = 6000;
    const PillarRule rule = (*LidarDetector::open(detector, options))->pillars();
    Pillars pillars(rule);
    pillars.fill(points, columns, 2);
    EXPECT_GT(pillars.count(), 1000) << path;
    expect_same(pillars, plain_pillars(rule, points, columns));
  };
  const auto kitti = test::shared_data("samples/kitti_000002.bin");
  STROBE_REQUIRE_DATA(kitti);
  check("pointpillars-small", kitti, 4);
  const auto nuscenes = test::shared_data(
      "sensors/nuscenes/samples/LIDAR_TOP/n015-2018-07-24-11-22-45+0800__LIDAR_TOP__1532402927647951.pcd.bin");
  STROBE_REQUIRE_DATA(nuscenes);
  check("centerpoint-small", nuscenes, 5);
}

TEST(Scatter, PutsPillarsWhereTheyBelongAndClearsTheOldOnes) {
  std::vector<float> canvas(2 * 6);
  std::vector<int32_t> drawn;
  const std::vector<float> features = {1, 2, 3, 10, 20, 30};  // two channels of three pillars
  scatter_pillars(features, 3, std::vector<int32_t>{4, 0}, 2, canvas, drawn);
  EXPECT_THAT(canvas, ElementsAre(2, 0, 0, 0, 1, 0, 20, 0, 0, 0, 10, 0));
  scatter_pillars(features, 3, std::vector<int32_t>{1, 4, 5}, 2, canvas, drawn);
  EXPECT_THAT(canvas, ElementsAre(0, 1, 0, 0, 2, 3, 0, 10, 0, 0, 20, 30));
}

}  // namespace
}  // namespace strobe::models
