// A scene of nuScenes as ROS 2 messages in the order of time: what `convert` writes into a bag and `publish` sends.
//
// Frames: map (nuScenes' global frame), base_link (the ego vehicle), and each sensor by its channel. Stamps are those
// of the data. Boxes: BoundingBox3D.size is length, width, height, where nuScenes writes width, length, height.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sensors/nuscenes.h"
#include "sensors/ros_definitions.h"
#include "sensors/ros_messages.h"
#include "strobe/base/result.h"

namespace strobe::sensors {

// How topics are called, and the frame_id of pictures and clouds.
enum class TopicStyle : uint8_t {
  kChannel,  // /LIDAR_TOP, /CAM_FRONT/image_rect_compressed, /CAM_FRONT/camera_info; frame_id is the channel
  kPperf,    // /lidar_data, /image_data/CAM_FRONT, best effort; frame_id is the token of the sample_data
};
// "channel", "pperf". Errors: kUsage.
Result<TopicStyle> parse_topic_style(std::string_view name);

struct StreamOptions {
  std::string scene;
  std::vector<std::string> channels;  // empty: LiDAR and cameras that the scene has
  bool sweeps = false;                // also what lies between key frames
  double start_s = 0;                 // from the scene's first data on
  double end_s = 1e9;
  uint32_t repeat = 1;  // the stream this often, one after the other
  double rate_hz = 0;   // frames of the first channel a second, by stretching time; 0: as recorded
  TopicStyle style = TopicStyle::kChannel;
};

struct StreamTopic {
  std::string name;
  std::string_view type;  // "sensor_msgs/msg/PointCloud2"
  ros::Qos qos;
  std::string channel;  // empty: of the vehicle or the scene
};

struct StreamMessage {
  uint32_t topic = 0;
  int64_t time_ns = 0;
  Bytes cdr;               // until the next call
  std::string_view token;  // of the sample_data, or of the sample for annotations
};

class NuScenesStream {
 public:
  // `database` must outlive the stream. Errors: kNotFound (scene, channel), kUnsupported (a radar), kUsage (nothing
  // lies in that span).
  static Result<NuScenesStream> open(const NuScenes& database, const StreamOptions& options);

  const std::vector<StreamTopic>& topics() const { return topics_; }
  uint64_t messages() const { return 1 + events_.size() * options_.repeat; }
  // What is not as it was recorded: "scene-0061 repeated 100 times at 20 Hz"; empty where all is.
  const std::string& synthetic() const { return synthetic_; }
  // Channels of the scene that are no LiDAR and no camera, and so are left out.
  const std::vector<std::string>& left_out() const { return left_out_; }

  // False at the end. Errors: those of reading the sensors' files.
  Result<bool> next(StreamMessage& message);

 private:
  enum class Kind : uint8_t { kTf, kPose, kCloud, kPicture, kCamera, kAnnotations };
  struct Event {
    int64_t time_us = 0;
    Kind kind{};
    uint32_t topic = 0;
    uint32_t row = 0;  // of sample_data, or of samples for annotations
  };

  explicit NuScenesStream(const NuScenes& database) : database_(&database) {}
  uint32_t topic(std::string name, std::string_view type, const ros::Qos& qos, std::string channel = "");
  void add_events(const std::vector<uint32_t>& data);
  void set_time(const std::vector<uint32_t>& data);
  int64_t time_of(const Event& event, uint64_t repetition) const;
  Bytes tf_static(int64_t time_ns);
  Result<Bytes> encode_event(const Event& event, int64_t time_ns);

  const NuScenes* database_;
  StreamOptions options_;
  std::vector<StreamTopic> topics_;
  std::vector<Event> events_;         // of one repetition, in the order of time
  std::vector<uint32_t> calibrated_;  // sensors of the stream
  std::vector<std::string> left_out_;
  std::string synthetic_;
  uint32_t tf_static_topic_ = 0;
  int64_t first_us_ = 0;
  double stretch_ = 1;
  int64_t period_us_ = 0;  // of one repetition, before stretching
  uint64_t at_ = 0;        // messages that next() gave
  CdrWriter writer_;
  std::string file_;
};

}  // namespace strobe::sensors
