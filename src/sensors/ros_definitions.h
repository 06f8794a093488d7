// What ROS 2 and its bags want to know of a message type besides its bytes: the text of its .msg file, the hash of its
// description, its name on DDS; and the QoS that a topic is offered with.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "strobe/base/result.h"

namespace strobe::sensors::ros {

struct MessageType {
  std::string_view name;    // "sensor_msgs/msg/PointCloud2"
  std::string_view rihs01;  // "RIHS01_..." of REP 2011, as ROS 2 Jazzy computes it
};

// Every message of ros_messages.h.
const std::vector<MessageType>& message_types();
// nullptr where the type is not one of them.
const MessageType* find_message_type(std::string_view name);

// The schema "ros2msg" of a bag: the type's fields and constants (without comments), then each type that it needs,
// once, in the order of first use, after a line of 80 '=' and "MSG: pkg/Name". Errors: kNotFound.
Result<std::string> schema_text(std::string_view type_name);

struct Qos {
  enum class Reliability : uint8_t { kReliable = 1, kBestEffort = 2 };
  enum class Durability : uint8_t { kTransientLocal = 1, kVolatile = 2 };
  uint32_t depth = 10;  // keep last
  Reliability reliability = Reliability::kReliable;
  Durability durability = Durability::kVolatile;
};
inline constexpr Qos kSensorQos{5, Qos::Reliability::kBestEffort, Qos::Durability::kVolatile};
inline constexpr Qos kTfQos{100, Qos::Reliability::kReliable, Qos::Durability::kVolatile};
inline constexpr Qos kTfStaticQos{1, Qos::Reliability::kReliable, Qos::Durability::kTransientLocal};

// The YAML that rosbag2 keeps of a topic's writer under "offered_qos_profiles" (numbers, as up to metadata version 8).
std::string qos_yaml(const Qos& qos);

}  // namespace strobe::sensors::ros
