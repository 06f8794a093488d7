#include "tenants/bag_stream.h"

#include <fmt/format.h>

#include "sensors/mcap_reader.h"
#include "sensors/ros_messages.h"
#include "tenants/ros_frame.h"
#include "tenants/sensor_join.h"
#include "tenants/stream_frames.h"

namespace strobe::tenants {

namespace ros = sensors::ros;

namespace {

constexpr size_t kMostPictureBytes = size_t{2} << 30;

sensors::Bytes bytes_of(const sensors::McapMessageView& message) {
  return {reinterpret_cast<const uint8_t*>(message.data.data()), message.data.size()};
}

// What the bag says about where its sensors are.
Result<void> read_places(const sensors::McapReader& reader, SensorPlaces& places) {
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
    const std::string& topic = message.channel->topic;
    const bool transforms = message.schema->name == ros::type_name<ros::TfMessage>();
    auto taken =
        transforms ? places.add_transforms(topic, bytes_of(message)) : places.add_camera(topic, bytes_of(message));
    if (!taken) return std::move(taken).error().at(topic);
  }
}

// One topic's messages as frames.
Result<void> read_single(const sensors::McapReader& reader, const SourceSpec& source, const StreamNeeds& needs,
                         const SensorPlaces& places, StreamWeather& weather, FrameList& frames) {
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
    if (const auto place = places.place(topic, found)) found.frame.pose = place->pose;
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
  Joined(const SourceSpec& source, const SensorPlaces& places) : source_(source), join_(places) {}

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
        if (enough() && frame.frame.stamp_ns > sweeps_.back().frame.stamp_ns + kJoin_ns) continue;
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
      STROBE_ASSIGN(const bool whole, join_.add_pictures(lidar_, sweep, pictures_));
      if (!whole) {
        ++left_out_;
        continue;
      }
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
                        sweeps_.size(), join_.missing(), kJoin_ns / 1'000'000)};
  }

 private:
  bool enough() const { return source_.most_frames > 0 && static_cast<int64_t>(sweeps_.size()) >= source_.most_frames; }

  const SourceSpec& source_;
  SensorJoin join_;
  std::string lidar_;
  std::vector<RosFrame> sweeps_;
  PicturesByTopic pictures_;
  size_t left_out_ = 0;
};

Result<std::unique_ptr<FrameStream>> open(const SourceSpec& source, const StreamNeeds& needs, uint64_t seed) {
  STROBE_ASSIGN(const sensors::McapReader reader, sensors::McapReader::open(source.path));
  SensorPlaces places;
  STROBE_TRY(read_places(reader, places));
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
