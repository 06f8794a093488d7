// Messages sent over DDS at the pace of their times: what `strobe sensors replay` and `publish` do.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "sensors/cdr.h"
#include "sensors/dds.h"

namespace strobe::sensors {

struct PacedMessage {
  uint32_t topic = 0;  // place in topics()
  int64_t time_ns = 0;
  Bytes cdr;  // until the next call
};

// Messages in the order of their times.
class MessageSource {
 public:
  virtual ~MessageSource() = default;
  virtual const std::vector<DdsTopic>& topics() const = 0;
  virtual Result<bool> next(PacedMessage& message) = 0;  // false at the end
  virtual Result<void> rewind() = 0;
  // Of the frames, as they are sent: a round that follows another begins a whole number of them after it. 0: not known,
  // and it follows at the mean distance of messages.
  virtual int64_t period_ns() const { return 0; }
};

struct ReplayOptions {
  double rate = 1;     // 2: twice as fast as the times say
  bool loop = false;   // from the beginning again, until stopped
  bool clock = false;  // /clock: the time of each message, and 40 times a second in between
  // How long to wait for a first reader; then 1 s more, since it must find the writers, too, and a volatile writer's
  // messages before that are lost to it.
  std::chrono::milliseconds wait{2000};
};

struct ReplaySummary {
  struct Topic {
    std::string name;
    uint64_t messages = 0;
    int readers = 0, readers_gone = 0;  // at the end; in the meantime
  };
  std::vector<Topic> topics;
  uint64_t messages = 0, bytes = 0, rounds = 0;
  double seconds = 0;  // from the first message to the last
  // How late messages were handed to DDS, after the moment that the pace asks for; quantiles of the last 100,000.
  double late_p50_ms = 0, late_p99_ms = 0, late_max_ms = 0;
  bool stopped = false;
};

// Sends until the end or until stop. tell: sentences for the user, each said once (a topic whose readers went away).
// Errors: kUsage (rate not above 0, no messages), those of the source and of DDS.
Result<ReplaySummary> replay(MessageSource& source, DdsParticipant& participant, const ReplayOptions& options,
                             const std::atomic<bool>& stop, const std::function<void(const std::string&)>& tell);

// The QoS of a bag's channel: the profiles (YAML, a list with one for each writer) that rosbag2 keeps under
// "offered_qos_profiles". Of several the one that all readers of each would have matched. Both numbers and names
// ("reliability: reliable") are known; what is missing or unknown is as ros::Qos has it.
ros::Qos parse_offered_qos(std::string_view yaml);

}  // namespace strobe::sensors
