// What streams of recorded sensor data are put together from: frames in memory, weather that falls on them, cameras.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sensors/geometry.h"
#include "sensors/weather.h"
#include "tenants/frame_stream.h"

namespace strobe::tenants {

// The weather of a stream, which falls before the run begins. `source` must outlive it.
class StreamWeather {
 public:
  StreamWeather(const SourceSpec& source, uint64_t seed) : source_(source), seed_(seed) {}

  bool falls() const { return !source_.weather.empty(); }
  // Each frame number has weather of its own. Errors: those of Weather::create.
  Result<void> fall_on(PointCloud& cloud, uint64_t frame);
  std::vector<std::string> notes() const;

 private:
  Result<void> create(const sensors::PointSweep& sweep);

  const SourceSpec& source_;
  uint64_t seed_;
  std::optional<sensors::Weather> weather_;
};

// Frames as long as they fit into memory, and as many as the source asks for, which must outlive it.
class FrameList {
 public:
  explicit FrameList(const SourceSpec& source) : source_(source) {}
  bool empty() const { return frames_.empty(); }
  bool full() const { return source_.most_frames > 0 && static_cast<int64_t>(frames_.size()) >= source_.most_frames; }
  // Errors: kUsage where they are more than memory should hold.
  Result<void> add(SensorFrame frame);
  // Errors: kNotFound without a frame.
  Result<std::unique_ptr<FrameStream>> stream(std::vector<std::string> notes);

 private:
  const SourceSpec& source_;
  std::vector<SensorFrame> frames_;
  size_t bytes_ = 0;
};

// place: of the camera in the frame that it is told in.
models::Camera camera_at(const sensors::Matrix3& intrinsic, int width, int height, const sensors::Pose& place);

}  // namespace strobe::tenants
