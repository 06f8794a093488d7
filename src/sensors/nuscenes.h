// A nuScenes database: the 13 tables of ROOT/v1.0-*, linked, and what is asked of them. The form of the tables is
// nuScenes' "Database schema" v1.0. Units: metres, seconds where a name says _s, microseconds where it says _us;
// annotations and ego poses stand in the global frame, calibrations in the ego frame (x forward, y left, z up).
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "sensors/geometry.h"
#include "sensors/nuscenes_index.h"
#include "sensors/nuscenes_json.h"
#include "strobe/base/result.h"

namespace strobe::sensors {

// Rows point at rows of other tables by their place in them. Texts are views into the files, which stay mapped.
namespace nuscenes {

struct Log {
  std::string_view token, logfile, vehicle, date_captured, location;
};
struct Map {
  std::string_view token, filename, category;
  std::vector<uint32_t> logs;
};
struct Sensor {
  std::string_view token, channel, modality;  // "LIDAR_TOP", "lidar"
};
struct CalibratedSensor {
  std::string_view token;
  uint32_t sensor = kNone;
  Pose pose;  // of the sensor in the ego frame
  Matrix3 intrinsic{};
  bool has_intrinsic = false;
};
struct Category {
  std::string_view token, name, description;
};
struct Attribute {
  std::string_view token, name, description;
};
struct Visibility {
  std::string_view token, level, description;
};
struct Scene {
  std::string_view token, name, description;
  uint32_t log = kNone, first_sample = kNone, last_sample = kNone;
  uint32_t sample_count = 0;
};
struct Sample {
  std::string_view token;
  int64_t timestamp_us = 0;
  uint32_t scene = kNone, previous = kNone, next = kNone;
};
struct SampleData {
  std::string_view token, filename, fileformat;
  int64_t timestamp_us = 0;
  uint32_t sample = kNone, ego_pose = kNone, calibrated_sensor = kNone;
  uint16_t width = 0, height = 0;
  bool is_key_frame = false;
};
struct EgoPose {
  std::string_view token;
  int64_t timestamp_us = 0;
  Pose pose;
};
struct Instance {
  std::string_view token;
  uint32_t category = kNone, first_annotation = kNone, last_annotation = kNone;
  uint32_t annotation_count = 0;
};
struct Annotation {
  std::string_view token;
  uint32_t sample = kNone, instance = kNone, visibility = kNone, previous = kNone, next = kNone;
  uint32_t first_attribute = 0, attribute_count = 0;  // of NuScenes::annotation_attributes
  int32_t lidar_points = 0, radar_points = 0;
  Vector3 centre;
  double width = 0, length = 0, height = 0;
  Quaternion rotation;

  Box box() const { return {{centre, rotation}, length, width, height}; }
};

// How much of the two big tables of sensor data is kept.
enum class Detail : uint8_t {
  kAll,
  kKeyFrames,  // sample_data that are key frames, and the ego poses that these use
};

}  // namespace nuscenes

// An annotation at some moment.
struct MovedBox {
  uint32_t annotation = nuscenes::kNone;
  Box box;
};

class NuScenes {
 public:
  // `version` is the folder of the tables; empty: the one there is. The tables are read by two threads.
  // Errors: kNotFound (folder, table), kUsage (several versions), kBadData naming the file, the line or row, the field
  // and what was expected; a token that no row has names both tables.
  static Result<NuScenes> open(const std::filesystem::path& root, const std::string& version = "",
                               nuscenes::Detail detail = nuscenes::Detail::kAll);

  const std::filesystem::path& root() const { return root_; }
  const std::string& version() const { return version_; }

  std::vector<nuscenes::Log> logs;
  std::vector<nuscenes::Map> maps;
  std::vector<nuscenes::Sensor> sensors;
  std::vector<nuscenes::CalibratedSensor> calibrated_sensors;
  std::vector<nuscenes::Category> categories;
  std::vector<nuscenes::Attribute> attributes;
  std::vector<nuscenes::Visibility> visibilities;
  std::vector<nuscenes::Scene> scenes;
  std::vector<nuscenes::Sample> samples;
  std::vector<nuscenes::SampleData> sample_data;
  std::vector<nuscenes::EgoPose> ego_poses;
  std::vector<nuscenes::Instance> instances;
  std::vector<nuscenes::Annotation> annotations;
  std::vector<uint32_t> annotation_attributes;  // rows of `attributes`

  // Rows by token; kNone where there is none.
  uint32_t find_sample(std::string_view token) const { return sample_index_.find(samples, token); }
  uint32_t find_sample_data(std::string_view token) const { return sample_data_index_.find(sample_data, token); }
  uint32_t find_annotation(std::string_view token) const { return annotation_index_.find(annotations, token); }
  // By name or token. Errors: kNotFound with the nearest name.
  Result<uint32_t> find_scene(std::string_view name) const;

  const nuscenes::Sensor& sensor_of(const nuscenes::SampleData& data) const {
    return sensors[calibrated_sensors[data.calibrated_sensor].sensor];
  }
  std::string_view category_of(const nuscenes::Annotation& annotation) const {
    return categories[instances[annotation.instance].category].name;
  }
  std::filesystem::path file_of(const nuscenes::SampleData& data) const { return root_ / data.filename; }

  // Key frames of a scene in the order of time.
  std::vector<uint32_t> samples_of(uint32_t scene) const;
  // Sensor data of a scene in the order of time: all channels, or those named; sweeps too, or key frames alone.
  // Errors: kNotFound (a channel that the scene does not have, with those it has).
  Result<std::vector<uint32_t>> data_of(uint32_t scene, const std::vector<std::string>& channels, bool sweeps) const;
  // Annotations of a key frame, in the order of the table.
  std::span<const uint32_t> annotations_of(uint32_t sample) const;
  // The key frame's data of a channel; kNone where there is none.
  uint32_t key_data(uint32_t sample, std::string_view channel) const;

  // Metres a second from the annotations before and after, or from one of them where the other is absent; NaN where
  // there is neither or they are more than 1.5 s a step apart. As nuScenes defines the velocity of an annotation.
  Vector3 velocity(uint32_t annotation) const;

  // The boxes at the moment of a sensor's frame, in the global frame: a key frame's own; else those of its sample, each
  // moved linearly (turned by slerp) from where its instance stood in the sample before. What was not there before
  // stays where it is.
  std::vector<MovedBox> boxes_at(const nuscenes::SampleData& data) const;
  // The boxes of a scene at any time: between the key frames around it, those that both know, moved as above; before
  // the first and after the last key frame, that one's.
  std::vector<MovedBox> boxes_at(uint32_t scene, int64_t time_us) const;

 private:
  friend class NuScenesLoader;
  std::vector<MovedBox> between(uint32_t before, uint32_t after, int64_t time_us, bool keep_new) const;

  std::filesystem::path root_;
  std::string version_;
  std::vector<MappedText> files_;
  std::vector<std::deque<std::string>> unescaped_;
  TokenIndex sample_index_, sample_data_index_, annotation_index_;
  // Annotations by sample: those of sample s are [starts[s], starts[s + 1]).
  std::vector<uint32_t> annotations_by_sample_, annotation_starts_;
  // The same for key frames' sample_data.
  std::vector<uint32_t> key_data_by_sample_, key_data_starts_;
};

}  // namespace strobe::sensors
