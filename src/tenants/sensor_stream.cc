#include "tenants/sensor_stream.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <filesystem>

#include "base/file.h"
#include "sensors/lidar_sweep.h"
#include "sensors/nuscenes.h"
#include "tenants/stream_frames.h"

namespace strobe::tenants {

namespace fs = std::filesystem;

namespace {

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
    const sensors::Pose place = frame.inverse() * database.ego_poses[data.ego_pose].pose * calibrated.pose;
    picture->camera = camera_at(calibrated.intrinsic, data.width, data.height, place);
  }
  return std::shared_ptr<const EncodedPicture>(std::move(picture));
}

// Of several sensors, the frames are those of key samples, where all measured at the same time.
bool come_together(const StreamNeeds& needs) {
  return needs.points && needs.pictures;
}

// What the sensor that leads measured in the scene.
Result<std::vector<uint32_t>> leading_rows(const sensors::NuScenes& database, const SourceSpec& source,
                                           const StreamNeeds& needs) {
  if (database.scenes.empty()) return not_found("no scene").at(source.path);
  uint32_t scene = 0;
  if (!source.scene.empty()) {
    STROBE_ASSIGN(scene, database.find_scene(source.scene));
  }
  std::vector<std::string> leading = source.channels;
  if (leading.empty()) leading = {needs.points ? "LIDAR_TOP" : "CAM_FRONT"};
  return database.data_of(scene, {leading.front()}, !come_together(needs));
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

Result<void> check_nuscenes(const SourceSpec& source, const StreamNeeds& needs) {
  STROBE_ASSIGN(const sensors::NuScenes database, sensors::NuScenes::open(source.path));
  STROBE_ASSIGN(const std::vector<uint32_t> rows, leading_rows(database, source, needs));
  (void)rows;
  return {};
}

Result<std::unique_ptr<FrameStream>> open_nuscenes(const SourceSpec& source, const StreamNeeds& needs, uint64_t seed) {
  STROBE_ASSIGN(const sensors::NuScenes database, sensors::NuScenes::open(source.path));
  const bool together = come_together(needs);
  STROBE_ASSIGN(const std::vector<uint32_t> rows, leading_rows(database, source, needs));
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

}  // namespace strobe::tenants
