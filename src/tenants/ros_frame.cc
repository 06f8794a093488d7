#include "tenants/ros_frame.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "sensors/ros_messages.h"

namespace strobe::tenants {

namespace ros = sensors::ros;

namespace {

// nuScenes' tokens are 32 hexadecimal digits.
bool is_token(const std::string& text) {
  return text.size() == 32 && text.find_first_not_of("0123456789abcdef") == std::string::npos;
}

// x, y, z and intensity out of a message's fields of float32, whatever else a point has.
Result<std::shared_ptr<PointCloud>> cloud_of(const ros::PointCloud2& message) {
  using Field = ros::PointField;
  constexpr const char* kNames[] = {"x", "y", "z", "intensity"};
  uint32_t offsets[4] = {};
  if (message.is_bigendian) return unsupported("points in big-endian order");
  bool has_ring = false;
  for (size_t i = 0; i < 4; ++i) {
    const auto found = std::find_if(message.fields.begin(), message.fields.end(),
                                    [&](const Field& field) { return field.name == kNames[i]; });
    if (found == message.fields.end() || found->datatype != Field::kFloat32)
      return unsupported(fmt::format("points without a float32 field {}", kNames[i]));
    offsets[i] = found->offset;
  }
  for (const Field& field : message.fields)
    has_ring = has_ring || (field.name == "ring" && field.datatype == Field::kFloat32);
  const size_t count = size_t{message.width} * message.height;
  if (message.point_step == 0 || message.data.size() / message.point_step < count)
    return bad_data(fmt::format("{} bytes are no {} points of {}", message.data.size(), count, message.point_step));
  for (const uint32_t offset : offsets)
    if (offset + sizeof(float) > message.point_step) return bad_data("a field lies outside of its point");
  auto cloud = std::make_shared<PointCloud>();
  cloud->values.resize(4 * count);
  float brightest = 0;
  for (size_t p = 0; p < count; ++p)
    for (size_t i = 0; i < 4; ++i) {
      float& value = cloud->values[4 * p + i];
      std::memcpy(&value, message.data.data() + p * message.point_step + offsets[i], sizeof value);
      if (i == 3) brightest = std::max(brightest, value);
    }
  if (brightest > 1) cloud->full_intensity = 255;
  cloud->x_is_right =
      has_ring;  // nuScenes' own points, whose ring is a float; others (whose ring is a uint16) follow ROS, x forward
  return cloud;
}

Result<RosFrame> decoded(const std::string& topic, sensors::Bytes cdr, const StreamNeeds& needs) {
  RosFrame out;
  SensorFrame& frame = out.frame;
  if (needs.points) {
    STROBE_ASSIGN(const auto message, ros::decode<ros::PointCloud2>(cdr));
    frame.stamp_ns = message.header.stamp.ns();
    out.frame_id = message.header.frame_id;
    STROBE_ASSIGN(frame.points, cloud_of(message));
  } else {
    STROBE_ASSIGN(const auto message, ros::decode<ros::CompressedImage>(cdr));
    frame.stamp_ns = message.header.stamp.ns();
    out.frame_id = message.header.frame_id;
    auto picture = std::make_shared<EncodedPicture>();
    picture->bytes.assign(message.data.begin(), message.data.end());
    frame.pictures.push_back(std::move(picture));
  }
  if (is_token(out.frame_id)) {
    frame.token = out.frame_id;
    return out;
  }
  frame.token =
      fmt::format("{}-{}", topic.substr(std::min(topic.size(), topic.find_first_not_of('/'))), frame.stamp_ns);
  return out;
}

}  // namespace

const char* message_type_of(const StreamNeeds& needs) {
  return needs.points ? ros::type_name<ros::PointCloud2>() : ros::type_name<ros::CompressedImage>();
}

Result<RosFrame> frame_of_message(const std::string& topic, sensors::Bytes cdr, const StreamNeeds& needs) {
  auto frame = decoded(topic, cdr, needs);
  if (!frame) return std::move(frame).error().at(topic);
  return frame;
}

}  // namespace strobe::tenants
