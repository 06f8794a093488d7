// Sweeps and pictures of one moment, joined for models that need both, out of ROS 2 messages.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "models/bev_camera.h"
#include "sensors/ros_messages.h"
#include "tenants/ros_frame.h"
#include "tenants/transform_tree.h"

namespace strobe::tenants {

inline constexpr int64_t kJoin_ns = 100'000'000;  // the most between the stamps of a sweep and a picture of one moment

// Where sensors are, and what their cameras are like, by transforms and CameraInfo.
class SensorPlaces {
 public:
  // Errors: kBadData (no such message). Of a camera's topic the first message counts.
  Result<void> add_transforms(const std::string& topic, sensors::Bytes cdr);  // a topic "...tf_static" always holds
  Result<void> add_camera(const std::string& topic, sensors::Bytes cdr);

  // Of the pictures of a topic in a frame: by the frame, else by the longest folders that both topics have in common
  // ("/CAM_FRONT/camera_info", "/image_data/CAM_FRONT"). nullptr: not told.
  const sensors::ros::CameraInfo* camera(const std::string& topic, const std::string& frame_id) const;
  // Where the sensor of a message is at its stamp: by its frame_id, or that of its camera where it is called otherwise
  // (pPerf writes tokens).
  std::optional<TransformTree::Place> place(const std::string& topic, const RosFrame& frame) const;

 private:
  TransformTree tree_;
  std::set<std::string> cameras_;  // topics of CameraInfo
  std::map<std::string, sensors::ros::CameraInfo> by_frame_, by_folder_;
  std::set<std::string> ambiguous_;  // folders of several cameras
};

// place: of the camera in the frame that it is told in.
models::Camera camera_of(const sensors::ros::CameraInfo& info, const sensors::Pose& place);

using PicturesByTopic = std::map<std::string, std::deque<RosFrame>>;

class SensorJoin {
 public:
  explicit SensorJoin(const SensorPlaces& places) : places_(places) {}

  // To a sweep of this topic its pose and, of each topic, the picture whose stamp is nearest, with its camera as the
  // LiDAR sees it. False where a topic has none within kJoin_ns: missing() names it. Errors: kUnsupported (no
  // transform between the two, no CameraInfo).
  Result<bool> add_pictures(const std::string& topic, RosFrame& sweep, const PicturesByTopic& pictures);
  const std::string& missing() const { return missing_; }

 private:
  Result<sensors::Pose> place(const std::string& topic, const RosFrame& frame);

  const SensorPlaces& places_;
  std::string root_;  // of the transforms
  std::string missing_;
};

}  // namespace strobe::tenants
