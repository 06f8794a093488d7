// Links: strobe_models
// Bytes as KITTI labels and as a calibration; what is accepted becomes boxes of finite sides.
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "models/lidar_kitti.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace strobe::models;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto calibration = parse_kitti_calibration(text);
  const auto labels = parse_kitti_labels(text);
  if (calibration && !std::isfinite(calibration->p2[0])) std::abort();
  if (!labels) return 0;
  KittiCalibration straight;
  straight.r0_rect = {1, 0, 0, 0, 1, 0, 0, 0, 1};
  straight.velodyne_to_camera = {0, -1, 0, 0, 0, 0, -1, 0, 1, 0, 0, 0};
  for (const KittiLabel& label : *labels) {
    if (label.type == "DontCare") continue;
    const Box3d box = lidar_box(label, straight);
    if (!(box.length > 0 && box.width > 0 && box.height > 0) || std::isnan(box.yaw)) std::abort();
  }
  return 0;
}
