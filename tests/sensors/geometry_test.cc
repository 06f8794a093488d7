#include "sensors/geometry.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <random>

namespace strobe::sensors {
namespace {

constexpr double kPi = std::numbers::pi;

void expect_near(const Vector3& a, const Vector3& b, double tolerance = 1e-12) {
  EXPECT_NEAR(a.x, b.x, tolerance);
  EXPECT_NEAR(a.y, b.y, tolerance);
  EXPECT_NEAR(a.z, b.z, tolerance);
}

Quaternion random_turn(std::mt19937& random) {
  std::normal_distribution<double> normal;
  return Quaternion{normal(random), normal(random), normal(random), normal(random)}.normalised();
}

TEST(Geometry, QuarterTurnTakesXToY) {
  const Quaternion q = Quaternion::about_z(kPi / 2);
  expect_near(q.rotate({1, 0, 0}), {0, 1, 0});
  EXPECT_NEAR(q.yaw(), kPi / 2, 1e-12);
}

TEST(Geometry, TurnsOfAnyNormAreTheSameTurn) {
  const Quaternion q{0.5720320374256816, -0.0016977768560200218, 0.011798001963230997, -0.8201446658133225};
  const Quaternion scaled{q.w * 3, q.x * 3, q.y * 3, q.z * 3};
  expect_near(q.rotate({1, 2, 3}), scaled.rotate({1, 2, 3}), 1e-9);
  EXPECT_EQ(Quaternion({0, 0, 0, 0}).yaw(), 0);
}

TEST(Geometry, ProductsAndInversesOfPoses) {
  std::mt19937 random(1);
  std::uniform_real_distribution<double> place(-100, 100);
  for (int i = 0; i < 200; ++i) {
    const Pose a{{place(random), place(random), place(random)}, random_turn(random)};
    const Pose b{{place(random), place(random), place(random)}, random_turn(random)};
    const Vector3 p{place(random), place(random), place(random)};
    expect_near((a * b).apply(p), a.apply(b.apply(p)), 1e-9);
    expect_near(a.inverse().apply(a.apply(p)), p, 1e-9);
  }
}

TEST(Geometry, SlerpGoesTheShortWayEvenly) {
  std::mt19937 random(2);
  for (int i = 0; i < 200; ++i) {
    const double from = std::uniform_real_distribution<double>(-3, 3)(random);
    const double by = std::uniform_real_distribution<double>(-3, 3)(random);
    const double share = std::uniform_real_distribution<double>(0, 1)(random);
    Quaternion end = Quaternion::about_z(from + by);
    if (i % 2 == 0) end = {-end.w, -end.x, -end.y, -end.z};  // the same turn
    const Quaternion q = slerp(Quaternion::about_z(from), end, share);
    // Below 1.8 degrees the chord is taken: its error grows with the cube of the angle.
    EXPECT_NEAR(std::remainder(q.yaw() - (from + by * share), 2 * kPi), 0, 2e-6);
  }
}

TEST(Geometry, CornersAndInside) {
  const Box box{{{10, 20, 1}, Quaternion::about_z(kPi / 2)}, 4, 2, 1};
  expect_near(box.corners()[0], {9, 22, 1.5});  // forward left top: length now lies along y
  EXPECT_TRUE(box.contains({10, 21.9, 1}));
  EXPECT_FALSE(box.contains({10, 22.1, 1}));
  EXPECT_FALSE(box.contains({11.1, 20, 1}));
  EXPECT_FALSE(box.contains({10, 20, 1.6}));
  std::mt19937 random(3);
  std::uniform_real_distribution<double> place(-3, 3);
  for (int i = 0; i < 2000; ++i) {
    const Box any{{{place(random), place(random), place(random)}, random_turn(random)}, 3, 2, 1};
    const Vector3 p{place(random), place(random), place(random)};
    const Vector3 inside = any.pose.inverse().apply(p);
    EXPECT_EQ(any.contains(p), std::abs(inside.x) <= 1.5 && std::abs(inside.y) <= 1 && std::abs(inside.z) <= 0.5);
  }
}

}  // namespace
}  // namespace strobe::sensors
