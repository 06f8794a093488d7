// Points, turns, poses and boxes in three dimensions. Right-handed frames, metres, radians. A box's length lies along
// its x, its width along y, its height along z (nuScenes writes sizes as width, length, height).
#pragma once

#include <array>
#include <span>

namespace strobe::sensors {

struct Vector3 {
  double x = 0, y = 0, z = 0;
  friend bool operator==(const Vector3&, const Vector3&) = default;
};
inline Vector3 operator+(const Vector3& a, const Vector3& b) {
  return {a.x + b.x, a.y + b.y, a.z + b.z};
}
inline Vector3 operator-(const Vector3& a, const Vector3& b) {
  return {a.x - b.x, a.y - b.y, a.z - b.z};
}
inline Vector3 operator*(const Vector3& a, double factor) {
  return {a.x * factor, a.y * factor, a.z * factor};
}
inline double dot(const Vector3& a, const Vector3& b) {
  return a.x * b.x + a.y * b.y + a.z * b.z;
}

// Rows of a matrix.
using Matrix3 = std::array<std::array<double, 3>, 3>;

// w + xi + yj + zk; a turn when its norm is 1.
struct Quaternion {
  double w = 1, x = 0, y = 0, z = 0;
  friend bool operator==(const Quaternion&, const Quaternion&) = default;

  // Of norm 1; the zero quaternion stays zero.
  Quaternion normalised() const;
  // The opposite turn of a quaternion of norm 1.
  Quaternion conjugate() const { return {w, -x, -y, -z}; }
  // The turn as a matrix, of the normalised quaternion. The zero quaternion gives the zero matrix.
  Matrix3 matrix() const;
  Vector3 rotate(const Vector3& v) const;
  // Angle about z of where the x axis goes, in (-pi, pi].
  double yaw() const;
  static Quaternion about_z(double yaw);
};
// First b, then a.
Quaternion operator*(const Quaternion& a, const Quaternion& b);

// The turn at `share` (0..1) of the shortest way from a to b (Shoemake 1985). Below an angle of about 1.8 degrees it
// goes along the chord, as is usual, because the sine of a small angle is all rounding.
Quaternion slerp(Quaternion a, Quaternion b, double share);

// Where a frame stands in another one: p_outer = rotation * p_inner + translation.
struct Pose {
  Vector3 translation;
  Quaternion rotation;
  friend bool operator==(const Pose&, const Pose&) = default;

  Vector3 apply(const Vector3& p) const { return rotation.rotate(p) + translation; }
  // The outer frame seen from the inner one; the rotation must be of norm 1.
  Pose inverse() const;
};
// p_outer = a(b(p)).
Pose operator*(const Pose& a, const Pose& b);

struct Box {
  Pose pose;  // of its centre
  double length = 0, width = 0, height = 0;

  // The four corners facing forward (+x) first, each four going round: +y top, -y top, -y bottom, +y bottom.
  std::array<Vector3, 8> corners() const;
  // Faces belong to the box.
  bool contains(const Vector3& point) const;
};

}  // namespace strobe::sensors
