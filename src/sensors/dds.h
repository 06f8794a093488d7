// Talking to ROS 2 without ROS: messages as CDR bytes on DDS topics that ROS 2 nodes understand (docs/ros2.md says by
// which names). The DDS library lies in a plugin that is opened at the first participant, since loading it costs more
// than most commands take.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sensors/ros_definitions.h"
#include "strobe/base/result.h"

namespace strobe::sensors {

// A reliable reader does not match a best-effort writer, a transient-local reader no volatile one.
struct DdsTopic {
  std::string name;       // of ROS: "/lidar/points"
  std::string type;       // of ROS: "sensor_msgs/msg/PointCloud2"
  std::string type_hash;  // "RIHS01_..." as ROS 2 tells it from Iron on; empty: not told
  ros::Qos qos;           // depth 0: all are kept until they are acknowledged, and a writer blocks
};

enum class DdsTransport : uint8_t { kAll, kUdp, kSharedMemory };

struct DdsOptions {
  std::optional<int> domain;  // default: ROS_DOMAIN_ID, else 0
  DdsTransport transport = DdsTransport::kAll;
  std::optional<bool> this_host_only;  // UDP on the loopback interface alone; default: whether ROS_LOCALHOST_ONLY is 1
};

struct DdsSample {
  std::vector<uint8_t> cdr;    // with its 4 bytes of header; other vendors may pad the end by up to 3 bytes
  int64_t source_time_ns = 0;  // when it was written, by the writer's clock (Unix time)
};

// Thread-safe, as are the other objects here. Keeps its participant alive.
class DdsPublisher {
 public:
  virtual ~DdsPublisher() = default;
  // cdr: the message with its header (00 01 00 00 for little endian). Does not wait for readers.
  // Errors: kUsage (shorter than a header), kEngine (the library's word for it).
  virtual Result<void> publish(std::span<const uint8_t> cdr) = 0;
  virtual int readers() const = 0;       // that are matched now
  virtual int readers_gone() const = 0;  // that were matched and are no more, since the beginning
  // False when the time has passed first.
  virtual bool wait_for_readers(int count, std::chrono::milliseconds limit) const = 0;
  // Until every reliable reader has everything; false when the time has passed first.
  virtual bool wait_until_taken(std::chrono::milliseconds limit) = 0;
};

class DdsSubscriber {
 public:
  virtual ~DdsSubscriber() = default;
  // The next message into sample, whose memory is used again; false when the time has passed first.
  virtual Result<bool> take(DdsSample& sample, std::chrono::milliseconds limit) = 0;
  virtual int writers() const = 0;
  virtual bool wait_for_writers(int count, std::chrono::milliseconds limit) const = 0;
};

class DdsParticipant {
 public:
  virtual ~DdsParticipant() = default;
  // Errors: kUsage (a name or type that ROS does not have), kEngine.
  virtual Result<std::unique_ptr<DdsPublisher>> create_publisher(const DdsTopic& topic) = 0;
  virtual Result<std::unique_ptr<DdsSubscriber>> create_subscriber(const DdsTopic& topic) = 0;
};

// Errors: kUnsupported (DDS was not built, or its libraries are not there: says which package gives them), kUsage (a
// domain outside of 0..232), kEngine (no transport could be opened).
Result<std::shared_ptr<DdsParticipant>> join_dds(const DdsOptions& options);

// "/lidar/points" -> "rt/lidar/points"; a missing first slash is put there. Errors: kUsage.
Result<std::string> dds_topic_name(const std::string& ros_topic);
// "sensor_msgs/msg/PointCloud2" -> "sensor_msgs::msg::dds_::PointCloud2_"; ROS 1's "sensor_msgs/PointCloud2" likewise.
// Errors: kUsage.
Result<std::string> dds_type_name(const std::string& ros_type);
// options.domain, or ROS_DOMAIN_ID, or 0. Errors: kUsage.
Result<int> dds_domain(const DdsOptions& options);

}  // namespace strobe::sensors
