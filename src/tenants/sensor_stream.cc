#include "tenants/sensor_stream.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <filesystem>

#include "base/file.h"
#include "sensors/lidar_sweep.h"
#include "sensors/mcap_reader.h"
#include "sensors/nuscenes.h"
#include "sensors/weather.h"
#include "tenants/ros_frame.h"

namespace strobe::tenants {

namespace fs = std::filesystem;

namespace {

constexpr size_t kMostBytes = size_t{2} << 30;  // of a stream in memory

class SensorStream : public FrameStream {
 public:
  SensorStream(std::vector<SensorFrame> frames, std::vector<std::string> notes)
      : frames_(std::move(frames)), notes_(std::move(notes)) {
    if (frames_.size() == 1) notes_.emplace_back("one real frame, given again and again: a synthetic stream");
  }
  int64_t size() const override { return static_cast<int64_t>(frames_.size()); }
  SensorFrame frame(int64_t index) const override { return frames_[static_cast<size_t>(index) % frames_.size()]; }
  std::vector<std::string> notes() const override { return notes_; }

 private:
  std::vector<SensorFrame> frames_;
  std::vector<std::string> notes_;
};

// The weather of a stream, which falls before the run begins.
class StreamWeather {
 public:
  StreamWeather(const SourceSpec& source, uint64_t seed) : source_(source), seed_(seed) {}

  Result<void> fall_on(PointCloud& cloud, uint64_t frame) {
    if (source_.weather.empty()) return {};
    sensors::PointSweep sweep{cloud.values, cloud.columns, cloud.full_intensity};
    if (!weather_) STROBE_TRY(create(sweep));
    std::vector<sensors::PointFate> fates(sweep.count());
    STROBE_ASSIGN(const sensors::WeatherSummary summary, weather_->apply(sweep, frame, 2, fates));
    (void)summary;
    cloud.values.resize(sensors::remove_lost(sweep, fates));
    return {};
  }
  std::vector<std::string> notes() const {
    if (source_.weather.empty()) return {};
    return {fmt::format("{} of {:g} mm/h is computed (docs/weather.md), in clear air nothing is lost", source_.weather,
                        source_.weather_rate)};
  }

 private:
  Result<void> create(const sensors::PointSweep& sweep) {
    sensors::WeatherOptions options;
    options.kind = source_.weather == "snow"  ? sensors::WeatherKind::kSnow
                   : source_.weather == "fog" ? sensors::WeatherKind::kFog
                                              : sensors::WeatherKind::kRain;
    options.rate_mm_h = source_.weather_rate;
    options.rules = sensors::WeatherRules::kPhysical;
    options.density = sensors::Density::kLiterature;
    if (options.kind == sensors::WeatherKind::kFog) options.mode = sensors::WeatherMode::kMean;
    options.seed = seed_;
    STROBE_ASSIGN(options, sensors::calibrated(options, sweep));
    STROBE_ASSIGN(sensors::Weather made, sensors::Weather::create(options));
    weather_.emplace(std::move(made));
    return {};
  }

  const SourceSpec& source_;
  uint64_t seed_;
  std::optional<sensors::Weather> weather_;
};

// Frames as long as they fit into memory.
class FrameList {
 public:
  explicit FrameList(const SourceSpec& source) : source_(source) {}
  bool full() const { return source_.most_frames > 0 && static_cast<int64_t>(frames_.size()) >= source_.most_frames; }
  Result<void> add(SensorFrame frame) {
    if (frame.points) bytes_ += frame.points->values.size() * sizeof(float);
    for (const auto& picture : frame.pictures) bytes_ += picture->bytes.size();
    if (bytes_ > kMostBytes)
      return usage_error(fmt::format("more than {} GiB of frames: say how many with `frames:`", kMostBytes >> 30))
          .at(source_.path);
    frames_.push_back(std::move(frame));
    return {};
  }
  Result<std::unique_ptr<FrameStream>> stream(std::vector<std::string> notes) {
    if (frames_.empty()) return not_found("no frame that the model could take").at(source_.path);
    return std::unique_ptr<FrameStream>(std::make_unique<SensorStream>(std::move(frames_), std::move(notes)));
  }

 private:
  const SourceSpec& source_;
  std::vector<SensorFrame> frames_;
  size_t bytes_ = 0;
};

Result<std::shared_ptr<PointCloud>> read_sweep(const fs::path& path) {
  auto cloud = std::make_shared<PointCloud>();
  std::string bytes;
  if (path.string().ends_with(".pcd.bin")) {
    STROBE_ASSIGN(sensors::LidarSweep sweep, sensors::read_lidar_sweep(path));
    bytes = std::move(sweep.bytes);
    cloud->columns = 5;
    cloud->full_intensity = 255;
    cloud->x_is_right = true;
  } else {
    STROBE_ASSIGN(bytes, read_file(path));
    constexpr size_t kPoint = 4 * sizeof(float);
    if (bytes.empty() || bytes.size() % kPoint != 0)
      return bad_data(fmt::format("{} bytes are no sweep: a point of KITTI has {}", bytes.size(), kPoint))
          .at(path.string());
  }
  cloud->values.resize(bytes.size() / sizeof(float));
  std::memcpy(cloud->values.data(), bytes.data(), cloud->values.size() * sizeof(float));
  return cloud;
}

// frame: where the camera's place is told in, seen from the global frame.
Result<std::shared_ptr<const EncodedPicture>> read_picture(const sensors::NuScenes& database,
                                                           const sensors::nuscenes::SampleData& data,
                                                           const sensors::Pose& frame) {
  STROBE_ASSIGN(const std::string bytes, read_file(database.file_of(data)));
  auto picture = std::make_shared<EncodedPicture>();
  picture->channel = database.sensor_of(data).channel;
  picture->bytes.assign(bytes.begin(), bytes.end());
  const sensors::nuscenes::CalibratedSensor& calibrated = database.calibrated_sensors[data.calibrated_sensor];
  if (calibrated.has_intrinsic) {
    models::Camera& camera = picture->camera.emplace();
    const sensors::Pose place = frame.inverse() * database.ego_poses[data.ego_pose].pose * calibrated.pose;
    const sensors::Matrix3 turn = place.rotation.matrix();
    const double translation[3] = {place.translation.x, place.translation.y, place.translation.z};
    for (size_t row = 0; row < 3; ++row) {
      for (size_t column = 0; column < 3; ++column) {
        camera.intrinsic[3 * row + column] = static_cast<float>(calibrated.intrinsic[row][column]);
        camera.to_vehicle[4 * row + column] = static_cast<float>(turn[row][column]);
      }
      camera.to_vehicle[4 * row + 3] = static_cast<float>(translation[row]);
    }
    camera.width = data.width;
    camera.height = data.height;
  }
  return std::shared_ptr<const EncodedPicture>(std::move(picture));
}

}  // namespace

Result<std::unique_ptr<FrameStream>> open_sweeps(const SourceSpec& source, uint64_t seed) {
  std::vector<fs::path> paths;
  std::error_code ignored;
  if (fs::is_directory(source.path, ignored)) {
    for (const auto& entry : fs::directory_iterator(source.path, ignored))
      if (entry.path().extension() == ".bin") paths.push_back(entry.path());
    std::sort(paths.begin(), paths.end());
  } else {
    paths.emplace_back(source.path);
  }
  StreamWeather weather(source, seed);
  FrameList frames(source);
  for (const fs::path& path : paths) {
    if (frames.full()) break;
    STROBE_ASSIGN(std::shared_ptr<PointCloud> cloud, read_sweep(path));
    STROBE_TRY(weather.fall_on(*cloud, 0));
    SensorFrame frame;
    frame.token = path.stem().string();
    frame.points = std::move(cloud);
    STROBE_TRY(frames.add(std::move(frame)));
  }
  return frames.stream(weather.notes());
}

Result<std::unique_ptr<FrameStream>> open_nuscenes(const SourceSpec& source, const StreamNeeds& needs, uint64_t seed) {
  STROBE_ASSIGN(const sensors::NuScenes database, sensors::NuScenes::open(source.path));
  if (database.scenes.empty()) return not_found("no scene").at(source.path);
  uint32_t scene = 0;
  if (!source.scene.empty()) {
    STROBE_ASSIGN(scene, database.find_scene(source.scene));
  }
  std::vector<std::string> leading = source.channels;
  if (leading.empty()) leading = {needs.points ? "LIDAR_TOP" : "CAM_FRONT"};
  // Of several sensors, the frames are those of key samples, where all measured at the same time.
  const bool together = needs.points && needs.pictures;
  STROBE_ASSIGN(const std::vector<uint32_t> rows, database.data_of(scene, {leading.front()}, !together));
  StreamWeather weather(source, seed);
  FrameList frames(source);
  for (const uint32_t row : rows) {
    if (frames.full()) break;
    const sensors::nuscenes::SampleData& data = database.sample_data[row];
    SensorFrame frame;
    frame.token = data.token;
    frame.stamp_ns = data.timestamp_us * 1000;
    frame.pose = database.ego_poses[data.ego_pose].pose * database.calibrated_sensors[data.calibrated_sensor].pose;
    if (needs.points) {
      STROBE_ASSIGN(std::shared_ptr<PointCloud> cloud, read_sweep(database.file_of(data)));
      STROBE_TRY(weather.fall_on(*cloud, static_cast<uint64_t>(row)));
      frame.points = std::move(cloud);
    }
    if (needs.pictures && !together) {
      STROBE_ASSIGN(frame.pictures.emplace_back(), read_picture(database, data, *frame.pose));
    }
    if (together) {
      for (const sensors::nuscenes::Sensor& sensor : database.sensors) {
        if (sensor.modality != "camera") continue;
        const uint32_t camera = database.key_data(data.sample, sensor.channel);
        if (camera == sensors::nuscenes::kNone) continue;
        STROBE_ASSIGN(frame.pictures.emplace_back(), read_picture(database, database.sample_data[camera], *frame.pose));
      }
    }
    STROBE_TRY(frames.add(std::move(frame)));
  }
  return frames.stream(weather.notes());
}

Result<std::unique_ptr<FrameStream>> open_mcap(const SourceSpec& source, const StreamNeeds& needs, uint64_t seed) {
  if (needs.pictures && needs.points)
    return unsupported("a bag's pictures and sweeps are not joined yet; take nuScenes for a model that needs both")
        .at(source.path);
  STROBE_ASSIGN(const sensors::McapReader reader, sensors::McapReader::open(source.path));
  StreamWeather weather(source, seed);
  FrameList frames(source);
  sensors::McapQuery query;
  query.topics = source.channels;
  sensors::McapMessages messages = reader.messages(query);
  std::string topic;  // the first one that fits
  for (;;) {
    sensors::McapMessageView message;
    STROBE_ASSIGN(const bool more, messages.next(message));
    if (!more || frames.full()) break;
    if (message.schema == nullptr || message.schema->name != message_type_of(needs) ||
        (!topic.empty() && message.channel->topic != topic))
      continue;
    const sensors::Bytes bytes(reinterpret_cast<const uint8_t*>(message.data.data()), message.data.size());
    auto frame = frame_of_message(message.channel->topic, bytes, needs);
    if (!frame) return std::move(frame).error().at(source.path);
    topic = message.channel->topic;
    if (frame->points && !source.weather.empty()) {
      auto wet = std::make_shared<PointCloud>(*frame->points);
      STROBE_TRY(weather.fall_on(*wet, message.sequence));
      frame->points = std::move(wet);
    }
    STROBE_TRY(frames.add(std::move(*frame)));
  }
  std::vector<std::string> notes = weather.notes();
  notes.insert(notes.end(), reader.faults().begin(), reader.faults().end());
  return frames.stream(std::move(notes));
}

}  // namespace strobe::tenants
