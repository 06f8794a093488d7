#include "models/box3d.h"

namespace strobe::models {

std::array<Point2, 4> bev_corners(const Box3d& box) {
  const float c = std::cos(box.yaw), s = std::sin(box.yaw);
  const float lx = 0.5F * box.length * c, ly = 0.5F * box.length * s;
  const float wx = -0.5F * box.width * s, wy = 0.5F * box.width * c;
  return {Point2{box.x + lx + wx, box.y + ly + wy}, Point2{box.x - lx + wx, box.y - ly + wy},
          Point2{box.x - lx - wx, box.y - ly - wy}, Point2{box.x + lx - wx, box.y + ly - wy}};
}

bool contains(const Box3d& box, float x, float y, float z) {
  const float c = std::cos(box.yaw), s = std::sin(box.yaw);
  const float along = (x - box.x) * c + (y - box.y) * s, across = (y - box.y) * c - (x - box.x) * s;
  return 2 * std::abs(along) <= box.length && 2 * std::abs(across) <= box.width &&
         2 * std::abs(z - box.z) <= box.height;
}

}  // namespace strobe::models
