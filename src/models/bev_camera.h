// A pinhole camera and its place on a vehicle.
#pragma once

#include <array>
#include <optional>

#include "models/lidar_kitti.h"

namespace strobe::models {

// The camera's frame: x right, y down, z forward, metres.
struct Camera {
  std::array<float, 9> intrinsic{};  // 3 x 3, row-major: focal lengths and centre in pixels of the picture
  int width = 0, height = 0;         // of that picture
  // 3 x 4, row-major: a point of the camera's frame into the frame of boxes and LiDAR points; its left part a rotation.
  std::array<float, 12> to_vehicle{};

  friend bool operator==(const Camera&, const Camera&) = default;
};

struct Point3 {
  float x = 0, y = 0, z = 0;
};
struct Pixel {
  float u = 0, v = 0;  // (0, 0) is the picture's corner; the middle of the first pixel is (0.5, 0.5)
  float depth = 0;     // along z, metres
};

// The point at a depth behind a place of the picture, in the vehicle's frame, and back; none behind the camera.
Point3 unproject(const Camera& camera, const Pixel& pixel);
std::optional<Pixel> project(const Camera& camera, const Point3& point);
// What the camera would be with its picture stretched to another size.
Camera stretched(const Camera& camera, int width, int height);
// KITTI's left colour camera, with the LiDAR's frame as the vehicle's.
Camera kitti_camera(const KittiCalibration& calibration, int width, int height);

}  // namespace strobe::models
