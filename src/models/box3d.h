// Boxes in a vehicle's frame: x forward, y left, z up, metres; yaw counter-clockwise seen from above, 0 along x.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <numbers>

namespace strobe::models {

struct Box3d {
  float x = 0, y = 0, z = 0;                // centre
  float length = 0, width = 0, height = 0;  // along the heading, across it, up
  float yaw = 0;                            // radians
  float vx = 0, vy = 0;                     // metres a second; 0 where a network does not tell
  int class_id = 0;
  float score = 0;
};

struct Point2 {
  float x = 0, y = 0;
};
// The four corners seen from above, counter-clockwise, the front left one first.
std::array<Point2, 4> bev_corners(const Box3d& box);
bool contains(const Box3d& box, float x, float y, float z);  // borders included

// angle + k * period in [-offset * period, (1 - offset) * period).
inline float wrap_angle(float angle, float offset, float period) {
  return angle - std::floor(angle / period + offset) * period;
}
inline float wrap_angle(float angle) {  // [-pi, pi)
  return wrap_angle(angle, 0.5F, 2 * std::numbers::pi_v<float>);
}

}  // namespace strobe::models
