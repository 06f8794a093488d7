// A ROS 2 topic as a tenant's source: frames come when they come.
#pragma once

#include <chrono>
#include <memory>
#include <optional>

#include "sensors/dds.h"
#include "tenants/frame_stream.h"

namespace strobe::tenants {

struct LiveFrame {
  SensorFrame frame;
  int64_t comm_ns = 0;  // from its being written, by the writer's clock, until it was here
};

class LiveJoin;

class LiveStream : public FrameStream {
 public:
  ~LiveStream() override;
  // Of a model that needs pictures, too, source.channels are their topics (tenants/live_join.h).
  // Waits for a first message, so that the model knows what it will get. Errors: kNotFound (none came in time),
  // those of DDS and of messages.
  static Result<std::unique_ptr<FrameStream>> open(const SourceSpec& source, const StreamNeeds& needs,
                                                   std::chrono::milliseconds first);

  int64_t size() const override { return 1; }
  SensorFrame frame(int64_t) const override { return first_; }
  LiveStream* live() override { return this; }
  // The next message; nothing when the time has passed first. One thread.
  Result<std::optional<LiveFrame>> wait(std::chrono::milliseconds limit);

 private:
  LiveStream(const SourceSpec& source, const StreamNeeds& needs);
  Result<void> begin_join(std::chrono::milliseconds first);

  std::string topic_;
  StreamNeeds needs_;
  std::unique_ptr<sensors::DdsSubscriber> subscriber_;
  std::unique_ptr<LiveJoin> join_;  // of a model that needs pictures and sweeps
  sensors::DdsSample sample_;
  SensorFrame first_;
};

}  // namespace strobe::tenants
