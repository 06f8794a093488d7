// The ROS 2 messages that Strobe speaks, and their CDR bytes. Fields have the names and the order of the .msg files
// (docs/ros2-messages.md); bytes of pictures and clouds are not copied: they belong to whoever made the message, or,
// after decode(), to the buffer that was decoded.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "sensors/cdr.h"
#include "sensors/geometry.h"
#include "strobe/base/result.h"

namespace strobe::sensors::ros {

struct Time {
  int32_t sec = 0;
  uint32_t nanosec = 0;
  // Nanoseconds since the epoch; rounded down to whole seconds below zero, as ROS does.
  static Time from_ns(int64_t ns);
  int64_t ns() const { return int64_t{sec} * 1'000'000'000 + nanosec; }
  friend bool operator==(const Time&, const Time&) = default;
};

struct Header {
  Time stamp;
  std::string frame_id;
  friend bool operator==(const Header&, const Header&) = default;
};

struct PointField {
  enum Type : uint8_t {
    kInt8 = 1,
    kUint8 = 2,
    kInt16 = 3,
    kUint16 = 4,
    kInt32 = 5,
    kUint32 = 6,
    kFloat32 = 7,
    kFloat64 = 8,
  };
  std::string name;
  uint32_t offset = 0;  // bytes from the point's first one
  uint8_t datatype = kFloat32;
  uint32_t count = 1;
};

struct PointCloud2 {
  Header header;
  uint32_t height = 1, width = 0;
  std::vector<PointField> fields;
  bool is_bigendian = false;
  uint32_t point_step = 0, row_step = 0;  // bytes
  Bytes data;
  bool is_dense = true;
};

struct Image {
  Header header;
  uint32_t height = 0, width = 0;
  std::string encoding;  // "rgb8", "bgr8", "mono8", ...
  uint8_t is_bigendian = 0;
  uint32_t step = 0;  // bytes a row
  Bytes data;
};

struct CompressedImage {
  Header header;
  std::string format;  // "jpeg", "png"
  Bytes data;
};

struct RegionOfInterest {
  uint32_t x_offset = 0, y_offset = 0, height = 0, width = 0;
  bool do_rectify = false;
};

struct CameraInfo {
  Header header;
  uint32_t height = 0, width = 0;
  std::string distortion_model;
  std::vector<double> d;
  std::array<double, 9> k{}, r{};
  std::array<double, 12> p{};
  uint32_t binning_x = 0, binning_y = 0;
  RegionOfInterest roi;
};

struct Imu {
  Header header;
  Quaternion orientation;
  std::array<double, 9> orientation_covariance{};
  Vector3 angular_velocity;
  std::array<double, 9> angular_velocity_covariance{};
  Vector3 linear_acceleration;
  std::array<double, 9> linear_acceleration_covariance{};
};

struct NavSatFix {
  Header header;
  int8_t status = -2;    // of NavSatStatus: -2 unknown, -1 no fix, 0 fix, 1 SBAS, 2 GBAS
  uint16_t service = 0;  // of NavSatStatus: bits 1 GPS, 2 GLONASS, 4 BeiDou, 8 Galileo
  double latitude = 0, longitude = 0, altitude = 0;
  std::array<double, 9> position_covariance{};
  uint8_t position_covariance_type = 0;
};

struct TransformStamped {
  Header header;
  std::string child_frame_id;
  Pose transform;
};

struct TfMessage {
  std::vector<TransformStamped> transforms;
};

struct PoseStamped {
  Header header;
  Pose pose;
};

struct ObjectHypothesisWithPose {
  std::string class_id;
  double score = 0;
  Pose pose;
  std::array<double, 36> covariance{};
};

struct Detection2D {
  Header header;
  std::vector<ObjectHypothesisWithPose> results;
  double center_x = 0, center_y = 0, theta = 0, size_x = 0, size_y = 0;  // pixels, radians
  std::string id;
};

struct Detection2DArray {
  Header header;
  std::vector<Detection2D> detections;
};

struct Detection3D {
  Header header;
  std::vector<ObjectHypothesisWithPose> results;
  Pose center;
  Vector3 size;  // x length, y width, z height
  std::string id;
};

struct Detection3DArray {
  Header header;
  std::vector<Detection3D> detections;
};

struct String {
  std::string data;
};

// rosgraph_msgs/Clock
struct Clock {
  Time clock;
};

// The full name of a message's type: "sensor_msgs/msg/PointCloud2".
template <typename Message>
const char* type_name();

// The message's bytes with the CDR header, valid until the writer's next message.
template <typename Message>
Bytes encode(const Message& message, CdrWriter& writer);

// Either byte order. Errors: kBadData naming the type, the byte and what was expected there.
template <typename Message>
Result<Message> decode(Bytes bytes);

}  // namespace strobe::sensors::ros
