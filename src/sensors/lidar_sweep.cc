#include "sensors/lidar_sweep.h"

#include <fmt/format.h>

#include "base/file.h"

namespace strobe::sensors {

Result<LidarSweep> read_lidar_sweep(const std::filesystem::path& path) {
  STROBE_ASSIGN(std::string bytes, read_file(path));
  if (bytes.size() % kLidarPointBytes != 0)
    return bad_data(fmt::format("{}: {} bytes are no whole number of points ({} bytes each); is the file cut off?",
                                path.string(), bytes.size(), kLidarPointBytes));
  return LidarSweep{std::move(bytes)};
}

}  // namespace strobe::sensors
