#include "sensors/ros_definitions.h"

#include <fmt/format.h>

#include <algorithm>

namespace strobe::sensors::ros {

namespace {

// Fields and constants of one type each; types stand as they do in .msg files, with their package.
struct Definition {
  std::string_view name;  // without "/msg/"
  std::string_view text;
};
constexpr Definition kDefinitions[] = {
    {"builtin_interfaces/Time",
     "int32 sec\n"
     "uint32 nanosec\n"},
    {"std_msgs/Header",
     "builtin_interfaces/Time stamp\n"
     "string frame_id\n"},
    {"std_msgs/String", "string data\n"},
    {"rosgraph_msgs/Clock", "builtin_interfaces/Time clock\n"},
    {"geometry_msgs/Point",
     "float64 x\n"
     "float64 y\n"
     "float64 z\n"},
    {"geometry_msgs/Vector3",
     "float64 x\n"
     "float64 y\n"
     "float64 z\n"},
    {"geometry_msgs/Quaternion",
     "float64 x\n"
     "float64 y\n"
     "float64 z\n"
     "float64 w\n"},
    {"geometry_msgs/Pose",
     "geometry_msgs/Point position\n"
     "geometry_msgs/Quaternion orientation\n"},
    {"geometry_msgs/PoseStamped",
     "std_msgs/Header header\n"
     "geometry_msgs/Pose pose\n"},
    {"geometry_msgs/PoseWithCovariance",
     "geometry_msgs/Pose pose\n"
     "float64[36] covariance\n"},
    {"geometry_msgs/Transform",
     "geometry_msgs/Vector3 translation\n"
     "geometry_msgs/Quaternion rotation\n"},
    {"geometry_msgs/TransformStamped",
     "std_msgs/Header header\n"
     "string child_frame_id\n"
     "geometry_msgs/Transform transform\n"},
    {"tf2_msgs/TFMessage", "geometry_msgs/TransformStamped[] transforms\n"},
    {"sensor_msgs/PointField",
     "uint8 INT8=1\n"
     "uint8 UINT8=2\n"
     "uint8 INT16=3\n"
     "uint8 UINT16=4\n"
     "uint8 INT32=5\n"
     "uint8 UINT32=6\n"
     "uint8 FLOAT32=7\n"
     "uint8 FLOAT64=8\n"
     "string name\n"
     "uint32 offset\n"
     "uint8 datatype\n"
     "uint32 count\n"},
    {"sensor_msgs/PointCloud2",
     "std_msgs/Header header\n"
     "uint32 height\n"
     "uint32 width\n"
     "sensor_msgs/PointField[] fields\n"
     "bool is_bigendian\n"
     "uint32 point_step\n"
     "uint32 row_step\n"
     "uint8[] data\n"
     "bool is_dense\n"},
    {"sensor_msgs/Image",
     "std_msgs/Header header\n"
     "uint32 height\n"
     "uint32 width\n"
     "string encoding\n"
     "uint8 is_bigendian\n"
     "uint32 step\n"
     "uint8[] data\n"},
    {"sensor_msgs/CompressedImage",
     "std_msgs/Header header\n"
     "string format\n"
     "uint8[] data\n"},
    {"sensor_msgs/RegionOfInterest",
     "uint32 x_offset\n"
     "uint32 y_offset\n"
     "uint32 height\n"
     "uint32 width\n"
     "bool do_rectify\n"},
    {"sensor_msgs/CameraInfo",
     "std_msgs/Header header\n"
     "uint32 height\n"
     "uint32 width\n"
     "string distortion_model\n"
     "float64[] d\n"
     "float64[9] k\n"
     "float64[9] r\n"
     "float64[12] p\n"
     "uint32 binning_x\n"
     "uint32 binning_y\n"
     "sensor_msgs/RegionOfInterest roi\n"},
    {"sensor_msgs/Imu",
     "std_msgs/Header header\n"
     "geometry_msgs/Quaternion orientation\n"
     "float64[9] orientation_covariance\n"
     "geometry_msgs/Vector3 angular_velocity\n"
     "float64[9] angular_velocity_covariance\n"
     "geometry_msgs/Vector3 linear_acceleration\n"
     "float64[9] linear_acceleration_covariance\n"},
    {"sensor_msgs/NavSatStatus",
     "int8 STATUS_UNKNOWN=-2\n"
     "int8 STATUS_NO_FIX=-1\n"
     "int8 STATUS_FIX=0\n"
     "int8 STATUS_SBAS_FIX=1\n"
     "int8 STATUS_GBAS_FIX=2\n"
     "uint16 SERVICE_UNKNOWN=0\n"
     "uint16 SERVICE_GPS=1\n"
     "uint16 SERVICE_GLONASS=2\n"
     "uint16 SERVICE_COMPASS=4\n"
     "uint16 SERVICE_GALILEO=8\n"
     "int8 status\n"
     "uint16 service\n"},
    {"sensor_msgs/NavSatFix",
     "uint8 COVARIANCE_TYPE_UNKNOWN=0\n"
     "uint8 COVARIANCE_TYPE_APPROXIMATED=1\n"
     "uint8 COVARIANCE_TYPE_DIAGONAL_KNOWN=2\n"
     "uint8 COVARIANCE_TYPE_KNOWN=3\n"
     "std_msgs/Header header\n"
     "sensor_msgs/NavSatStatus status\n"
     "float64 latitude\n"
     "float64 longitude\n"
     "float64 altitude\n"
     "float64[9] position_covariance\n"
     "uint8 position_covariance_type\n"},
    {"vision_msgs/Point2D",
     "float64 x\n"
     "float64 y\n"},
    {"vision_msgs/Pose2D",
     "vision_msgs/Point2D position\n"
     "float64 theta\n"},
    {"vision_msgs/BoundingBox2D",
     "vision_msgs/Pose2D center\n"
     "float64 size_x\n"
     "float64 size_y\n"},
    {"vision_msgs/BoundingBox3D",
     "geometry_msgs/Pose center\n"
     "geometry_msgs/Vector3 size\n"},
    {"vision_msgs/ObjectHypothesis",
     "string class_id\n"
     "float64 score\n"},
    {"vision_msgs/ObjectHypothesisWithPose",
     "vision_msgs/ObjectHypothesis hypothesis\n"
     "geometry_msgs/PoseWithCovariance pose\n"},
    {"vision_msgs/Detection2D",
     "std_msgs/Header header\n"
     "vision_msgs/ObjectHypothesisWithPose[] results\n"
     "vision_msgs/BoundingBox2D bbox\n"
     "string id\n"},
    {"vision_msgs/Detection2DArray",
     "std_msgs/Header header\n"
     "vision_msgs/Detection2D[] detections\n"},
    {"vision_msgs/Detection3D",
     "std_msgs/Header header\n"
     "vision_msgs/ObjectHypothesisWithPose[] results\n"
     "vision_msgs/BoundingBox3D bbox\n"
     "string id\n"},
    {"vision_msgs/Detection3DArray",
     "std_msgs/Header header\n"
     "vision_msgs/Detection3D[] detections\n"},
};

const Definition* find(std::string_view short_name) {
  const auto* at = std::ranges::find(kDefinitions, short_name, &Definition::name);
  return at == std::end(kDefinitions) ? nullptr : at;
}

// "pkg/msg/Name" -> "pkg/Name".
std::string short_name(std::string_view name) {
  const size_t at = name.find("/msg/");
  if (at == std::string_view::npos) return std::string(name);
  return std::string(name.substr(0, at)) + std::string(name.substr(at + 4));
}

// The types that `definition` needs and that are not in `order` yet, with theirs, in the order of use.
void collect(const Definition& definition, std::vector<const Definition*>& order) {
  std::string_view rest = definition.text;
  while (!rest.empty()) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(line.size() + 1);
    const std::string_view type = line.substr(0, line.find_first_of(" ["));
    const Definition* needed = find(type);
    if (!needed || std::ranges::find(order, needed) != order.end()) continue;
    order.push_back(needed);
    collect(*needed, order);
  }
}

}  // namespace

const std::vector<MessageType>& message_types() {
  static const std::vector<MessageType> types = {
      {"sensor_msgs/msg/PointCloud2", "RIHS01_9198cabf7da3796ae6fe19c4cb3bdd3525492988c70522628af5daa124bae2b5"},
      {"sensor_msgs/msg/Image", "RIHS01_d31d41a9a4c4bc8eae9be757b0beed306564f7526c88ea6a4588fb9582527d47"},
      {"sensor_msgs/msg/CompressedImage", "RIHS01_15640771531571185e2efc8a100baf923961a4d15d5569652e6cb6691e8e371a"},
      {"sensor_msgs/msg/CameraInfo", "RIHS01_b3dfd68ff46c9d56c80fd3bd4ed22c7a4ddce8c8348f2f59c299e73118e7e275"},
      {"sensor_msgs/msg/Imu", "RIHS01_7d9a00ff131080897a5ec7e26e315954b8eae3353c3f995c55faf71574000b5b"},
      {"sensor_msgs/msg/NavSatFix", "RIHS01_62223ab3fe210a15976021da7afddc9e200dc9ec75231c1b6a557fc598a65404"},
      {"tf2_msgs/msg/TFMessage", "RIHS01_e369d0f05a23ae52508854b66f6aa0437f3449d652e8cbf22d5abe85d020f087"},
      {"geometry_msgs/msg/PoseStamped", "RIHS01_10f3786d7d40fd2b54367835614bff85d4ad3b5dab62bf8bca0cc232d73b4cd8"},
      {"vision_msgs/msg/Detection2DArray", "RIHS01_214274120007f4a683866481336b70310268cfa107aebe9d594a6acf75bda968"},
      {"vision_msgs/msg/Detection3DArray", "RIHS01_793f5eab9595ac1c0da07873cc859db42eae51f0ee76056db8562515d830e018"},
      {"std_msgs/msg/String", "RIHS01_df668c740482bbd48fb39d76a70dfd4bd59db1288021743503259e948f6b1a18"},
      {"rosgraph_msgs/msg/Clock", "RIHS01_692f7a66e93a3c83e71765d033b60349ba68023a8c689a79e48078bcb5c58564"},
  };
  return types;
}

const MessageType* find_message_type(std::string_view name) {
  const auto at = std::ranges::find(message_types(), name, &MessageType::name);
  return at == message_types().end() ? nullptr : &*at;
}

Result<std::string> schema_text(std::string_view type_name) {
  const Definition* root = find(short_name(type_name));
  if (!root) return not_found(fmt::format("message type {}: its definition is not known here", type_name));
  std::vector<const Definition*> order;
  collect(*root, order);
  std::string text(root->text);
  for (const Definition* needed : order) text += fmt::format("{:=<80}\nMSG: {}\n{}", "", needed->name, needed->text);
  return text;
}

std::string qos_yaml(const Qos& qos) {
  // RMW's "infinite" duration.
  constexpr std::string_view kForever = "\n    sec: 9223372036\n    nsec: 854775807\n";
  return fmt::format(
      "- history: 1\n"
      "  depth: {}\n"
      "  reliability: {}\n"
      "  durability: {}\n"
      "  deadline:{}"
      "  lifespan:{}"
      "  liveliness: 1\n"
      "  liveliness_lease_duration:{}"
      "  avoid_ros_namespace_conventions: false",
      qos.depth, static_cast<int>(qos.reliability), static_cast<int>(qos.durability), kForever, kForever, kForever);
}

}  // namespace strobe::sensors::ros
