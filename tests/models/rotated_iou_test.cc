#include "models/rotated_iou.h"

#include <gmock/gmock.h>

#include <limits>
#include <numbers>
#include <random>

#ifdef STROBE_TEST_OPENCV
#include <opencv2/imgproc.hpp>
#endif

namespace strobe::models {
namespace {

constexpr float kPi = std::numbers::pi_v<float>;

Box3d box(float x, float y, float length, float width, float yaw, float z = 0, float height = 1) {
  Box3d b;
  b.x = x;
  b.y = y;
  b.z = z;
  b.length = length;
  b.width = width;
  b.height = height;
  b.yaw = yaw;
  return b;
}

Box3d random_box(std::mt19937& random) {
  const auto uniform = [&](float low, float high) { return std::uniform_real_distribution<float>(low, high)(random); };
  return box(uniform(-3, 3), uniform(-3, 3), uniform(0.3F, 6), uniform(0.3F, 3), uniform(-4, 4), uniform(-1, 1),
             uniform(0.5F, 2));
}

// The share of a fine grid over `a` that lies in `b`: an area without any clipping.
double sampled_intersection(const Box3d& a, const Box3d& b) {
  constexpr int kSteps = 400;
  int inside = 0;
  for (int i = 0; i < kSteps; ++i) {
    for (int k = 0; k < kSteps; ++k) {
      const float u = a.length * ((static_cast<float>(i) + 0.5F) / kSteps - 0.5F);
      const float v = a.width * ((static_cast<float>(k) + 0.5F) / kSteps - 0.5F);
      const float x = a.x + u * std::cos(a.yaw) - v * std::sin(a.yaw);
      const float y = a.y + u * std::sin(a.yaw) + v * std::cos(a.yaw);
      inside += contains(b, x, y, b.z) ? 1 : 0;
    }
  }
  return static_cast<double>(inside) / (kSteps * kSteps) * a.length * a.width;
}

TEST(RotatedIou, OfBoxesByHand) {
  const Box3d square = box(0, 0, 2, 2, 0);
  EXPECT_FLOAT_EQ(bev_intersection(square, square), 4);
  EXPECT_FLOAT_EQ(bev_iou(square, square), 1);
  EXPECT_FLOAT_EQ(bev_intersection(square, box(1, 1, 2, 2, 0)), 1);
  EXPECT_FLOAT_EQ(bev_iou(square, box(1, 1, 2, 2, 0)), 1.0F / 7);
  // A square of the same size turned by 45 degrees: a regular octagon of 8 (sqrt 2 - 1) times the square of half a
  // side.
  EXPECT_NEAR(bev_intersection(square, box(0, 0, 2, 2, kPi / 4)), 8 * (std::sqrt(2.0) - 1), 1e-5);
  // The corner of a turned square over the middle of a side: a triangle of height 0.5 and width 1.
  EXPECT_NEAR(bev_intersection(square, box(0.5F + std::sqrt(2.0F), 0, 2, 2, kPi / 4)), 0.25, 1e-5);
  EXPECT_FLOAT_EQ(bev_intersection(box(0, 0, 4, 1, kPi / 2), box(0, 0, 4, 1, 0)), 1) << "a cross";
  EXPECT_FLOAT_EQ(bev_intersection(square, box(0, 0, 1, 0.5F, 0.3F)), 0.5F) << "one inside the other";
  EXPECT_EQ(bev_intersection(square, box(2.5F, 0, 2, 2, 0)), 0);
}

TEST(RotatedIou, InSpaceByHand) {
  const Box3d cube = box(0, 0, 2, 2, 0.4F, 0, 2);
  EXPECT_NEAR(iou_3d(cube, box(0, 0, 2, 2, 0.4F, 1, 2)), 1.0 / 3, 1e-5) << "half of the height";
  EXPECT_EQ(iou_3d(cube, box(0, 0, 2, 2, 0.4F, 2, 2)), 0) << "one on top of the other";
  EXPECT_NEAR(iou_3d(cube, box(0, 0, 2, 2, 0.4F + kPi, 0, 2)), 1, 1e-5) << "the heading has no part in it";
}

TEST(RotatedIou, AgreesWithAreasThatAreCounted) {
  std::mt19937 random(5);
  for (int i = 0; i < 100; ++i) {
    const Box3d a = random_box(random), b = random_box(random);
    const float area = bev_intersection(a, b);
    EXPECT_NEAR(area, sampled_intersection(a, b), 0.004 * a.length * a.width) << i;
    EXPECT_NEAR(area, bev_intersection(b, a), 1e-4) << "symmetric";
    EXPECT_LE(area, std::min(a.length * a.width, b.length * b.width) * 1.0001F);
    EXPECT_GE(iou_3d(a, b), 0);
    EXPECT_LE(iou_3d(a, b), 1.0001F);
  }
}

#ifdef STROBE_TEST_OPENCV
TEST(RotatedIou, AgreesWithOpencv) {
  std::mt19937 random(6);
  int apart = 0;
  for (int i = 0; i < 2000; ++i) {
    const Box3d a = random_box(random), b = random_box(random);
    const auto rectangle = [](const Box3d& box) {
      return cv::RotatedRect({box.x, box.y}, {box.length, box.width}, box.yaw * 180 / kPi);
    };
    std::vector<cv::Point2f> polygon;
    const int kind = cv::rotatedRectangleIntersection(rectangle(a), rectangle(b), polygon);
    double area = 0;
    if (kind != cv::INTERSECT_NONE && polygon.size() > 2) {
      std::vector<cv::Point2f> hull;
      cv::convexHull(polygon, hull);
      area = cv::contourArea(hull);
    }
    apart += area == 0 ? 1 : 0;
    EXPECT_NEAR(bev_intersection(a, b), area, 2e-3) << i;
  }
  EXPECT_GT(apart, 200);
  EXPECT_LT(apart, 1800);
}
#endif

TEST(RotatedIou, WhatIsNoBoxSharesNothing) {
  const Box3d square = box(0, 0, 2, 2, 0);
  const float nan = std::numeric_limits<float>::quiet_NaN(), infinite = std::numeric_limits<float>::infinity();
  for (const Box3d& odd : {box(0, 0, 0, 2, 0), box(0, 0, -1, 2, 0), box(nan, 0, 2, 2, 0), box(0, 0, 2, 2, nan),
                           box(0, 0, 2, 2, infinite), box(infinite, 0, 2, 2, 0), box(0, 0, nan, 2, 0)}) {
    EXPECT_EQ(bev_iou(square, odd), 0);
    EXPECT_EQ(bev_iou(odd, square), 0);
    EXPECT_EQ(iou_3d(odd, square), 0);
  }
}

TEST(RotatedIou, NearestTurnsToTheAxes) {
  EXPECT_FLOAT_EQ(nearest_bev_iou(box(0, 0, 4, 2, 0.2F), box(0, 0, 4, 2, 0)), 1);
  EXPECT_FLOAT_EQ(nearest_bev_iou(box(0, 0, 4, 2, 1.4F), box(0, 0, 4, 2, 0)), 4.0F / 12);
  EXPECT_FLOAT_EQ(nearest_bev_iou(box(0, 0, 4, 2, kPi - 0.1F), box(0, 0, 4, 2, 0)), 1);
  EXPECT_EQ(nearest_bev_iou(box(0, 0, 4, 2, 0), box(5, 0, 4, 2, 0)), 0);
}

}  // namespace
}  // namespace strobe::models
