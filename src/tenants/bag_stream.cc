#include "tenants/bag_stream.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>

#include "sensors/mcap_reader.h"
#include "sensors/ros_messages.h"
#include "tenants/ros_frame.h"
#include "tenants/stream_frames.h"
#include "tenants/transform_tree.h"

namespace strobe::tenants {

namespace ros = sensors::ros;

namespace {

constexpr int64_t kSlop_ns = 100'000'000;  // between a sweep and a picture of one moment
constexpr size_t kMostPictureBytes = size_t{2} << 30;

sensors::Bytes bytes_of(const sensors::McapMessageView& message) {
  return {reinterpret_cast<const uint8_t*>(message.data.data()), message.data.size()};
}

// What a bag says about where its sensors are.
class Places {
 public:
  Result<void> read(const sensors::McapReader& reader) {
    std::vector<std::string> topics;
    for (const auto& [id, channel] : reader.contents().channels) {
      const auto schema = reader.contents().schemas.find(channel.schema_id);
      if (schema == reader.contents().schemas.end()) continue;
      if (schema->second.name == ros::type_name<ros::TfMessage>() ||
          schema->second.name == ros::type_name<ros::CameraInfo>())
        topics.push_back(channel.topic);
    }
    if (topics.empty()) return {};
    sensors::McapQuery query;
    query.topics = topics;
    sensors::McapMessages messages = reader.messages(query);
    for (;;) {
      sensors::McapMessageView message;
      STROBE_ASSIGN(const bool more, messages.next(message));
      if (!more) return {};
      if (auto taken = take(message); !taken) return std::move(taken).error().at(message.channel->topic);
    }
  }

  const TransformTree& tree() const { return tree_; }

  // Of the pictures of a topic in a frame: by the frame, else by the folder that both topics have in common
  // ("/CAM_FRONT/camera_info", "/image_data/CAM_FRONT"). nullptr: not told.
  const ros::CameraInfo* camera(const std::string& topic, const std::string& frame) const {
    if (const auto found = by_frame_.find(frame); found != by_frame_.end()) return &found->second;
    for (const auto& [folder, info] : by_folder_)
      if ((topic + "/").find("/" + folder + "/") != std::string::npos) return &info;
    return nullptr;
  }

 private:
  Result<void> take(const sensors::McapMessageView& message) {
    if (message.schema->name == ros::type_name<ros::TfMessage>()) {
      STROBE_ASSIGN(const auto transforms, ros::decode<ros::TfMessage>(bytes_of(message)));
      tree_.add(transforms, message.channel->topic.ends_with("tf_static"));
      return {};
    }
    const std::string& topic = message.channel->topic;
    if (!seen_.insert(topic).second) return {};
    STROBE_ASSIGN(ros::CameraInfo info, ros::decode<ros::CameraInfo>(bytes_of(message)));
    const std::string folder = topic.substr(0, topic.find_last_of('/'));
    if (const size_t slash = folder.find_last_of('/'); slash != std::string::npos && slash + 1 < folder.size())
      by_folder_.emplace(folder.substr(slash + 1), info);
    by_frame_.emplace(info.header.frame_id, std::move(info));
    return {};
  }

  TransformTree tree_;
  std::set<std::string> seen_;  // topics of cameras, of which the first message counts
  std::map<std::string, ros::CameraInfo> by_frame_, by_folder_;
};

// Where the sensor of a message is; the camera's own frame where the message is called otherwise (pPerf writes tokens).
std::optional<TransformTree::Place> place_of(const Places& places, const std::string& topic, const RosFrame& frame) {
  if (auto place = places.tree().place(frame.frame_id, frame.frame.stamp_ns)) return place;
  const ros::CameraInfo* info = places.camera(topic, frame.frame_id);
  return info == nullptr ? std::nullopt : places.tree().place(info->header.frame_id, frame.frame.stamp_ns);
}

models::Camera camera_of(const ros::CameraInfo& info, const sensors::Pose& place) {
  sensors::Matrix3 intrinsic;
  for (size_t i = 0; i < 9; ++i) intrinsic[i / 3][i % 3] = info.k[i];
  return camera_at(intrinsic, static_cast<int>(info.width), static_cast<int>(info.height), place);
}

// One topic's messages as frames.
Result<void> read_single(const sensors::McapReader& reader, const SourceSpec& source, const StreamNeeds& needs,
                         const Places& places, StreamWeather& weather, FrameList& frames) {
  sensors::McapQuery query;
  query.topics = source.channels;
  sensors::McapMessages messages = reader.messages(query);
  std::string topic;  // the first one that fits
  while (!frames.full()) {
    sensors::McapMessageView message;
    STROBE_ASSIGN(const bool more, messages.next(message));
    if (!more) break;
    if (message.schema == nullptr || message.schema->name != message_type_of(needs) ||
        (!topic.empty() && message.channel->topic != topic))
      continue;
    topic = message.channel->topic;
    STROBE_ASSIGN(RosFrame found, frame_of_message(topic, bytes_of(message), needs));
    if (const auto place = place_of(places, topic, found)) found.frame.pose = place->pose;
    if (needs.pictures) {
      auto picture = std::make_shared<EncodedPicture>(*found.frame.pictures[0]);
      picture->channel = topic;
      // Boxes are told in the camera's own frame, as the frame's pose is the camera's.
      if (const ros::CameraInfo* info = places.camera(topic, found.frame_id)) picture->camera = camera_of(*info, {});
      found.frame.pictures[0] = std::move(picture);
    }
    if (found.frame.points && weather.falls()) {
      auto wet = std::make_shared<PointCloud>(*found.frame.points);
      STROBE_TRY(weather.fall_on(*wet, message.sequence));
      found.frame.points = std::move(wet);
    }
    STROBE_TRY(frames.add(std::move(found.frame)));
  }
  return {};
}

// Sweeps with the pictures of all cameras at their time.
class Joined {
 public:
  Joined(const SourceSpec& source, const Places& places) : source_(source), places_(places) {}

  Result<void> read(const sensors::McapReader& reader) {
    constexpr StreamNeeds kPoints{.pictures = false, .points = true}, kPictures{.pictures = true, .points = false};
    sensors::McapQuery query;
    query.topics = source_.channels;
    sensors::McapMessages messages = reader.messages(query);
    size_t bytes = 0;
    for (;;) {
      sensors::McapMessageView message;
      STROBE_ASSIGN(const bool more, messages.next(message));
      if (!more) return {};
      if (message.schema == nullptr) continue;
      const std::string& topic = message.channel->topic;
      if (message.schema->name == message_type_of(kPoints)) {
        if (!lidar_.empty() && topic != lidar_) continue;
        lidar_ = topic;
        if (enough()) continue;
        STROBE_ASSIGN(sweeps_.emplace_back(), frame_of_message(topic, bytes_of(message), kPoints));
        bytes += sweeps_.back().frame.points->values.size() * sizeof(float);
      } else if (message.schema->name == message_type_of(kPictures)) {
        STROBE_ASSIGN(RosFrame frame, frame_of_message(topic, bytes_of(message), kPictures));
        if (enough() && frame.frame.stamp_ns > sweeps_.back().frame.stamp_ns + kSlop_ns) continue;
        bytes += frame.frame.pictures[0]->bytes.size();
        pictures_[topic].push_back(std::move(frame));
      }
      if (bytes > kMostPictureBytes)
        return usage_error(
            fmt::format("more than {} GiB of frames: say how many with `frames:`", kMostPictureBytes >> 30));
    }
  }

  Result<void> join(StreamWeather& weather, FrameList& frames) {
    if (sweeps_.empty() || pictures_.empty()) return {};
    for (size_t i = 0; i < sweeps_.size(); ++i) {
      RosFrame& sweep = sweeps_[i];
      STROBE_ASSIGN(const sensors::Pose lidar, place(lidar_, sweep));
      STROBE_ASSIGN(const bool whole, add_pictures(sweep, lidar));
      if (!whole) {
        ++left_out_;
        continue;
      }
      sweep.frame.pose = lidar;
      if (weather.falls()) {
        auto wet = std::make_shared<PointCloud>(*sweep.frame.points);
        STROBE_TRY(weather.fall_on(*wet, i));
        sweep.frame.points = std::move(wet);
      }
      STROBE_TRY(frames.add(std::move(sweep.frame)));
    }
    return {};
  }

  std::vector<std::string> notes() const {
    if (left_out_ == 0) return {};
    return {fmt::format("{} of {} sweeps have no picture of {} within {} ms and are left out", left_out_,
                        sweeps_.size(), missing_, kSlop_ns / 1'000'000)};
  }

 private:
  bool enough() const { return source_.most_frames > 0 && static_cast<int64_t>(sweeps_.size()) >= source_.most_frames; }

  Result<sensors::Pose> place(const std::string& topic, const RosFrame& frame) {
    const auto found = place_of(places_, topic, frame);
    if (!found || (!root_.empty() && found->root != root_))
      return unsupported(
          fmt::format("no transform leads from {} (frame \"{}\") to the other sensors", topic, frame.frame_id));
    root_ = found->root;
    return found->pose;
  }

  // False where a camera has none.
  Result<bool> add_pictures(RosFrame& sweep, const sensors::Pose& lidar) {
    const int64_t stamp = sweep.frame.stamp_ns;
    for (const auto& [topic, list] : pictures_) {
      const auto nearest =
          std::ranges::min_element(list, {}, [&](const RosFrame& one) { return std::abs(one.frame.stamp_ns - stamp); });
      if (std::abs(nearest->frame.stamp_ns - stamp) > kSlop_ns) {
        missing_ = topic;
        return false;
      }
      const ros::CameraInfo* info = places_.camera(topic, nearest->frame_id);
      if (info == nullptr)
        return unsupported(fmt::format("{}: no CameraInfo tells the camera of frame \"{}\"", topic, nearest->frame_id));
      STROBE_ASSIGN(const sensors::Pose camera, place(topic, *nearest));
      auto picture = std::make_shared<EncodedPicture>(*nearest->frame.pictures[0]);
      picture->channel = topic;
      picture->camera = camera_of(*info, lidar.inverse() * camera);
      sweep.frame.pictures.push_back(std::move(picture));
    }
    return true;
  }

  const SourceSpec& source_;
  const Places& places_;
  std::string lidar_, root_, missing_;
  std::vector<RosFrame> sweeps_;
  std::map<std::string, std::vector<RosFrame>> pictures_;  // by topic
  size_t left_out_ = 0;
};

Result<std::unique_ptr<FrameStream>> open(const SourceSpec& source, const StreamNeeds& needs, uint64_t seed) {
  STROBE_ASSIGN(const sensors::McapReader reader, sensors::McapReader::open(source.path));
  Places places;
  STROBE_TRY(places.read(reader));
  StreamWeather weather(source, seed);
  FrameList frames(source);
  std::vector<std::string> notes = reader.faults();
  if (needs.pictures && needs.points) {
    Joined joined(source, places);
    STROBE_TRY(joined.read(reader));
    STROBE_TRY(joined.join(weather, frames));
    for (std::string& note : joined.notes()) notes.push_back(std::move(note));
  } else {
    STROBE_TRY(read_single(reader, source, needs, places, weather, frames));
  }
  for (std::string& note : weather.notes()) notes.push_back(std::move(note));
  return frames.stream(std::move(notes));
}

}  // namespace

Result<std::unique_ptr<FrameStream>> open_bag(const SourceSpec& source, const StreamNeeds& needs, uint64_t seed) {
  auto stream = open(source, needs, seed);
  // The reader names the file itself where it is the file's fault.
  if (!stream && stream.error().to_string().find(source.path) == std::string::npos)
    return std::move(stream).error().at(source.path);
  return stream;
}

}  // namespace strobe::tenants
