#include "models/bev_camera.h"

namespace strobe::models {

Point3 unproject(const Camera& camera, const Pixel& pixel) {
  const auto& k = camera.intrinsic;
  const auto& m = camera.to_vehicle;
  // Back through the upper triangle: skew and all.
  const float y = (pixel.v - k[5]) / k[4] * pixel.depth;
  const float x = ((pixel.u - k[2]) * pixel.depth - k[1] * y) / k[0];
  const float z = pixel.depth;
  return {m[0] * x + m[1] * y + m[2] * z + m[3], m[4] * x + m[5] * y + m[6] * z + m[7],
          m[8] * x + m[9] * y + m[10] * z + m[11]};
}

std::optional<Pixel> project(const Camera& camera, const Point3& point) {
  const auto& k = camera.intrinsic;
  const auto& m = camera.to_vehicle;
  const float dx = point.x - m[3], dy = point.y - m[7], dz = point.z - m[11];
  const float x = m[0] * dx + m[4] * dy + m[8] * dz, y = m[1] * dx + m[5] * dy + m[9] * dz;
  const float z = m[2] * dx + m[6] * dy + m[10] * dz;
  if (!(z > 0)) return std::nullopt;
  return Pixel{(k[0] * x + k[1] * y) / z + k[2], k[4] * y / z + k[5], z};
}

Camera stretched(const Camera& camera, int width, int height) {
  Camera out = camera;
  const float sx = static_cast<float>(width) / static_cast<float>(camera.width);
  const float sy = static_cast<float>(height) / static_cast<float>(camera.height);
  for (size_t i = 0; i < 3; ++i) {
    out.intrinsic[i] *= sx;
    out.intrinsic[3 + i] *= sy;
  }
  out.width = width;
  out.height = height;
  return out;
}

Camera kitti_camera(const KittiCalibration& calibration, int width, int height) {
  const auto& p = calibration.p2;
  const auto& r = calibration.r0_rect;
  const auto& t = calibration.velodyne_to_camera;
  Camera camera;
  camera.width = width;
  camera.height = height;
  camera.intrinsic = {p[0], p[1], p[2], p[4], p[5], p[6], p[8], p[9], p[10]};
  // The fourth column is where this camera stands in the rectified frame of the first: K * shift.
  const float z = p[11], y = (p[7] - p[6] * z) / p[5], x = (p[3] - p[1] * y - p[2] * z) / p[0];
  const float shift[] = {x, y, z};
  // LiDAR to this camera: R0 * (T * p) + shift; here the way back.
  float rotation[9], offset[3];
  for (size_t i = 0; i < 3; ++i) {
    offset[i] = shift[i];
    for (size_t k = 0; k < 3; ++k) {
      offset[i] += r[i * 3 + k] * t[k * 4 + 3];
      rotation[i * 3 + k] = r[i * 3] * t[k] + r[i * 3 + 1] * t[4 + k] + r[i * 3 + 2] * t[8 + k];
    }
  }
  for (size_t i = 0; i < 3; ++i) {
    float moved = 0;
    for (size_t k = 0; k < 3; ++k) {
      camera.to_vehicle[i * 4 + k] = rotation[k * 3 + i];
      moved -= rotation[k * 3 + i] * offset[k];
    }
    camera.to_vehicle[i * 4 + 3] = moved;
  }
  return camera;
}

}  // namespace strobe::models
