#include "tenants/bag_stream.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>

#include "sensors/mcap_reader.h"
#include "sensors/ros_messages.h"
#include "tenants/ros_frame.h"
#include "tenants/sensor_join.h"
#include "tenants/stream_frames.h"

namespace strobe::tenants {

namespace ros = sensors::ros;

namespace {

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
    // A topic may have channels of other types, too.
    if (message.schema == nullptr) continue;
    const std::string& topic = message.channel->topic;
    const bool transforms = message.schema->name == ros::type_name<ros::TfMessage>();
    if (!transforms && message.schema->name != ros::type_name<ros::CameraInfo>()) continue;
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
  uint64_t sweep = 0;
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
      STROBE_TRY(weather.fall_on(*wet, sweep++));
      found.frame.points = std::move(wet);
    }
    STROBE_TRY(frames.add(std::move(found.frame)));
  }
  return {};
}

// Sweeps with the pictures of all cameras at their time, joined as they are read, so that few wait in memory.
class Joined {
 public:
  Joined(const SourceSpec& source, const SensorPlaces& places, StreamWeather& weather, FrameList& frames)
      : source_(source), join_(places), weather_(weather), frames_(frames) {}

  Result<void> read(const sensors::McapReader& reader) {
    find_cameras(reader.contents());
    sensors::McapQuery query;
    query.topics = source_.channels;
    sensors::McapMessages messages = reader.messages(query);
    while (!frames_.full()) {
      sensors::McapMessageView message;
      STROBE_ASSIGN(const bool more, messages.next(message));
      if (!more) break;
      if (message.schema == nullptr) continue;
      STROBE_TRY(take(message));
      STROBE_TRY(join(false));
    }
    return join(true);
  }

  std::vector<std::string> notes() const {
    if (left_out_ == 0) return {};
    return {fmt::format("{} of {} sweeps have no picture of {} within {} ms and are left out", left_out_, seen_,
                        join_.missing(), kJoin_ns / 1'000'000)};
  }

 private:
  static constexpr StreamNeeds kPoints{.pictures = false, .points = true}, kPictures{.pictures = true, .points = false};

  void find_cameras(const sensors::McapContents& contents) {
    for (const auto& entry : contents.channels) {
      const sensors::McapChannel& channel = entry.second;
      const auto schema = contents.schemas.find(channel.schema_id);
      if (schema == contents.schemas.end() || schema->second.name != message_type_of(kPictures)) continue;
      if (!source_.channels.empty() && std::ranges::find(source_.channels, channel.topic) == source_.channels.end())
        continue;
      if (contents.statistics &&
          std::ranges::none_of(contents.statistics->channel_message_counts,
                               [&](const auto& counted) { return counted.first == channel.id && counted.second > 0; }))
        continue;
      pictures_[channel.topic];
    }
  }

  Result<void> take(const sensors::McapMessageView& message) {
    const std::string& topic = message.channel->topic;
    if (message.schema->name == message_type_of(kPoints) && (lidar_.empty() || topic == lidar_)) {
      lidar_ = topic;
      ++seen_;
      STROBE_ASSIGN(sweeps_.emplace_back(), frame_of_message(topic, bytes_of(message), kPoints));
      newest_ns_ = std::max(newest_ns_, sweeps_.back().frame.stamp_ns);
    } else if (message.schema->name == message_type_of(kPictures)) {
      auto& list = pictures_[topic];
      STROBE_ASSIGN(list.emplace_back(), frame_of_message(topic, bytes_of(message), kPictures));
      newest_ns_ = std::max(newest_ns_, list.back().frame.stamp_ns);
    }
    return {};
  }

  // Whether no picture that is still to come could be nearer.
  bool ready(const RosFrame& sweep) const {
    return newest_ns_ > sweep.frame.stamp_ns + kJoin_ns || std::ranges::all_of(pictures_, [&](const auto& of_topic) {
             return !of_topic.second.empty() && of_topic.second.back().frame.stamp_ns >= sweep.frame.stamp_ns;
           });
  }

  Result<void> join(bool all) {
    if (pictures_.empty()) return {};
    for (; !sweeps_.empty() && !frames_.full() && (all || ready(sweeps_.front())); sweeps_.pop_front()) {
      RosFrame& sweep = sweeps_.front();
      for (auto& [topic, list] : pictures_)
        while (list.size() > 1 && list.front().frame.stamp_ns + kJoin_ns < sweep.frame.stamp_ns) list.pop_front();
      STROBE_ASSIGN(const bool whole, join_.add_pictures(lidar_, sweep, pictures_));
      if (!whole) {
        ++left_out_;
        continue;
      }
      if (weather_.falls()) {
        auto wet = std::make_shared<PointCloud>(*sweep.frame.points);
        STROBE_TRY(weather_.fall_on(*wet, joined_++));
        sweep.frame.points = std::move(wet);
      }
      STROBE_TRY(frames_.add(std::move(sweep.frame)));
    }
    return {};
  }

  const SourceSpec& source_;
  SensorJoin join_;
  StreamWeather& weather_;
  FrameList& frames_;
  std::string lidar_;
  std::deque<RosFrame> sweeps_;  // that wait for pictures
  PicturesByTopic pictures_;
  int64_t newest_ns_ = INT64_MIN;
  uint64_t joined_ = 0;  // frames so far: each has weather of its own
  size_t seen_ = 0, left_out_ = 0;
};

Result<std::unique_ptr<FrameStream>> open(const SourceSpec& source, const StreamNeeds& needs, uint64_t seed) {
  STROBE_ASSIGN(const sensors::McapReader reader, sensors::McapReader::open(source.path));
  SensorPlaces places;
  STROBE_TRY(read_places(reader, places));
  StreamWeather weather(source, seed);
  FrameList frames(source);
  std::vector<std::string> notes = reader.faults();
  if (needs.pictures && needs.points) {
    Joined joined(source, places, weather, frames);
    STROBE_TRY(joined.read(reader));
    for (std::string& note : joined.notes()) notes.push_back(std::move(note));
    if (frames.empty() && !notes.empty()) return not_found(notes.back());
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
