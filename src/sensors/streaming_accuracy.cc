#include "sensors/streaming_accuracy.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <map>

namespace strobe::sensors {

using nuscenes::kNone;

namespace {

struct FoundBox {
  DetectionBox box;
  double z = 0;
  int64_t points = -1;
};

// The boxes of a result file by the sample_data that they are of.
using BoxesByInput = std::map<uint32_t, std::vector<FoundBox>>;

// kNone where the database has no such token.
uint32_t input_of(const NuScenes& database, std::string_view token) {
  const uint32_t data = database.find_sample_data(token);
  if (data != kNone) return data;
  const uint32_t sample = database.find_sample(token);
  return sample == kNone ? kNone : database.key_data(sample, "LIDAR_TOP");
}

std::string absent(const NuScenes& database, std::string_view token) {
  return fmt::format("token \"{}\" is none of the sample_data in {}", token,
                     (database.root() / database.version()).string());
}

void read_results(JsonCursor& in, const NuScenes& database, BoxesByInput& out) {
  std::string_view token;
  in.begin_object();
  while (in.next_member(token)) {
    const uint32_t input = input_of(database, token);
    if (input == kNone) return in.fault(absent(database, token));
    const auto [place, fresh] = out.try_emplace(input);
    if (!fresh) return in.fault(fmt::format("the boxes of \"{}\" stand there twice", token));
    in.begin_array();
    while (in.next_element()) {
      if (place->second.size() == kMaxBoxesPerSample)
        return in.fault(fmt::format("\"{}\" has more than {} boxes", token, kMaxBoxesPerSample));
      FoundBox& found = place->second.emplace_back();
      read_detection_box(in, token, found.box, found.z, found.points);
    }
  }
}

Result<BoxesByInput> read_boxes(const std::filesystem::path& file, const NuScenes& database) {
  STROBE_ASSIGN(const MappedText text, MappedText::open(file));
  std::deque<std::string> unescaped;
  JsonCursor in(text.text(), unescaped);
  BoxesByInput out;
  bool has_results = false;
  std::string_view key;
  in.begin_object();
  while (in.next_member(key)) {
    if (key == "results") {
      has_results = true;
      read_results(in, database, out);
    } else {
      in.skip();
    }
  }
  if (in.ok()) in.finish();
  if (auto read = in.status(); !read) return std::move(read).error().at(file.string());
  if (!has_results)
    return bad_data("no \"results\"; expected {\"meta\": {...}, \"results\": {token: [boxes]}}").at(file.string());
  return out;
}

// Annotations of a moment as the metrics see them.
class Truth {
 public:
  explicit Truth(const NuScenes& database) : database_(database) {}

  // Appends what passes the filters, as of `group`. The racks of that moment come into `place`.
  void at(uint32_t scene, int64_t time_us, DetectionPlace& place, uint32_t group, FilterCounts& counts,
          std::vector<DetectionBox>& out) const {
    const std::vector<MovedBox> moved = boxes_at(scene, time_us);
    place.racks.clear();
    for (const MovedBox& one : moved)
      if (category(one) == "static_object.bicycle_rack") place.racks.push_back(one.box);
    for (const MovedBox& one : moved) {
      const size_t cls = detection_class_of(category(one));
      if (cls == kDetectionClasses) continue;
      const nuscenes::Annotation& annotation = database_.annotations[one.annotation];
      DetectionBox box;
      box.sample = group;
      box.cls = static_cast<uint8_t>(cls);
      if (annotation.attribute_count > 0)
        box.attribute = detection_attribute_of(
            database_.attributes[database_.annotation_attributes[annotation.first_attribute]].name);
      box.x = one.box.pose.translation.x, box.y = one.box.pose.translation.y;
      box.width = one.box.width, box.length = one.box.length, box.height = one.box.height;
      if (!passes_filters(box, one.box.pose.translation.z, int64_t{annotation.lidar_points} + annotation.radar_points,
                          place, counts))
        continue;
      box.yaw = one.box.pose.rotation.yaw();
      const Vector3 velocity = database_.velocity(one.annotation);
      box.vx = velocity.x, box.vy = velocity.y;
      out.push_back(box);
    }
  }

 private:
  // The annotations of the nearest key frame, moved to this time where the one on its other side knows them, too.
  std::vector<MovedBox> boxes_at(uint32_t scene, int64_t time_us) const {
    const std::vector<uint32_t> frames = database_.samples_of(scene);
    const auto nearest = std::ranges::min_element(
        frames, {}, [&](uint32_t frame) { return std::abs(database_.samples[frame].timestamp_us - time_us); });
    if (nearest == frames.end()) return {};
    std::map<uint32_t, Pose> moved;
    for (const MovedBox& one : database_.boxes_at(scene, time_us))
      moved.emplace(database_.annotations[one.annotation].instance, one.box.pose);
    std::vector<MovedBox> boxes;
    for (const uint32_t row : database_.annotations_of(*nearest)) {
      boxes.push_back({row, database_.annotations[row].box()});
      if (const auto found = moved.find(database_.annotations[row].instance); found != moved.end())
        boxes.back().box.pose = found->second;
    }
    return boxes;
  }

  std::string_view category(const MovedBox& one) const {
    return database_.category_of(database_.annotations[one.annotation]);
  }
  const NuScenes& database_;
};

}  // namespace

Result<StreamingAccuracy> streaming_accuracy(const std::filesystem::path& file, const NuScenes& database,
                                             const std::vector<TimedResult>& results) {
  STROBE_ASSIGN(const BoxesByInput boxes, read_boxes(file, database));
  StreamingAccuracy out;
  const Truth truth(database);
  std::vector<DetectionBox> still, stream, predictions;
  for (const TimedResult& result : results) {
    const uint32_t input = input_of(database, result.token);
    if (input == kNone) return bad_data(absent(database, result.token));
    const nuscenes::SampleData& data = database.sample_data[input];
    const uint32_t scene = database.samples[data.sample].scene;
    const Pose& ego = database.ego_poses[data.ego_pose].pose;
    DetectionPlace then{ego.translation.x, ego.translation.y, {}}, place = then;
    const auto group = static_cast<uint32_t>(out.results++);
    const int64_t ready_us = data.timestamp_us + std::llround(1e6 * result.delay_s);
    truth.at(scene, data.timestamp_us, place, group, out.still_truths, still);
    truth.at(scene, ready_us, then, group, out.stream_truths, stream);
    if (ready_us > database.samples[database.scenes[scene].last_sample].timestamp_us) ++out.beyond;
    const auto found = boxes.find(input);
    if (found == boxes.end()) {
      ++out.without_boxes;
      continue;
    }
    for (const FoundBox& one : found->second) {
      if (!passes_filters(one.box, one.z, one.points, place, out.predictions)) continue;
      predictions.push_back(one.box);
      predictions.back().sample = group;
    }
  }
  auto measured = [&](const std::vector<DetectionBox>& truths) {
    return detection_metrics(truths, predictions, out.results);
  };
  auto of_still = measured(still);
  if (!of_still) return std::move(of_still).error().at(file.string());
  out.still = std::move(*of_still);
  auto of_stream = measured(stream);
  if (!of_stream) return std::move(of_stream).error().at(file.string());
  out.stream = std::move(*of_stream);
  return out;
}

}  // namespace strobe::sensors
