// What a tenant's model said, one JSON object a line and frame, so that a tenant that dies leaves what it had.
//
//   {"frame": 12, "token": "...", "model_type": "image", "picture_boxes": [{"label", "score", "x", "y", "w", "h"}],
//    "space_boxes": [{"label", "score", "translation", "size", "rotation", "velocity"}], "frame_of_reference":
//    "global"}
//
// Boxes in space: centre (m), size as nuScenes has it (width, length, height), rotation as quaternion w x y z, velocity
// (m/s); in the global frame where the input has a pose, else in the sensor's.
#pragma once

#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>

#include "strobe/base/result.h"
#include "tenants/task.h"

namespace strobe::tenants {

class PredictionFile {
 public:
  // Errors: kIo.
  static Result<PredictionFile> create(const std::filesystem::path& path, std::string model_type);
  // Errors: kIo, now or for an earlier line.
  Result<void> add(int64_t frame, const SensorFrame& input, const Prediction& prediction);
  Result<void> close();

 private:
  struct Closer {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  std::filesystem::path path_;
  std::string model_type_;
  std::unique_ptr<std::FILE, Closer> file_;
  int64_t flushed_ns_ = 0;
};

}  // namespace strobe::tenants
