#include "sensors/detection_metrics_input.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/suggest.h"
#include "sensors/detection_boxes.h"
#include "sensors/nuscenes_splits.h"

namespace strobe::sensors {

using nuscenes::Annotation;
using nuscenes::kNone;

namespace {

// Facts of samples, found when first asked for.
class Samples {
 public:
  explicit Samples(const NuScenes& database)
      : database_(database), facts_(database.samples.size()), known_(facts_.size()) {}

  Result<const DetectionPlace*> of(uint32_t sample) {
    DetectionPlace& facts = facts_[sample];
    if (known_[sample]) return &facts;
    const uint32_t lidar = database_.key_data(sample, "LIDAR_TOP");
    if (lidar == kNone)
      return bad_data(
          fmt::format("sample {} has no key frame of LIDAR_TOP, whose ego pose the ranges are measured from",
                      database_.samples[sample].token));
    const Pose& ego = database_.ego_poses[database_.sample_data[lidar].ego_pose].pose;
    facts.ego_x = ego.translation.x;
    facts.ego_y = ego.translation.y;
    for (const uint32_t row : database_.annotations_of(sample))
      if (database_.category_of(database_.annotations[row]) == "static_object.bicycle_rack")
        facts.racks.push_back(database_.annotations[row].box());
    known_[sample] = true;
    return &facts;
  }

 private:
  const NuScenes& database_;
  std::vector<DetectionPlace> facts_;
  std::vector<bool> known_;
};

class ResultReader {
 public:
  ResultReader(const NuScenes& database, DetectionInput& out)
      : out_(out), seen_(database.samples.size()), database_(database), samples_(database) {}

  // By sample: whether the file has it.
  const std::vector<bool>& seen() const { return seen_; }

  Result<void> read(JsonCursor& in) {
    bool has_results = false;
    std::string_view key;
    in.begin_object();
    while (in.next_member(key)) {
      if (key == "results") {
        has_results = true;
        results(in);
      } else if (key == "meta") {
        meta(in);
      } else {
        in.skip();
      }
    }
    if (in.ok()) in.finish();
    if (in.ok() && !has_results)
      return bad_data("no \"results\"; expected {\"meta\": {...}, \"results\": {sample token: [boxes]}}");
    return in.status();
  }

 private:
  void meta(JsonCursor& in) {
    std::string_view key;
    in.begin_object();
    while (in.next_member(key)) {
      // What is no yes or no, such as a name, is not for us.
      if (key.starts_with("use_")) {
        out_.meta.emplace_back(key, in.boolean());
      } else {
        in.skip();
      }
    }
  }

  void results(JsonCursor& in) {
    std::string_view token;
    in.begin_object();
    while (in.next_member(token)) {
      uint32_t sample = database_.find_sample(token);
      if (sample == kNone) {
        const uint32_t data = database_.find_sample_data(token);
        if (data == kNone)
          return in.fault(
              fmt::format("sample \"{}\" is not in {}", token, (database_.root() / database_.version()).string()));
        out_.by_sample_data = true;
        if (!database_.sample_data[data].is_key_frame) {
          ++out_.skipped;
          in.skip();
          continue;
        }
        sample = database_.sample_data[data].sample;
      }
      if (seen_[sample])
        return in.fault(fmt::format("sample \"{}\" stands there twice", database_.samples[sample].token));
      seen_[sample] = true;
      auto facts = samples_.of(sample);
      if (!facts) return in.fault(facts.error().message());
      size_t boxes = 0;
      in.begin_array();
      while (in.next_element()) {
        if (++boxes > kMaxBoxesPerSample)
          return in.fault(fmt::format("sample \"{}\" has more than {} boxes", token, kMaxBoxesPerSample));
        box(in, token, sample, **facts);
      }
    }
  }

  void box(JsonCursor& in, std::string_view token, uint32_t sample, const DetectionPlace& facts) {
    DetectionBox box;
    box.sample = sample;
    double z = 0;
    int64_t points = -1;
    read_detection_box(in, token, box, z, points);
    if (in.ok() && passes_filters(box, z, points, facts, out_.prediction_counts)) out_.predictions.push_back(box);
  }

  DetectionInput& out_;
  std::vector<bool> seen_;
  const NuScenes& database_;
  Samples samples_;
};

// The split by its name, or the smallest one with every sample that was seen.
Result<NuScenesSplit> choose_split(const NuScenes& database, const std::vector<bool>& seen, const std::string& name) {
  STROBE_ASSIGN(std::vector<NuScenesSplit> splits, nuscenes_splits(database));
  if (!name.empty()) {
    std::vector<std::string> names;
    for (NuScenesSplit& split : splits) {
      if (split.name == name) return std::move(split);
      names.push_back(split.name);
    }
    return not_found(fmt::format("{} has no split \"{}\"; {}", (database.root() / database.version()).string(), name,
                                 suggest(name, names)));
  }
  const auto holds_all = [&](const NuScenesSplit& split) {
    for (size_t i = 0; i < seen.size(); ++i)
      if (seen[i] && !split.scenes[database.samples[i].scene]) return false;
    return true;
  };
  NuScenesSplit* smallest = nullptr;
  for (NuScenesSplit& split : splits)
    if (holds_all(split) &&
        (!smallest || std::ranges::count(split.scenes, true) < std::ranges::count(smallest->scenes, true)))
      smallest = &split;
  if (!smallest) return bad_data("the database has no scene");
  return std::move(*smallest);
}

// counts: by sample.
Result<void> read_truth(const NuScenes& database, const std::vector<bool>& counts, DetectionInput& out) {
  Samples samples(database);
  std::vector<uint8_t> class_of_category, attribute_numbers;
  for (const auto& category : database.categories)
    class_of_category.push_back(static_cast<uint8_t>(detection_class_of(category.name)));
  // An attribute that the task does not know is still one, and not that of any prediction.
  for (const auto& attribute : database.attributes) attribute_numbers.push_back(detection_attribute_of(attribute.name));
  for (uint32_t sample = 0; sample < database.samples.size(); ++sample) {
    if (!counts[sample]) continue;
    STROBE_ASSIGN(const DetectionPlace* const facts, samples.of(sample));
    for (const uint32_t row : database.annotations_of(sample)) {
      const Annotation& annotation = database.annotations[row];
      const uint8_t cls = class_of_category[database.instances[annotation.instance].category];
      if (cls == kDetectionClasses) continue;
      if (annotation.attribute_count > 1)
        return bad_data(fmt::format("annotation {} has {} attributes, expected at most one", annotation.token,
                                    annotation.attribute_count));
      DetectionBox box;
      box.sample = sample;
      box.cls = cls;
      if (annotation.attribute_count == 1)
        box.attribute = attribute_numbers[database.annotation_attributes[annotation.first_attribute]];
      box.x = annotation.centre.x, box.y = annotation.centre.y;
      box.width = annotation.width, box.length = annotation.length, box.height = annotation.height;
      if (!passes_filters(box, annotation.centre.z, int64_t{annotation.lidar_points} + annotation.radar_points, *facts,
                          out.truth_counts))
        continue;
      box.yaw = annotation.rotation.yaw();
      const Vector3 velocity = database.velocity(row);
      box.vx = velocity.x, box.vy = velocity.y;
      out.truths.push_back(box);
    }
  }
  return {};
}

// A run need not have had every key frame of its scenes: those that it has count.
Result<void> take_what_is_there(const NuScenes& database, const std::vector<bool>& seen, DetectionInput& out) {
  std::vector<bool> scenes(database.scenes.size());
  for (size_t i = 0; i < seen.size(); ++i)
    if (seen[i]) scenes[database.samples[i].scene] = true, ++out.samples;
  if (out.samples == 0)
    return bad_data(fmt::format("none of its {} lists is of a key frame, and others have no annotations", out.skipped));
  for (size_t i = 0; i < seen.size(); ++i) out.absent += scenes[database.samples[i].scene] && !seen[i] ? 1 : 0;
  out.scenes = static_cast<uint32_t>(std::ranges::count(scenes, true));
  out.split = "(key frames of the file)";
  return read_truth(database, seen, out);
}

}  // namespace

Result<bool> is_by_sample_data(const std::filesystem::path& results, const NuScenes& database) {
  STROBE_ASSIGN(const MappedText file, MappedText::open(results));
  std::deque<std::string> unescaped;
  JsonCursor in(file.text(), unescaped);
  std::string_view key;
  in.begin_object();
  while (in.next_member(key)) {
    if (key != "results") {
      in.skip();
      continue;
    }
    in.begin_object();
    return in.next_member(key) && database.find_sample(key) == kNone;
  }
  return false;
}

Result<DetectionInput> read_detection_input(const std::filesystem::path& results, const NuScenes& database,
                                            const std::string& split_name) {
  DetectionInput out;
  STROBE_ASSIGN(const MappedText file, MappedText::open(results));
  std::deque<std::string> unescaped;
  JsonCursor in(file.text(), unescaped);
  ResultReader reader(database, out);
  if (auto read = reader.read(in); !read) return std::move(read).error().at(results.string());
  if (out.by_sample_data && split_name.empty()) {
    if (auto taken = take_what_is_there(database, reader.seen(), out); !taken)
      return std::move(taken).error().at(results.string());
    return out;
  }
  STROBE_ASSIGN(const NuScenesSplit split, choose_split(database, reader.seen(), split_name));
  out.split = split.name;
  out.scenes = static_cast<uint32_t>(std::ranges::count(split.scenes, true));
  for (size_t i = 0; i < database.samples.size(); ++i) {
    const bool belongs = split.scenes[database.samples[i].scene];
    out.samples += belongs ? 1 : 0;
    if (belongs == reader.seen()[i]) continue;
    const auto& sample = database.samples[i];
    return bad_data(fmt::format(
        "{}: sample \"{}\" of {} {} split {}, {}", results.string(), sample.token, database.scenes[sample.scene].name,
        belongs ? "belongs to" : "is not in", split.name,
        belongs ? "but the file has no results for it (an empty list would do)" : "but the file has results for it"));
  }
  std::vector<bool> counts(database.samples.size());
  for (size_t i = 0; i < counts.size(); ++i) counts[i] = split.scenes[database.samples[i].scene];
  STROBE_TRY(read_truth(database, counts, out));
  return out;
}

}  // namespace strobe::sensors
