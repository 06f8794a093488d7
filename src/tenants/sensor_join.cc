#include "tenants/sensor_join.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "tenants/stream_frames.h"

namespace strobe::tenants {

namespace ros = sensors::ros;

Result<void> SensorPlaces::add_transforms(const std::string& topic, sensors::Bytes cdr) {
  STROBE_ASSIGN(const auto transforms, ros::decode<ros::TfMessage>(cdr));
  tree_.add(transforms, topic.ends_with("tf_static"));
  return {};
}

Result<void> SensorPlaces::add_camera(const std::string& topic, sensors::Bytes cdr) {
  if (cameras_.contains(topic)) return {};
  STROBE_ASSIGN(ros::CameraInfo info, ros::decode<ros::CameraInfo>(cdr));
  cameras_.insert(topic);
  // "/left/camera/camera_info": left/camera, and camera where no other one is called so.
  std::string folder = topic.substr(0, topic.find_last_of('/'));
  for (size_t slash = folder.find('/'); !folder.empty(); slash = folder.find('/')) {
    if (slash != 0) {
      const auto [place, fresh] = by_folder_.try_emplace(folder, info);
      if (!fresh) ambiguous_.insert(folder);
    }
    if (slash == std::string::npos) break;
    folder = folder.substr(slash + 1);
  }
  std::string frame = info.header.frame_id;
  by_frame_.emplace(std::move(frame), std::move(info));
  return {};
}

const ros::CameraInfo* SensorPlaces::camera(const std::string& topic, const std::string& frame_id) const {
  if (const auto found = by_frame_.find(frame_id); !frame_id.empty() && found != by_frame_.end()) return &found->second;
  // The longest folder that the topic has, too: of /left/camera and /right/camera that of its own side.
  const ros::CameraInfo* best = nullptr;
  size_t longest = 0;
  for (const auto& [folder, info] : by_folder_)
    if (folder.size() > longest && !ambiguous_.contains(folder) &&
        ("/" + topic + "/").find("/" + folder + "/") != std::string::npos)
      best = &info, longest = folder.size();
  return best;
}

std::optional<TransformTree::Place> SensorPlaces::place(const std::string& topic, const RosFrame& frame) const {
  if (auto place = tree_.place(frame.frame_id, frame.frame.stamp_ns)) return place;
  const ros::CameraInfo* info = camera(topic, frame.frame_id);
  return info == nullptr ? std::nullopt : tree_.place(info->header.frame_id, frame.frame.stamp_ns);
}

models::Camera camera_of(const ros::CameraInfo& info, const sensors::Pose& place) {
  sensors::Matrix3 intrinsic;
  for (size_t i = 0; i < 9; ++i) intrinsic[i / 3][i % 3] = info.k[i];
  return camera_at(intrinsic, static_cast<int>(info.width), static_cast<int>(info.height), place);
}

Result<sensors::Pose> SensorJoin::place(const std::string& topic, const RosFrame& frame) {
  const auto found = places_.place(topic, frame);
  if (!found || (!root_.empty() && found->root != root_))
    return unsupported(
        fmt::format("no transform leads from {} (frame \"{}\") to the other sensors", topic, frame.frame_id));
  root_ = found->root;
  return found->pose;
}

Result<bool> SensorJoin::add_pictures(const std::string& topic, RosFrame& sweep, const PicturesByTopic& pictures) {
  STROBE_ASSIGN(const sensors::Pose lidar, place(topic, sweep));
  const int64_t stamp = sweep.frame.stamp_ns;
  for (const auto& [camera_topic, list] : pictures) {
    const auto nearest =
        std::ranges::min_element(list, {}, [&](const RosFrame& one) { return std::abs(one.frame.stamp_ns - stamp); });
    if (nearest == list.end() || std::abs(nearest->frame.stamp_ns - stamp) > kJoin_ns) {
      missing_ = camera_topic;
      return false;
    }
    const ros::CameraInfo* info = places_.camera(camera_topic, nearest->frame_id);
    if (info == nullptr)
      return unsupported(
          fmt::format("{}: no CameraInfo tells the camera of frame \"{}\"", camera_topic, nearest->frame_id));
    STROBE_ASSIGN(const sensors::Pose camera, place(camera_topic, *nearest));
    auto picture = std::make_shared<EncodedPicture>(*nearest->frame.pictures[0]);
    picture->channel = camera_topic;
    picture->camera = camera_of(*info, lidar.inverse() * camera);
    sweep.frame.pictures.push_back(std::move(picture));
  }
  sweep.frame.pose = lidar;
  return true;
}

}  // namespace strobe::tenants
