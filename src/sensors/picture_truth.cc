#include "sensors/picture_truth.h"

#include <algorithm>
#include <cmath>

namespace strobe::sensors {

using nuscenes::kNone;

namespace {

struct Point {
  double x = 0, y = 0;
};
using Polygon = std::vector<Point>;  // convex, corners in order

// Twice the signed area of a triangle.
double turn(const Point& a, const Point& b, const Point& c) {
  return (b.x - a.x) * (c.y - a.y) - (b.y - a.y) * (c.x - a.x);
}

double area(const Polygon& polygon) {
  double twice = 0;
  for (size_t i = 2; i < polygon.size(); ++i) twice += turn(polygon[0], polygon[i - 1], polygon[i]);
  return std::abs(twice) / 2;
}

// Andrew's monotone chain.
Polygon hull_of(Polygon points) {
  std::ranges::sort(points, [](const Point& a, const Point& b) { return a.x != b.x ? a.x < b.x : a.y < b.y; });
  if (points.size() < 3) return points;
  Polygon hull;
  const auto add = [&hull](const Point& point, size_t least) {
    while (hull.size() >= least + 2 && turn(hull[hull.size() - 2], hull.back(), point) <= 0) hull.pop_back();
    hull.push_back(point);
  };
  for (const Point& point : points) add(point, 0);
  const size_t lower = hull.size() - 1;
  for (size_t i = points.size() - 1; i-- > 0;) add(points[i], lower);
  hull.pop_back();
  return hull;
}

// What is left where inside(point) >= 0, a linear function (Sutherland and Hodgman 1974).
template <typename Inside>
Polygon cut(const Polygon& polygon, Inside inside) {
  Polygon left;
  for (size_t i = 0; i < polygon.size(); ++i) {
    const Point &from = polygon[i], &to = polygon[(i + 1) % polygon.size()];
    const double a = inside(from), b = inside(to);
    if (a >= 0) left.push_back(from);
    if ((a >= 0) == (b >= 0)) continue;
    const double share = a / (a - b);
    left.push_back({from.x + share * (to.x - from.x), from.y + share * (to.y - from.y)});
  }
  return left;
}

Polygon on_picture(Polygon polygon, double width, double height) {
  polygon = cut(polygon, [](const Point& p) { return p.x; });
  polygon = cut(polygon, [](const Point& p) { return p.y; });
  polygon = cut(polygon, [width](const Point& p) { return width - p.x; });
  return cut(polygon, [height](const Point& p) { return height - p.y; });
}

bool is_seen(const NuScenes& database, const nuscenes::Annotation& annotation) {
  if (annotation.visibility == kNone) return false;
  const std::string_view level = database.visibilities[annotation.visibility].level;
  return level == "v60-80" || level == "v80-100";
}

}  // namespace

std::vector<ShownBox> shown_boxes(const NuScenes& database, uint32_t picture, uint32_t moment) {
  const nuscenes::SampleData& data = database.sample_data[picture];
  const nuscenes::CalibratedSensor& sensor = database.calibrated_sensors[data.calibrated_sensor];
  std::vector<ShownBox> shown;
  if (!sensor.has_intrinsic) return shown;
  Pose camera = database.ego_poses[data.ego_pose].pose * sensor.pose;
  camera.rotation = camera.rotation.normalised();
  const Pose to_camera = camera.inverse();
  const Matrix3& k = sensor.intrinsic;
  for (const MovedBox& moved : database.boxes_at(database.sample_data[moment])) {
    if (!is_seen(database, database.annotations[moved.annotation])) continue;
    Polygon corners;
    for (const Vector3& corner : moved.box.corners()) {
      const Vector3 p = to_camera.apply(corner);
      constexpr double kBefore = 1e-6;
      if (p.z < kBefore) continue;
      const double depth = k[2][0] * p.x + k[2][1] * p.y + k[2][2] * p.z;
      corners.push_back({(k[0][0] * p.x + k[0][1] * p.y + k[0][2] * p.z) / depth,
                         (k[1][0] * p.x + k[1][1] * p.y + k[1][2] * p.z) / depth});
    }
    const Polygon outline = hull_of(std::move(corners));
    const Polygon visible = on_picture(outline, data.width, data.height);
    constexpr double kLeastShare = 0.3;
    const double whole = area(outline);
    if (!(whole > 0) || area(visible) < kLeastShare * whole || visible.empty()) continue;
    const auto [left, right] = std::ranges::minmax_element(visible, {}, &Point::x);
    const auto [top, bottom] = std::ranges::minmax_element(visible, {}, &Point::y);
    shown.push_back({moved.annotation, left->x, top->y, right->x - left->x, bottom->y - top->y});
  }
  return shown;
}

}  // namespace strobe::sensors
