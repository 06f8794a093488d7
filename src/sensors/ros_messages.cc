#include "sensors/ros_messages.h"

#include <type_traits>

namespace strobe::sensors::ros {

Time Time::from_ns(int64_t ns) {
  constexpr int64_t kSecond = 1'000'000'000;
  int64_t sec = ns / kSecond, rest = ns % kSecond;
  if (rest < 0) {
    rest += kSecond;
    --sec;
  }
  return {static_cast<int32_t>(sec), static_cast<uint32_t>(rest)};
}

namespace {

// One description of each message, fields(), serves both ways: a Decoder fills the fields, an Encoder writes them.
struct Decoder {
  CdrReader& in;

  template <typename T>
  requires std::is_arithmetic_v<T>
  void operator()(T& v) { v = in.value<T>(); }
  void operator()(std::string& v) { v = in.string(); }
  void operator()(Bytes& v) { v = in.bytes(in.count(1)); }
  template <size_t N>
  void operator()(std::array<double, N>& v) {
    in.values(std::span<double>(v));
  }
  void operator()(std::vector<double>& v) {
    v.resize(in.count(sizeof(double)));
    in.values(std::span<double>(v));
  }
  // Elements of messages: none is shorter than 4 bytes (each begins with a string's or a header's integer).
  template <typename T>
  void operator()(std::vector<T>& v) {
    const uint32_t n = in.count(4);
    v.clear();
    for (uint32_t i = 0; i < n && in.ok(); ++i) fields(*this, v.emplace_back());
  }
  template <typename T>
  requires std::is_class_v<T>
  void operator()(T& v) { fields(*this, v); }
};

struct Encoder {
  CdrWriter& out;

  template <typename T>
  requires std::is_arithmetic_v<T>
  void operator()(const T& v) { out.value(v); }
  void operator()(const std::string& v) { out.string(v); }
  void operator()(const Bytes& v) {
    out.value(static_cast<uint32_t>(v.size()));
    out.bytes(v);
  }
  template <size_t N>
  void operator()(const std::array<double, N>& v) {
    out.values(std::span<const double>(v));
  }
  void operator()(const std::vector<double>& v) {
    out.value(static_cast<uint32_t>(v.size()));
    out.values(std::span<const double>(v));
  }
  template <typename T>
  void operator()(const std::vector<T>& v) {
    out.value(static_cast<uint32_t>(v.size()));
    for (const T& element : v) fields(*this, element);
  }
  template <typename T>
  requires std::is_class_v<T>
  void operator()(const T& v) { fields(*this, v); }
};

template <typename Archive, typename... Fields>
void in_order(Archive& archive, Fields&... all) {
  (archive(all), ...);
}

// M is the message or a const of it.
template <typename M, typename Message>
concept Is = std::is_same_v<std::remove_const_t<M>, Message>;

void fields(auto& a, Is<Vector3> auto& m) {
  in_order(a, m.x, m.y, m.z);
}
void fields(auto& a, Is<Quaternion> auto& m) {
  in_order(a, m.x, m.y, m.z, m.w);
}
void fields(auto& a, Is<Pose> auto& m) {
  in_order(a, m.translation, m.rotation);
}
void fields(auto& a, Is<Time> auto& m) {
  in_order(a, m.sec, m.nanosec);
}
void fields(auto& a, Is<Header> auto& m) {
  in_order(a, m.stamp, m.frame_id);
}
void fields(auto& a, Is<PointField> auto& m) {
  in_order(a, m.name, m.offset, m.datatype, m.count);
}
void fields(auto& a, Is<PointCloud2> auto& m) {
  in_order(a, m.header, m.height, m.width, m.fields, m.is_bigendian, m.point_step, m.row_step, m.data, m.is_dense);
}
void fields(auto& a, Is<Image> auto& m) {
  in_order(a, m.header, m.height, m.width, m.encoding, m.is_bigendian, m.step, m.data);
}
void fields(auto& a, Is<CompressedImage> auto& m) {
  in_order(a, m.header, m.format, m.data);
}
void fields(auto& a, Is<RegionOfInterest> auto& m) {
  in_order(a, m.x_offset, m.y_offset, m.height, m.width, m.do_rectify);
}
void fields(auto& a, Is<CameraInfo> auto& m) {
  in_order(a, m.header, m.height, m.width, m.distortion_model, m.d, m.k, m.r, m.p, m.binning_x, m.binning_y, m.roi);
}
void fields(auto& a, Is<Imu> auto& m) {
  in_order(a, m.header, m.orientation, m.orientation_covariance, m.angular_velocity, m.angular_velocity_covariance,
           m.linear_acceleration, m.linear_acceleration_covariance);
}
void fields(auto& a, Is<NavSatFix> auto& m) {
  in_order(a, m.header, m.status, m.service, m.latitude, m.longitude, m.altitude, m.position_covariance,
           m.position_covariance_type);
}
void fields(auto& a, Is<TransformStamped> auto& m) {
  in_order(a, m.header, m.child_frame_id, m.transform);
}
void fields(auto& a, Is<TfMessage> auto& m) {
  in_order(a, m.transforms);
}
void fields(auto& a, Is<PoseStamped> auto& m) {
  in_order(a, m.header, m.pose);
}
void fields(auto& a, Is<ObjectHypothesisWithPose> auto& m) {
  in_order(a, m.class_id, m.score, m.pose, m.covariance);
}
void fields(auto& a, Is<Detection2D> auto& m) {
  in_order(a, m.header, m.results, m.center_x, m.center_y, m.theta, m.size_x, m.size_y, m.id);
}
void fields(auto& a, Is<Detection2DArray> auto& m) {
  in_order(a, m.header, m.detections);
}
void fields(auto& a, Is<Detection3D> auto& m) {
  in_order(a, m.header, m.results, m.center, m.size, m.id);
}
void fields(auto& a, Is<Detection3DArray> auto& m) {
  in_order(a, m.header, m.detections);
}
void fields(auto& a, Is<String> auto& m) {
  in_order(a, m.data);
}
void fields(auto& a, Is<Clock> auto& m) {
  in_order(a, m.clock);
}

}  // namespace

template <typename Message>
Bytes encode(const Message& message, CdrWriter& writer) {
  writer.clear();
  Encoder encoder{writer};
  fields(encoder, message);
  return writer.message();
}

template <typename Message>
Result<Message> decode(Bytes bytes) {
  CdrReader reader(bytes);
  Decoder decoder{reader};
  Message message;
  fields(decoder, message);
  if (auto whole = reader.finish(); !whole) return std::move(whole).error().at(type_name<Message>());
  return message;
}

#define STROBE_ROS_MESSAGE(Message, name)                           \
  template <>                                                       \
  const char* type_name<Message>() {                                \
    return name;                                                    \
  }                                                                 \
  template Bytes encode<Message>(const Message& m, CdrWriter& out); \
  template Result<Message> decode<Message>(Bytes bytes);

STROBE_ROS_MESSAGE(PointCloud2, "sensor_msgs/msg/PointCloud2")
STROBE_ROS_MESSAGE(Image, "sensor_msgs/msg/Image")
STROBE_ROS_MESSAGE(CompressedImage, "sensor_msgs/msg/CompressedImage")
STROBE_ROS_MESSAGE(CameraInfo, "sensor_msgs/msg/CameraInfo")
STROBE_ROS_MESSAGE(Imu, "sensor_msgs/msg/Imu")
STROBE_ROS_MESSAGE(NavSatFix, "sensor_msgs/msg/NavSatFix")
STROBE_ROS_MESSAGE(TfMessage, "tf2_msgs/msg/TFMessage")
STROBE_ROS_MESSAGE(PoseStamped, "geometry_msgs/msg/PoseStamped")
STROBE_ROS_MESSAGE(Detection2DArray, "vision_msgs/msg/Detection2DArray")
STROBE_ROS_MESSAGE(Detection3DArray, "vision_msgs/msg/Detection3DArray")
STROBE_ROS_MESSAGE(String, "std_msgs/msg/String")
STROBE_ROS_MESSAGE(Clock, "rosgraph_msgs/msg/Clock")

#undef STROBE_ROS_MESSAGE

}  // namespace strobe::sensors::ros
