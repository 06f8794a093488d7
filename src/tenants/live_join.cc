#include "tenants/live_join.h"

#include <fmt/format.h>

#include <algorithm>

namespace strobe::tenants {

namespace ros = sensors::ros;

namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr StreamNeeds kPoints{.pictures = false, .points = true}, kPictures{.pictures = true, .points = false};
constexpr size_t kMostPictures = 32;  // of a camera that wait for a sweep
constexpr size_t kMostSweeps = 8;     // that wait for pictures
constexpr milliseconds kLook(5);

std::string info_topic(const std::string& pictures) {
  return pictures.substr(0, pictures.find_last_of('/') + 1) + "camera_info";
}

}  // namespace

Result<std::unique_ptr<LiveJoin>> LiveJoin::open(sensors::DdsParticipant& participant, const SourceSpec& source) {
  if (source.channels.empty())
    return usage_error("a model that needs pictures, too: say with `channels` of which topics");
  std::unique_ptr<LiveJoin> made(new LiveJoin);
  made->lidar_ = source.path;
  const auto subscribe = [&](const std::string& topic, const char* type, ros::Qos qos) {
    if (source.reliable) qos.reliability = ros::Qos::Reliability::kReliable;
    return participant.create_subscriber({topic, type, {}, qos});
  };
  STROBE_ASSIGN(made->sweeps_, subscribe(source.path, message_type_of(kPoints), ros::kSensorQos));
  for (const std::string& topic : source.channels) {
    made->pictures_[topic];
    STROBE_ASSIGN(made->cameras_[topic], subscribe(topic, message_type_of(kPictures), ros::kSensorQos));
    const std::string info = info_topic(topic);
    STROBE_ASSIGN(made->infos_[info], subscribe(info, ros::type_name<ros::CameraInfo>(), ros::kSensorQos));
  }
  STROBE_ASSIGN(made->transforms_["/tf"], subscribe("/tf", ros::type_name<ros::TfMessage>(), ros::kTfQos));
  STROBE_ASSIGN(made->transforms_["/tf_static"],
                subscribe("/tf_static", ros::type_name<ros::TfMessage>(), ros::kTfStaticQos));
  return made;
}

// What has come of every topic; waits for the first sweep at most so long.
Result<void> LiveJoin::take_all(milliseconds limit) {
  for (;;) {
    STROBE_ASSIGN(const bool came, sweeps_->take(sample_, limit));
    if (!came) break;
    limit = milliseconds(0);
    Waiting one;
    STROBE_ASSIGN(one.sweep, frame_of_message(lidar_, sample_.cdr, kPoints));
    one.written_ns = sample_.source_time_ns;
    one.came = steady_clock::now();
    waiting_.push_back(std::move(one));
    if (waiting_.size() > kMostSweeps) waiting_.pop_front();
  }
  const auto each = [&](auto& subscribers, const auto& use) -> Result<void> {
    for (auto& [topic, subscriber] : subscribers) {
      for (;;) {
        STROBE_ASSIGN(const bool came, subscriber->take(sample_, milliseconds(0)));
        if (!came) break;
        if (auto used = use(topic); !used) return std::move(used).error().at(topic);
      }
    }
    return {};
  };
  STROBE_TRY(each(transforms_, [&](const std::string& topic) { return places_.add_transforms(topic, sample_.cdr); }));
  STROBE_TRY(each(infos_, [&](const std::string& topic) { return places_.add_camera(topic, sample_.cdr); }));
  return each(cameras_, [&](const std::string& topic) -> Result<void> {
    STROBE_ASSIGN(RosFrame picture, frame_of_message(topic, sample_.cdr, kPictures));
    auto& list = pictures_[topic];
    list.push_back(std::move(picture));
    if (list.size() > kMostPictures) list.pop_front();
    return {};
  });
}

// Whether no later picture could be nearer: each camera is as far as the sweep.
bool LiveJoin::complete(int64_t stamp_ns) const {
  return std::ranges::all_of(pictures_, [&](const auto& of_topic) {
    return !of_topic.second.empty() && of_topic.second.back().frame.stamp_ns >= stamp_ns;
  });
}

Result<std::optional<LiveFrame>> LiveJoin::wait(milliseconds limit) {
  const auto until = steady_clock::now() + limit;
  for (;;) {
    STROBE_TRY(take_all(std::min(kLook, limit)));
    while (!waiting_.empty()) {
      Waiting& first = waiting_.front();
      const bool over = steady_clock::now() - first.came > std::chrono::nanoseconds(kJoin_ns);
      if (!over && !complete(first.sweep.frame.stamp_ns)) break;
      Waiting one = std::move(first);
      waiting_.pop_front();
      STROBE_ASSIGN(const bool whole, join_.add_pictures(lidar_, one.sweep, pictures_));
      if (!whole) continue;
      const int64_t now =
          std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch())
              .count();
      LiveFrame live{std::move(one.sweep.frame), 0};
      if (one.written_ns > 0) live.comm_ns = std::max<int64_t>(0, now - one.written_ns);
      return std::optional<LiveFrame>(std::move(live));
    }
    if (steady_clock::now() >= until) return std::optional<LiveFrame>();
  }
}

std::string LiveJoin::lacking() const {
  if (sweeps_->writers() == 0) return fmt::format("nobody writes {}", lidar_);
  for (const auto& [topic, list] : pictures_)
    if (list.empty()) return fmt::format("no picture came on {}", topic);
  if (!join_.missing().empty())
    return fmt::format("no picture of {} lay within {} ms of a sweep", join_.missing(), kJoin_ns / 1'000'000);
  return fmt::format("no sweep came on {}", lidar_);
}

}  // namespace strobe::tenants
