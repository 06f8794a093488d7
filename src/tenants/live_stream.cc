#include "tenants/live_stream.h"

#include <fmt/format.h>

#include <algorithm>

#include "tenants/live_join.h"
#include "tenants/ros_frame.h"

namespace strobe::tenants {

Result<std::unique_ptr<FrameStream>> LiveStream::open(const SourceSpec& source, const StreamNeeds& needs,
                                                      std::chrono::milliseconds first) {
  if (!needs.pictures && !needs.points)
    return usage_error("this tenant's model takes no frames of a topic").at(source.path);
  sensors::DdsOptions options;
  if (source.domain >= 0) options.domain = source.domain;
  STROBE_ASSIGN(const auto participant, sensors::join_dds(options));
  std::unique_ptr<LiveStream> stream(new LiveStream(source, needs));
  if (needs.pictures && needs.points) {
    auto join = LiveJoin::open(*participant, source);
    if (!join) return std::move(join).error().at("topic " + source.path);
    stream->join_ = std::move(*join);
    STROBE_TRY(stream->begin_join(first));
    return std::unique_ptr<FrameStream>(std::move(stream));
  }
  // A best-effort reader hears every writer; a reliable one only those that are, and gets large messages whole.
  sensors::DdsTopic topic{source.path, message_type_of(needs), {}, sensors::ros::kSensorQos};
  if (source.reliable) topic.qos.reliability = sensors::ros::Qos::Reliability::kReliable;
  STROBE_ASSIGN(stream->subscriber_, participant->create_subscriber(topic));
  STROBE_ASSIGN(auto frame, stream->wait(first));
  if (!frame)
    return not_found(fmt::format("no message of type {} came within {:g} s ({})", topic.type,
                                 std::chrono::duration<double>(first).count(),
                                 stream->subscriber_->writers() == 0 ? "nobody writes it" : "it has a writer"))
        .at("topic " + source.path);
  stream->first_ = std::move(frame->frame);
  return std::unique_ptr<FrameStream>(std::move(stream));
}

// The first sweeps may come before the transforms and cameras that they need.
Result<void> LiveStream::begin_join(std::chrono::milliseconds first) {
  const auto until = std::chrono::steady_clock::now() + first;
  std::string fault;
  while (std::chrono::steady_clock::now() < until) {
    auto frame = join_->wait(std::chrono::milliseconds(50));
    if (!frame) {
      fault = frame.error().message();
    } else if (*frame) {
      first_ = std::move((*frame)->frame);
      return {};
    }
  }
  return not_found(fmt::format("no sweep with its pictures came within {:g} s ({})",
                               std::chrono::duration<double>(first).count(), fault.empty() ? join_->lacking() : fault))
      .at("topic " + topic_);
}

LiveStream::~LiveStream() = default;
LiveStream::LiveStream(const SourceSpec& source, const StreamNeeds& needs) : topic_(source.path), needs_(needs) {}

Result<std::optional<LiveFrame>> LiveStream::wait(std::chrono::milliseconds limit) {
  if (join_) return join_->wait(limit);
  STROBE_ASSIGN(const bool came, subscriber_->take(sample_, limit));
  if (!came) return std::optional<LiveFrame>();
  const int64_t now =
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch()).count();
  LiveFrame live;
  STROBE_ASSIGN(RosFrame frame, frame_of_message(topic_, sample_.cdr, needs_));
  live.frame = std::move(frame.frame);
  if (sample_.source_time_ns > 0) live.comm_ns = std::max<int64_t>(0, now - sample_.source_time_ns);
  return std::optional<LiveFrame>(std::move(live));
}

}  // namespace strobe::tenants
