#include "sensors/geometry.h"

#include <algorithm>
#include <cmath>

namespace strobe::sensors {

namespace {

// Cosine of half the turn above which the chord is as good as the arc.
constexpr double kNearlyEqual = 0.9995;

}  // namespace

Quaternion Quaternion::normalised() const {
  const double squares = w * w + x * x + y * y + z * z;
  // What is of norm 1 to rounding stays as it stands, so that nothing drifts.
  if (squares == 0 || std::abs(1 - squares) < 1e-14) return *this;
  const double norm = std::sqrt(squares);
  return {w / norm, x / norm, y / norm, z / norm};
}

Matrix3 Quaternion::matrix() const {
  const Quaternion q = normalised();
  const double ww = q.w * q.w, xx = q.x * q.x, yy = q.y * q.y, zz = q.z * q.z;
  const double xy = q.x * q.y, xz = q.x * q.z, yz = q.y * q.z;
  const double wx = q.w * q.x, wy = q.w * q.y, wz = q.w * q.z;
  return {{{ww + xx - yy - zz, 2 * (xy - wz), 2 * (xz + wy)},
           {2 * (xy + wz), ww - xx + yy - zz, 2 * (yz - wx)},
           {2 * (xz - wy), 2 * (yz + wx), ww - xx - yy + zz}}};
}

Vector3 Quaternion::rotate(const Vector3& v) const {
  const Matrix3 m = matrix();
  return {m[0][0] * v.x + m[0][1] * v.y + m[0][2] * v.z, m[1][0] * v.x + m[1][1] * v.y + m[1][2] * v.z,
          m[2][0] * v.x + m[2][1] * v.y + m[2][2] * v.z};
}

double Quaternion::yaw() const {
  const Quaternion q = normalised();
  return std::atan2(2 * (q.x * q.y + q.w * q.z), q.w * q.w + q.x * q.x - q.y * q.y - q.z * q.z);
}

Quaternion Quaternion::about_z(double yaw) {
  return {std::cos(yaw / 2), 0, 0, std::sin(yaw / 2)};
}

Quaternion operator*(const Quaternion& a, const Quaternion& b) {
  return {a.w * b.w - a.x * b.x - a.y * b.y - a.z * b.z, a.w * b.x + a.x * b.w + a.y * b.z - a.z * b.y,
          a.w * b.y - a.x * b.z + a.y * b.w + a.z * b.x, a.w * b.z + a.x * b.y - a.y * b.x + a.z * b.w};
}

Quaternion slerp(Quaternion a, Quaternion b, double share) {
  a = a.normalised();
  b = b.normalised();
  double cosine = a.w * b.w + a.x * b.x + a.y * b.y + a.z * b.z;
  if (cosine < 0) {
    a = {-a.w, -a.x, -a.y, -a.z};
    cosine = -cosine;
  }
  double of_a = 1 - share, of_b = share;
  if (cosine <= kNearlyEqual) {
    const double angle = std::acos(cosine);
    of_b = std::sin(angle * share) / std::sin(angle);
    of_a = std::cos(angle * share) - cosine * of_b;
  }
  return Quaternion{of_a * a.w + of_b * b.w, of_a * a.x + of_b * b.x, of_a * a.y + of_b * b.y, of_a * a.z + of_b * b.z}
      .normalised();
}

Pose Pose::inverse() const {
  const Quaternion back = rotation.conjugate();
  return {back.rotate(translation) * -1.0, back};
}

Pose operator*(const Pose& a, const Pose& b) {
  return {a.apply(b.translation), a.rotation * b.rotation};
}

std::array<Vector3, 8> Box::corners() const {
  const Matrix3 m = pose.rotation.matrix();
  std::array<Vector3, 8> out;
  for (size_t i = 0; i < out.size(); ++i) {
    const size_t round = i % 4;
    const double x = (i < 4 ? 1 : -1) * length / 2;
    const double y = (round == 0 || round == 3 ? 1 : -1) * width / 2;
    const double z = (round < 2 ? 1 : -1) * height / 2;
    out[i] = Vector3{m[0][0] * x + m[0][1] * y + m[0][2] * z, m[1][0] * x + m[1][1] * y + m[1][2] * z,
                     m[2][0] * x + m[2][1] * y + m[2][2] * z} +
             pose.translation;
  }
  return out;
}

bool Box::contains(const Vector3& point) const {
  const auto corner = corners();
  const Vector3 from = point - corner[0];
  const auto within = [&from, &corner](size_t other) {
    const Vector3 edge = corner[other] - corner[0];
    const double along = dot(edge, from);
    return 0 <= along && along <= dot(edge, edge);
  };
  return within(4) && within(1) && within(3);
}

}  // namespace strobe::sensors
