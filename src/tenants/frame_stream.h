// FrameStream: the frames that a tenant gets, ready in memory, so that giving one out costs nothing while others are
// measured.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "media/frame.h"
#include "models/bev_camera.h"
#include "sensors/geometry.h"
#include "strobe/base/result.h"
#include "tenants/experiment.h"

namespace strobe::tenants {

struct EncodedPicture {
  std::string channel;  // "CAM_FRONT"; empty where there is one
  std::vector<uint8_t> bytes;
  // Where it was taken, in the frame of the sweep (of the frame's own pose where there is no sweep).
  std::optional<models::Camera> camera;
};

// A sweep of a LiDAR, as its file or message has it.
struct PointCloud {
  std::vector<float> values;  // rows of `columns` numbers: x, y, z (m), intensity, ...
  int columns = 4;
  float full_intensity = 1;  // that of reflectivity 1
  // x points right and y forward, as nuScenes' LiDAR has it; else x forward and y left.
  bool x_is_right = false;
  size_t count() const { return values.size() / static_cast<size_t>(columns); }
};

// A video that starts again at its end; decoding is the tenant's own work.
class LoopedVideo {
 public:
  virtual ~LoopedVideo() = default;
  virtual Result<media::Frame> next() = 0;
};

// One input. What a model does not need is empty.
struct SensorFrame {
  std::string token;     // "n015-...": names the input in predictions and delays
  int64_t stamp_ns = 0;  // the sensor's own time; 0: none
  std::vector<std::shared_ptr<const EncodedPicture>> pictures;
  std::shared_ptr<const PointCloud> points;
  std::optional<sensors::Pose> pose;  // of the LiDAR, or of the only camera, in the global frame
  std::shared_ptr<LoopedVideo> video;
};

class LiveStream;

class FrameStream {
 public:
  virtual ~FrameStream() = default;
  // Not null: frames are not at hand but come (tenants/live_stream.h), and frame() gives the first one that came.
  virtual LiveStream* live() { return nullptr; }
  // Frames before the stream repeats itself; at least 1.
  virtual int64_t size() const = 0;
  // index from 0; past the end the stream starts again. Any thread.
  virtual SensorFrame frame(int64_t index) const = 0;
  // What must be shown with results: that the stream repeats one real frame, or that weather was computed.
  virtual std::vector<std::string> notes() const { return {}; }
};

// What a model wants to be given.
struct StreamNeeds {
  bool pictures = false, points = false;
};

// Whether the source is there and has what the model needs, as far as that can be told without reading frames.
// Errors: those of open_stream.
Result<void> check_source(const SourceSpec& source, const StreamNeeds& needs);

// Reads and prepares everything. Errors: those of the readers, at the source's path; kUnsupported (a source without
// what the model needs); kUsage (weather on a source without LiDAR).
Result<std::unique_ptr<FrameStream>> open_stream(const SourceSpec& source, const StreamNeeds& needs, uint64_t seed);

}  // namespace strobe::tenants
