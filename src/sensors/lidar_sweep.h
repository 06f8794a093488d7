// nuScenes' LiDAR files: points of 5 little endian floats, x y z in metres (x right, y forward, z up), intensity
// 0..255, ring 0..31; nothing else.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "strobe/base/result.h"

namespace strobe::sensors {

inline constexpr uint32_t kLidarPointBytes = 5 * sizeof(float);

struct LidarSweep {
  std::string bytes;  // as in the file
  uint32_t points() const { return static_cast<uint32_t>(bytes.size() / kLidarPointBytes); }
};

// Errors: kNotFound, kIo, kBadData (a size that is no multiple of 20 bytes), each naming the file.
Result<LidarSweep> read_lidar_sweep(const std::filesystem::path& path);

}  // namespace strobe::sensors
