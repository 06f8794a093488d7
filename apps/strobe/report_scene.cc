#include "report_scene.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <numbers>
#include <optional>

#include "base/file.h"
#include "models/lidar_kitti.h"
#include "sensors/nuscenes.h"
#include "tenants/frame_stream.h"

namespace strobe::app {

namespace fs = std::filesystem;
using Json = nlohmann::json;
using Kind = tenants::SourceSpec::Kind;

namespace {

// The limits of what a page holds of sweeps.
constexpr size_t kSceneFrames = 12;      // of a stream, its first ones
constexpr size_t kScenePoints = 16'000;  // of a sweep, at random
constexpr size_t kSceneStreams = 6;

// What came from a live topic cannot be shown again.
constexpr std::pair<Kind, const char*> kKinds[] = {{Kind::kSynthetic, "synthetic"},
                                                   {Kind::kMedia, "media"},
                                                   {Kind::kSweeps, "sweeps"},
                                                   {Kind::kNuscenes, "nuscenes"},
                                                   {Kind::kMcap, "mcap"}};

std::string fact(const trace::Timeline& timeline, const std::string& key) {
  const auto found = timeline.facts.find(key);
  return found == timeline.facts.end() ? std::string() : found->second;
}

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> parts;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

// Nothing where the trace does not tell.
std::optional<tenants::SourceSpec> source_of(const trace::Timeline& timeline, const std::string& tenant) {
  const std::string prefix = "tenant." + tenant + ".", kind = fact(timeline, prefix + "source_kind");
  tenants::SourceSpec source;
  const auto* found =
      std::find_if(std::begin(kKinds), std::end(kKinds), [&](const auto& one) { return one.second == kind; });
  if (found == std::end(kKinds)) return {};
  source.kind = found->first;
  source.path = fact(timeline, prefix + "source");
  source.scene = fact(timeline, prefix + "source_scene");
  source.channels = split(fact(timeline, prefix + "source_channels"));
  source.weather = fact(timeline, prefix + "source_weather");
  source.weather_rate = std::strtod(fact(timeline, prefix + "source_weather_rate").c_str(), nullptr);
  source.most_frames = static_cast<int64_t>(kSceneFrames);
  return source;
}

// Turns what lies in a frame with x right and y forward.
report::SceneBox turned(report::SceneBox box, bool x_is_right) {
  if (!x_is_right) return box;
  std::swap(box.x, box.y);
  box.y = -box.y;
  box.yaw -= std::numbers::pi_v<float> / 2;
  return box;
}

report::SceneBox scene_box(const sensors::Box& box, std::string label, float score) {
  report::SceneBox one;
  one.x = static_cast<float>(box.pose.translation.x);
  one.y = static_cast<float>(box.pose.translation.y);
  one.z = static_cast<float>(box.pose.translation.z);
  one.length = static_cast<float>(box.length);
  one.width = static_cast<float>(box.width);
  one.height = static_cast<float>(box.height);
  one.yaw = static_cast<float>(box.pose.rotation.yaw());
  one.label = std::move(label);
  one.score = score;
  return one;
}

report::PointFrame point_frame(const tenants::SensorFrame& frame) {
  const tenants::PointCloud& cloud = *frame.points;
  report::PointFrame out;
  out.token = frame.token;
  out.points_before = cloud.count();
  const auto columns = static_cast<size_t>(cloud.columns);
  const std::vector<float> chosen = report::sampled_rows(cloud.values, columns, kScenePoints, 1);
  for (size_t i = 0; i + columns <= chosen.size(); i += columns) {
    const float x = chosen[i], y = chosen[i + 1];
    out.points.insert(out.points.end(), {cloud.x_is_right ? y : x, cloud.x_is_right ? -x : y, chosen[i + 2],
                                         chosen[i + 3] / cloud.full_intensity});
  }
  return out;
}

// The labels beside a sweep of KITTI: STEM_gt.txt and STEM_calib.txt, or the folders label_2 and calib of its layout.
// Nothing where there are none.
Result<std::optional<std::vector<report::SceneBox>>> kitti_truth(const fs::path& sweep) {
  const std::string stem = sweep.stem().string();
  const fs::path folder = sweep.parent_path(), layout = folder.parent_path();
  std::error_code ignored;
  fs::path labels = folder / (stem + "_gt.txt"), calibration = folder / (stem + "_calib.txt");
  if (!fs::exists(labels, ignored))
    labels = layout / "label_2" / (stem + ".txt"), calibration = layout / "calib" / (stem + ".txt");
  if (!fs::exists(labels, ignored) || !fs::exists(calibration, ignored))
    return std::optional<std::vector<report::SceneBox>>();
  STROBE_ASSIGN(const std::string label_text, read_file(labels));
  STROBE_ASSIGN(const std::string calibration_text, read_file(calibration));
  STROBE_ASSIGN(const auto parsed, models::parse_kitti_labels(label_text));
  STROBE_ASSIGN(const auto known, models::parse_kitti_calibration(calibration_text));
  std::vector<report::SceneBox> boxes;
  for (const models::KittiLabel& label : parsed) {
    if (label.type == "DontCare") continue;
    const models::Box3d box = models::lidar_box(label, known);
    boxes.push_back({box.x, box.y, box.z, box.length, box.width, box.height, box.yaw, label.type, 1});
  }
  return std::optional(std::move(boxes));
}

// The true boxes of a stream's frames. Frames of other sources have none.
Result<void> add_truth(const tenants::SourceSpec& source, const std::vector<tenants::SensorFrame>& frames,
                       report::PointStream& stream) {
  if (source.kind == Kind::kNuscenes) {
    STROBE_ASSIGN(const sensors::NuScenes database, sensors::NuScenes::open(source.path));
    for (size_t i = 0; i < frames.size(); ++i) {
      const uint32_t row = database.find_sample_data(frames[i].token);
      if (row == sensors::nuscenes::kNone || !frames[i].pose) continue;
      const sensors::Pose to_sensor = frames[i].pose->inverse();
      for (const sensors::MovedBox& moved : database.boxes_at(database.sample_data[row])) {
        sensors::Box box = moved.box;
        box.pose = to_sensor * box.pose;
        const std::string label(database.category_of(database.annotations[moved.annotation]));
        stream.frames[i].truth.push_back(turned(scene_box(box, label, 1), frames[i].points->x_is_right));
      }
      stream.has_truth = true;
    }
  }
  if (source.kind == Kind::kSweeps) {
    std::error_code ignored;
    for (report::PointFrame& frame : stream.frames) {
      const fs::path path = fs::is_directory(source.path, ignored) ? fs::path(source.path) / (frame.token + ".bin")
                                                                   : fs::path(source.path);
      STROBE_ASSIGN(auto boxes, kitti_truth(path));
      if (!boxes) continue;
      frame.truth = std::move(*boxes);
      stream.has_truth = true;
    }
  }
  return {};
}

std::string key_of(const tenants::SourceSpec& source, bool pictures, uint64_t seed) {
  std::string key = fmt::format("{}|{}|{}|{}|{}|{}|{}", static_cast<int>(source.kind), source.path, source.scene,
                                source.weather, source.weather_rate, pictures, source.weather.empty() ? 0 : seed);
  for (const std::string& channel : source.channels) key += "|" + channel;
  return key;
}

std::string name_of(const tenants::SourceSpec& source) {
  std::string name = fs::path(source.path).filename().string();
  if (!source.scene.empty()) name += " " + source.scene;
  if (!source.weather.empty()) name += fmt::format(", {} {:g} mm/h", source.weather, source.weather_rate);
  return name;
}

double number(const Json& list, size_t at) {
  return list.is_array() && at < list.size() && list[at].is_number() ? list[at].get<double>() : 0;
}

// Boxes of a nuScenes submission, in the sensor's frame. Whatever is no box is left out.
std::vector<report::SceneBox> predicted_boxes(const Json& results, const tenants::SensorFrame& frame) {
  std::vector<report::SceneBox> boxes;
  const auto found = results.find(frame.token);
  if (found == results.end() || !found->is_array()) return boxes;
  const sensors::Pose to_sensor = frame.pose.value_or(sensors::Pose{}).inverse();
  for (const Json& one : *found) {
    if (!one.is_object() || !one.contains("translation") || !one.contains("size") || !one.contains("rotation"))
      continue;
    const Json &place = one["translation"], &size = one["size"], &turn = one["rotation"];
    sensors::Box box;
    box.pose.translation = {number(place, 0), number(place, 1), number(place, 2)};
    box.pose.rotation =
        sensors::Quaternion{number(turn, 0), number(turn, 1), number(turn, 2), number(turn, 3)}.normalised();
    box.pose = to_sensor * box.pose;
    box.width = number(size, 0), box.length = number(size, 1), box.height = number(size, 2);
    const bool has_name = one.contains("detection_name") && one["detection_name"].is_string();
    const bool has_score = one.contains("detection_score") && one["detection_score"].is_number();
    boxes.push_back(turned(scene_box(box, has_name ? one["detection_name"].get<std::string>() : "?",
                                     has_score ? one["detection_score"].get<float>() : 0),
                           frame.points->x_is_right));
  }
  return boxes;
}

// lidar_pred_<i>.json is that of the first tenant whose boxes lie in space, the others have their names in theirs.
fs::path predictions_of(const fs::path& folder, const std::string& tenant, bool first) {
  std::error_code ignored;
  std::vector<fs::path> with_name, without;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with("lidar_pred_") || !name.ends_with(".json")) continue;
    if (name.ends_with("_" + tenant + ".json"))
      with_name.push_back(entry.path());
    else if (name.find('_', std::string_view("lidar_pred_").size()) == std::string::npos)
      without.push_back(entry.path());
  }
  if (!with_name.empty()) return with_name.front();
  return first && !without.empty() ? without.front() : fs::path();
}

}  // namespace

void write_source_facts(const tenants::CellSpec& cell, trace::Timeline& timeline) {
  timeline.facts["tenants.seed"] = std::to_string(cell.seed);
  for (const tenants::TenantSpec& tenant : cell.tenants) {
    const std::string prefix = "tenant." + tenant.name + ".";
    for (const auto& [kind, name] : kKinds)
      if (kind == tenant.source.kind) timeline.facts[prefix + "source_kind"] = name;
    if (!tenant.source.scene.empty()) timeline.facts[prefix + "source_scene"] = tenant.source.scene;
    std::string channels;
    for (const std::string& channel : tenant.source.channels) channels += (channels.empty() ? "" : ",") + channel;
    if (!channels.empty()) timeline.facts[prefix + "source_channels"] = channels;
    if (tenant.source.weather.empty()) continue;
    timeline.facts[prefix + "source_weather"] = tenant.source.weather;
    timeline.facts[prefix + "source_weather_rate"] = fmt::format("{}", tenant.source.weather_rate);
  }
}

void SceneCollector::add(const std::string& run, const trace::Timeline& timeline, const fs::path& folder,
                         std::vector<std::string>& notes) {
  bool first = true;
  for (const std::string& tenant : split(fact(timeline, "tenants"))) {
    const std::string type = fact(timeline, "tenant." + tenant + ".model_type");
    if (type != "lidar" && type != "multi-modal") continue;
    if (auto added = add_tenant(run, timeline, folder, tenant, first); !added)
      notes.push_back(tenant + ": no scene: " + added.error().to_string());
    first = false;
  }
}

Result<void> SceneCollector::add_tenant(const std::string& run, const trace::Timeline& timeline, const fs::path& folder,
                                        const std::string& tenant, bool first) {
  const auto source = source_of(timeline, tenant);
  if (!source) return {};
  const auto seed = static_cast<uint64_t>(std::strtoull(fact(timeline, "tenants.seed").c_str(), nullptr, 10));
  const bool pictures = fact(timeline, "tenant." + tenant + ".model_type") == "multi-modal";
  report::LidarScene scene;
  scene.run = run;
  scene.tenant = tenant;
  scene.model = fact(timeline, "tenant." + tenant + ".model");
  STROBE_ASSIGN(scene.stream, stream_of(*source, pictures, seed));
  Json results = Json::object();
  if (const fs::path path = predictions_of(folder, tenant, first); !path.empty()) {
    STROBE_ASSIGN(const std::string text, read_file(path));
    const Json submission = Json::parse(text, nullptr, false);
    if (!submission.is_object() || !submission.contains("results") || !submission["results"].is_object())
      return bad_data("expected a nuScenes submission with results").at(path.string());
    results = submission["results"];
  }
  for (const tenants::SensorFrame& frame : open_[scene.stream].frames)
    scene.predicted.push_back(predicted_boxes(results, frame));
  page_.scenes.push_back(std::move(scene));
  return {};
}

Result<size_t> SceneCollector::stream_of(const tenants::SourceSpec& source, bool pictures, uint64_t seed) {
  OpenStream open{key_of(source, pictures, seed), {}};
  const auto found =
      std::find_if(open_.begin(), open_.end(), [&](const OpenStream& one) { return one.key == open.key; });
  if (found != open_.end()) return static_cast<size_t>(found - open_.begin());
  if (open_.size() >= kSceneStreams)
    return unsupported(fmt::format("the page has the sweeps of {} streams already", kSceneStreams));
  STROBE_ASSIGN(const auto stream, tenants::open_stream(source, {.pictures = pictures, .points = true}, seed));
  report::PointStream shown;
  shown.name = name_of(source);
  shown.notes = stream->notes();
  for (int64_t i = 0; i < stream->size(); ++i) {
    tenants::SensorFrame frame = stream->frame(i);
    if (!frame.points) continue;
    frame.pictures.clear();
    shown.frames.push_back(point_frame(frame));
    open.frames.push_back(std::move(frame));
  }
  STROBE_TRY(add_truth(source, open.frames, shown));
  page_.streams.push_back(std::move(shown));
  open_.push_back(std::move(open));
  return open_.size() - 1;
}

}  // namespace strobe::app
