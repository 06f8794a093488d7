// The topics of a LiDAR and of cameras as one stream of frames, for models that need both: each sweep with the pictures
// of its moment, as they come.
#pragma once

#include <chrono>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "sensors/dds.h"
#include "tenants/live_stream.h"
#include "tenants/sensor_join.h"

namespace strobe::tenants {

class LiveJoin {
 public:
  // sweeps: the LiDAR's topic; source.channels: those of the pictures, whose CameraInfo is the topic camera_info beside
  // each; /tf and /tf_static. Errors: kUsage (no cameras), those of DDS.
  static Result<std::unique_ptr<LiveJoin>> open(sensors::DdsParticipant& participant, const SourceSpec& source);

  // The next sweep with all its pictures; nothing when the time has passed first. A sweep waits kJoin_ns for pictures
  // that may still come; without one of them it is left out. Errors: of messages, of a missing transform or camera.
  Result<std::optional<LiveFrame>> wait(std::chrono::milliseconds limit);
  // What has not come so far, for the error of a stream that does not begin.
  std::string lacking() const;

 private:
  LiveJoin() : join_(places_) {}
  Result<void> take_all(std::chrono::milliseconds limit);
  bool complete(int64_t stamp_ns) const;

  struct Waiting {
    RosFrame sweep;
    int64_t written_ns = 0;  // by the writer's clock; 0: not told
    std::chrono::steady_clock::time_point came;
  };
  std::string lidar_;
  std::unique_ptr<sensors::DdsSubscriber> sweeps_;
  std::map<std::string, std::unique_ptr<sensors::DdsSubscriber>> cameras_, infos_, transforms_;  // by topic
  SensorPlaces places_;
  SensorJoin join_;
  PicturesByTopic pictures_;
  std::deque<Waiting> waiting_;
  sensors::DdsSample sample_;
};

}  // namespace strobe::tenants
