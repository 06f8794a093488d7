// KITTI's object labels and calibrations (Geiger et al. 2012), as boxes in the frame of its LiDAR.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "models/box3d.h"
#include "strobe/base/result.h"

namespace strobe::models {

// A line of label_2/*.txt. Positions are in the rectified camera's frame: x right, y down, z forward, metres.
struct KittiLabel {
  std::string type;             // "Car", "Pedestrian", "Cyclist", "DontCare", ...
  float truncated = 0;          // 0 to 1; -1: not known
  int occluded = 0;             // 0 to 3; -1: not known
  float alpha = 0;              // the heading as the camera sees it
  float box[4] = {0, 0, 0, 0};  // left, top, right, bottom, pixels
  float height = 0, width = 0, length = 0;
  float x = 0, y = 0, z = 0;  // of the middle of the bottom
  float rotation_y = 0;       // of the heading about the axis that points down, 0 along x
  float score = 0;            // of a detection; labels have none
};

// Row-major. A point of the LiDAR p is seen at P2 * R0 * (Tr * p).
struct KittiCalibration {
  std::array<float, 12> p2{};                  // 3 x 4
  std::array<float, 9> r0_rect{};              // 3 x 3
  std::array<float, 12> velodyne_to_camera{};  // 3 x 4
};

// Errors: kBadData naming the line and what was expected there.
Result<std::vector<KittiLabel>> parse_kitti_labels(std::string_view text);
Result<KittiCalibration> parse_kitti_calibration(std::string_view text);

// The box in the LiDAR's frame; class and score stay those of a Box3d made anew.
Box3d lidar_box(const KittiLabel& label, const KittiCalibration& calibration);

}  // namespace strobe::models
