#include "sensors/nuscenes_stream.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/file.h"
#include "base/suggest.h"
#include "sensors/lidar_sweep.h"

namespace strobe::sensors {

using namespace nuscenes;

namespace {

constexpr const char* kMapFrame = "map";
constexpr const char* kEgoFrame = "base_link";
// nuScenes' rate of key frames: the pace of a stream of a single one.
constexpr double kKeyFrameUs = 500'000;

// The same topics are offered so that every reader matches; pPerf's are offered as it does.
constexpr ros::Qos kReliable{};

ros::Header header(int64_t time_ns, std::string frame) {
  return {ros::Time::from_ns(time_ns), std::move(frame)};
}

Bytes as_bytes(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

ros::PointCloud2 cloud_of(const LidarSweep& sweep) {
  ros::PointCloud2 cloud;
  for (const char* name : {"x", "y", "z", "intensity", "ring"})
    cloud.fields.push_back(
        {name, static_cast<uint32_t>(cloud.fields.size() * sizeof(float)), ros::PointField::kFloat32, 1});
  cloud.width = sweep.points();
  cloud.point_step = kLidarPointBytes;
  cloud.row_step = static_cast<uint32_t>(sweep.bytes.size());
  cloud.data = as_bytes(sweep.bytes);
  return cloud;
}

ros::CameraInfo camera_of(const SampleData& data, const CalibratedSensor& sensor) {
  ros::CameraInfo info;
  info.height = data.height;
  info.width = data.width;
  // nuScenes' pictures are rectified: no distortion is left.
  info.distortion_model = "plumb_bob";
  info.d.assign(5, 0.0);
  info.r = {1, 0, 0, 0, 1, 0, 0, 0, 1};
  for (size_t row = 0; row < 3; ++row) {
    for (size_t column = 0; column < 3; ++column) {
      info.k[row * 3 + column] = sensor.intrinsic[row][column];
      info.p[row * 4 + column] = sensor.intrinsic[row][column];
    }
  }
  return info;
}

}  // namespace

Result<TopicStyle> parse_topic_style(std::string_view name) {
  if (name == "channel") return TopicStyle::kChannel;
  if (name == "pperf") return TopicStyle::kPperf;
  return usage_error(fmt::format("topics \"{}\": expected channel or pperf", name));
}

uint32_t NuScenesStream::topic(std::string name, std::string_view type, const ros::Qos& qos, std::string channel) {
  for (uint32_t i = 0; i < topics_.size(); ++i)
    if (topics_[i].name == name) return i;
  topics_.push_back({std::move(name), type, qos, std::move(channel)});
  return static_cast<uint32_t>(topics_.size() - 1);
}

Result<NuScenesStream> NuScenesStream::open(const NuScenes& database, const StreamOptions& options) {
  NuScenesStream stream(database);
  stream.options_ = options;
  if (options.repeat == 0) return usage_error("--repeat 0: expected at least 1");
  // Slower than the least, times would leave what a stamp can hold.
  if (!(options.rate_hz == 0 || (options.rate_hz >= 1e-3 && options.rate_hz <= 1e6)))
    return usage_error(fmt::format("--rate {}: expected 0.001 to 1000000, or 0 for that of the data", options.rate_hz));
  STROBE_ASSIGN(const uint32_t scene, database.find_scene(options.scene));
  STROBE_ASSIGN(std::vector<uint32_t> data, database.data_of(scene, options.channels, options.sweeps));
  if (data.empty()) return usage_error(fmt::format("{} has no sensor data", database.scenes[scene].name));
  const auto time_of_row = [&database](uint32_t row) { return database.sample_data[row].timestamp_us; };
  const int64_t first = time_of_row(data.front());
  std::erase_if(data, [&](uint32_t row) {
    const Sensor& sensor = database.sensor_of(database.sample_data[row]);
    const double at = static_cast<double>(time_of_row(row) - first) * 1e-6;
    if (sensor.modality != "lidar" && sensor.modality != "camera") {
      if (std::ranges::find(stream.left_out_, sensor.channel) == stream.left_out_.end())
        stream.left_out_.emplace_back(sensor.channel);
      return true;
    }
    return at < options.start_s || at > options.end_s;
  });
  for (const std::string& channel : options.channels)
    if (std::ranges::find(stream.left_out_, channel) != stream.left_out_.end())
      return unsupported(fmt::format("channel {}: only LiDAR and cameras are converted", channel));
  if (data.empty())
    return usage_error(fmt::format("{}: no frame lies between {} and {} s", database.scenes[scene].name,
                                   options.start_s, options.end_s));
  stream.tf_static_topic_ = stream.topic("/tf_static", ros::type_name<ros::TfMessage>(), ros::kTfStaticQos);
  stream.add_events(data);
  stream.set_time(data);
  if (options.repeat > 1 || options.rate_hz > 0) {
    stream.synthetic_ = std::string(database.scenes[scene].name);
    if (options.repeat > 1) stream.synthetic_ += fmt::format(" repeated {} times", options.repeat);
    if (options.rate_hz > 0) stream.synthetic_ += fmt::format(" at {} Hz", options.rate_hz);
  }
  return stream;
}

void NuScenesStream::add_events(const std::vector<uint32_t>& data) {
  const bool pperf = options_.style == TopicStyle::kPperf;
  const ros::Qos sensor_qos = pperf ? ros::kSensorQos : kReliable;
  const uint32_t tf = topic("/tf", ros::type_name<ros::TfMessage>(), ros::kTfQos);
  const uint32_t pose = topic("/pose", ros::type_name<ros::PoseStamped>(), kReliable);
  const uint32_t annotations = topic("/annotations", ros::type_name<ros::Detection3DArray>(), kReliable);
  size_t lidars = 0;
  std::string_view first_lidar;
  for (const uint32_t row : data) {
    const Sensor& sensor = database_->sensor_of(database_->sample_data[row]);
    if (sensor.modality == "lidar" && sensor.channel != first_lidar && ++lidars == 1) first_lidar = sensor.channel;
  }
  // The vehicle's pose follows the first LiDAR, or the first camera where there is none.
  const std::string_view leader =
      lidars > 0 ? first_lidar : database_->sensor_of(database_->sample_data[data.front()]).channel;
  std::vector<uint32_t> annotated;
  for (const uint32_t row : data) {
    const SampleData& frame = database_->sample_data[row];
    const Sensor& sensor = database_->sensor_of(frame);
    const std::string channel(sensor.channel);
    if (std::ranges::find(calibrated_, frame.calibrated_sensor) == calibrated_.end())
      calibrated_.push_back(frame.calibrated_sensor);
    events_.push_back({frame.timestamp_us, Kind::kTf, tf, row});
    if (sensor.channel == leader) events_.push_back({frame.timestamp_us, Kind::kPose, pose, row});
    if (sensor.modality == "lidar") {
      std::string name = "/" + channel;
      if (pperf) name = lidars == 1 ? "/lidar_data" : "/lidar_data/" + channel;
      events_.push_back({frame.timestamp_us, Kind::kCloud,
                         topic(std::move(name), ros::type_name<ros::PointCloud2>(), sensor_qos, channel), row});
    } else {
      events_.push_back({frame.timestamp_us, Kind::kCamera,
                         topic("/" + channel + "/camera_info", ros::type_name<ros::CameraInfo>(), kReliable, channel),
                         row});
      events_.push_back({frame.timestamp_us, Kind::kPicture,
                         topic(pperf ? "/image_data/" + channel : "/" + channel + "/image_rect_compressed",
                               ros::type_name<ros::CompressedImage>(), sensor_qos, channel),
                         row});
    }
    if (frame.is_key_frame && std::ranges::find(annotated, frame.sample) == annotated.end())
      annotated.push_back(frame.sample);
  }
  for (const uint32_t sample : annotated)
    events_.push_back({database_->samples[sample].timestamp_us, Kind::kAnnotations, annotations, sample});
  std::ranges::stable_sort(events_, {}, &Event::time_us);
}

void NuScenesStream::set_time(const std::vector<uint32_t>& data) {
  first_us_ = events_.front().time_us;
  // The pace is that of the topic of poses: one a frame of the leading channel.
  std::vector<int64_t> paces;
  for (const Event& event : events_)
    if (event.kind == Kind::kPose) paces.push_back(event.time_us);
  const auto frames = static_cast<double>(paces.size());
  const double frame_us =
      paces.size() > 1 ? static_cast<double>(paces.back() - paces.front()) / (frames - 1) : kKeyFrameUs;
  period_us_ = std::llround(frame_us * std::max(1.0, frames));
  // Never two repetitions at once.
  if (data.size() > 1 && paces.size() > 1) period_us_ = std::max(period_us_, events_.back().time_us - first_us_ + 1);
  if (options_.rate_hz > 0) stretch_ = 1e6 / options_.rate_hz / frame_us;
}

int64_t NuScenesStream::time_of(const Event& event, uint64_t repetition) const {
  const int64_t since = event.time_us - first_us_ + static_cast<int64_t>(repetition) * period_us_;
  const int64_t since_ns =
      options_.rate_hz > 0 ? std::llround(static_cast<double>(since) * 1000 * stretch_) : since * 1000;
  return first_us_ * 1000 + since_ns;
}

Bytes NuScenesStream::tf_static(int64_t time_ns) {
  ros::TfMessage message;
  for (const uint32_t row : calibrated_) {
    const CalibratedSensor& sensor = database_->calibrated_sensors[row];
    message.transforms.push_back(
        {header(time_ns, kEgoFrame), std::string(database_->sensors[sensor.sensor].channel), sensor.pose});
  }
  return ros::encode(message, writer_);
}

Result<Bytes> NuScenesStream::encode_event(const Event& event, int64_t time_ns) {
  if (event.kind == Kind::kAnnotations) {
    ros::Detection3DArray message{header(time_ns, kMapFrame), {}};
    for (const uint32_t row : database_->annotations_of(event.row)) {
      const Annotation& annotation = database_->annotations[row];
      const Pose pose{annotation.centre, annotation.rotation};
      message.detections.push_back({message.header,
                                    {{std::string(database_->category_of(annotation)), 1, pose, {}}},
                                    pose,
                                    {annotation.length, annotation.width, annotation.height},
                                    std::string(database_->instances[annotation.instance].token)});
    }
    return ros::encode(message, writer_);
  }
  const SampleData& data = database_->sample_data[event.row];
  const Sensor& sensor = database_->sensor_of(data);
  const std::string frame(options_.style == TopicStyle::kPperf ? data.token : sensor.channel);
  const Pose& ego = database_->ego_poses[data.ego_pose].pose;
  switch (event.kind) {
    case Kind::kTf:
      return ros::encode(ros::TfMessage{{{header(time_ns, kMapFrame), kEgoFrame, ego}}}, writer_);
    case Kind::kPose:
      return ros::encode(ros::PoseStamped{header(time_ns, kMapFrame), ego}, writer_);
    case Kind::kCamera: {
      ros::CameraInfo info = camera_of(data, database_->calibrated_sensors[data.calibrated_sensor]);
      info.header = header(time_ns, frame);
      return ros::encode(info, writer_);
    }
    case Kind::kPicture: {
      STROBE_ASSIGN(file_, read_file(database_->file_of(data)));
      const std::string format(data.fileformat == "jpg" || data.fileformat.empty() ? "jpeg" : data.fileformat);
      return ros::encode(ros::CompressedImage{header(time_ns, frame), format, as_bytes(file_)}, writer_);
    }
    case Kind::kCloud:
    default: {
      STROBE_ASSIGN(const LidarSweep sweep, read_lidar_sweep(database_->file_of(data)));
      ros::PointCloud2 cloud = cloud_of(sweep);
      cloud.header = header(time_ns, frame);
      return ros::encode(cloud, writer_);
    }
  }
}

Result<bool> NuScenesStream::next(StreamMessage& message) {
  if (at_ == messages()) return false;
  if (at_ == 0) {
    ++at_;
    message = {tf_static_topic_, first_us_ * 1000, tf_static(first_us_ * 1000), {}};
    return true;
  }
  const Event& event = events_[(at_ - 1) % events_.size()];
  message.topic = event.topic;
  message.time_ns = time_of(event, (at_ - 1) / events_.size());
  message.token =
      event.kind == Kind::kAnnotations ? database_->samples[event.row].token : database_->sample_data[event.row].token;
  STROBE_ASSIGN(message.cdr, encode_event(event, message.time_ns));
  ++at_;
  return true;
}

}  // namespace strobe::sensors
