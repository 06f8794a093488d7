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

// Bytes from one row to the next; of a single row nothing follows, and many drivers say 0.
Result<size_t> row_step_of(const ros::PointCloud2& message) {
  const size_t row = size_t{message.width} * message.point_step;
  const size_t step = message.height > 1 ? message.row_step : row;
  if (message.point_step == 0 || (step > 0 && message.data.size() / step < message.height))
    return bad_data(fmt::format("{} bytes are no {} x {} points of {} in rows of {}", message.data.size(),
                                message.height, message.width, message.point_step, step));
  if (step < row)
    return bad_data(fmt::format("row_step {}: expected at least {} for {} points of {}", step, row, message.width,
                                message.point_step));
  return step;
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
  STROBE_ASSIGN(const size_t row_step, row_step_of(message));
  for (const uint32_t offset : offsets)
    if (offset + sizeof(float) > message.point_step) return bad_data("a field lies outside of its point");
  auto cloud = std::make_shared<PointCloud>();
  cloud->values.resize(4 * size_t{message.width} * message.height);
  float brightest = 0;
  float* value = cloud->values.data();
  for (size_t row = 0; message.width > 0 && row < message.height; ++row)
    for (size_t column = 0; column < message.width; ++column) {
      const uint8_t* point = message.data.data() + row * row_step + column * message.point_step;
      for (const uint32_t offset : offsets) std::memcpy(value++, point + offset, sizeof *value);
      brightest = std::max(brightest, value[-1]);
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
