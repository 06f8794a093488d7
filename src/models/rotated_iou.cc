#include "models/rotated_iou.h"

#include <algorithm>

namespace strobe::models {
namespace {

// A convex polygon; clipping a quadrangle by four lines leaves at most eight corners.
struct Polygon {
  Point2 corner[9];
  int count = 0;
  void add(float x, float y) { corner[count++] = {x, y}; }
};

// Keeps what lies at sign * coordinate <= limit, of x or of y.
template <bool kAlongX>
void clip(const Polygon& in, float sign, float limit, Polygon& out) {
  out.count = 0;
  const auto inside = [&](const Point2& p) { return limit - sign * (kAlongX ? p.x : p.y); };
  for (int i = 0; i < in.count; ++i) {
    const Point2& from = in.corner[i];
    const Point2& to = in.corner[i + 1 == in.count ? 0 : i + 1];
    const float a = inside(from), b = inside(to);
    if (a >= 0) out.add(from.x, from.y);
    if ((a >= 0) != (b >= 0)) {
      const float t = a / (a - b);
      out.add(from.x + t * (to.x - from.x), from.y + t * (to.y - from.y));
    }
  }
}

float bev_area(const Box3d& box) {
  return box.length * box.width;
}

// a / b, 0 where that is no number.
float ratio(float part, float whole) {
  return whole > 0 ? part / whole : 0;
}

}  // namespace

float bev_intersection(const Box3d& a, const Box3d& b) {
  if (!(a.length > 0 && a.width > 0 && b.length > 0 && b.width > 0)) return 0;
  const float dx = b.x - a.x, dy = b.y - a.y;
  // Circles around the boxes that do not meet settle most pairs.
  const float reach = 0.5F * (std::hypot(a.length, a.width) + std::hypot(b.length, b.width));
  if (!(dx * dx + dy * dy < reach * reach) || !std::isfinite(a.yaw) || !std::isfinite(b.yaw)) return 0;
  const float c = std::cos(a.yaw), s = std::sin(a.yaw);
  Box3d turned = b;
  turned.x = dx * c + dy * s;
  turned.y = dy * c - dx * s;
  turned.yaw = b.yaw - a.yaw;
  Polygon one, two;
  for (const Point2& corner : bev_corners(turned)) one.add(corner.x, corner.y);
  clip<true>(one, 1, 0.5F * a.length, two);
  clip<true>(two, -1, 0.5F * a.length, one);
  clip<false>(one, 1, 0.5F * a.width, two);
  clip<false>(two, -1, 0.5F * a.width, one);
  float twice = 0;
  for (int i = 2; i < one.count; ++i) {  // triangles from the first corner
    const float ux = one.corner[i - 1].x - one.corner[0].x, uy = one.corner[i - 1].y - one.corner[0].y;
    const float vx = one.corner[i].x - one.corner[0].x, vy = one.corner[i].y - one.corner[0].y;
    twice += ux * vy - uy * vx;
  }
  return std::max(0.0F, 0.5F * twice);
}

float bev_iou(const Box3d& a, const Box3d& b) {
  const float common = bev_intersection(a, b);
  return ratio(common, bev_area(a) + bev_area(b) - common);
}

float iou_3d(const Box3d& a, const Box3d& b) {
  const float top = std::min(a.z + 0.5F * a.height, b.z + 0.5F * b.height);
  const float bottom = std::max(a.z - 0.5F * a.height, b.z - 0.5F * b.height);
  if (!(top > bottom)) return 0;
  const float common = bev_intersection(a, b) * (top - bottom);
  return ratio(common, bev_area(a) * a.height + bev_area(b) * b.height - common);
}

float nearest_bev_iou(const Box3d& a, const Box3d& b) {
  struct Sides {
    float x, y;
  };
  const auto sides = [](const Box3d& box) {
    const bool across = std::abs(wrap_angle(box.yaw, 0.5F, std::numbers::pi_v<float>)) > std::numbers::pi_v<float> / 4;
    return across ? Sides{box.width, box.length} : Sides{box.length, box.width};
  };
  const Sides p = sides(a), q = sides(b);
  const auto shared = [](float at, float side, float other_at, float other_side) {
    return std::min(at + side / 2, other_at + other_side / 2) - std::max(at - side / 2, other_at - other_side / 2);
  };
  const float x = shared(a.x, p.x, b.x, q.x), y = shared(a.y, p.y, b.y, q.y);
  if (!(x > 0 && y > 0)) return 0;
  return ratio(x * y, p.x * p.y + q.x * q.y - x * y);
}

}  // namespace strobe::models
