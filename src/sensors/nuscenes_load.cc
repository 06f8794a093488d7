// Reads the tables of a nuScenes database and links their rows.
#include <fmt/format.h>

#include <algorithm>
#include <future>
#include <limits>

#include "base/suggest.h"
#include "sensors/nuscenes.h"

namespace strobe::sensors {

using namespace nuscenes;

namespace {

// Fields of a row that must be there; a row's reader sets the bit of each that it saw.
using Seen = uint32_t;

// The place of `token` in `rows`, or an error that names both tables.
template <typename Row>
Result<uint32_t> resolve(const TokenIndex& index, const std::vector<Row>& rows, std::string_view token,
                         std::string_view table, uint32_t guess = kNone) {
  const uint32_t row = index.find(rows, token, guess);
  if (row == kNone) return bad_data(fmt::format("token \"{}\" is in no row of {}.json", token, table));
  return row;
}

Vector3 read_vector(JsonCursor& in) {
  double v[3] = {};
  in.numbers(v);
  return {v[0], v[1], v[2]};
}

Quaternion read_quaternion(JsonCursor& in) {
  double v[4] = {};
  in.numbers(v);
  return {v[0], v[1], v[2], v[3]};
}

template <typename T>
T read_integer(JsonCursor& in) {
  const int64_t v = in.integer();
  if (v < std::numeric_limits<T>::min() || v > std::numeric_limits<T>::max())
    in.fault(fmt::format("{} is too large", v));
  return static_cast<T>(v);
}

// Microseconds, of which nanoseconds can still be made.
int64_t read_time(JsonCursor& in) {
  constexpr int64_t kFarthest = 4'000'000'000'000'000;
  const int64_t v = in.integer();
  if (v < -kFarthest || v > kFarthest) in.fault(fmt::format("{} is no time in microseconds", v));
  return v;
}

uint32_t row_number(size_t row) {
  return static_cast<uint32_t>(row);
}

}  // namespace

class NuScenesLoader {
 public:
  NuScenesLoader(NuScenes& out, Detail detail) : out_(out), detail_(detail) {
    out_.files_.reserve(kTables);
    out_.unescaped_.resize(kTables);
  }

  Result<void> load() {
    STROBE_TRY(map_files());
    STROBE_TRY(logs());
    STROBE_TRY(maps());
    STROBE_TRY(sensors());
    STROBE_TRY(calibrated_sensors());
    STROBE_TRY(named("category", out_.categories, categories_, &Category::name));
    STROBE_TRY(named("attribute", out_.attributes, attributes_, &Attribute::name));
    STROBE_TRY(named("visibility", out_.visibilities, visibilities_, &Visibility::level));
    STROBE_TRY(scenes());
    STROBE_TRY(samples());
    // The two large parts know nothing of each other.
    auto annotated = std::async(std::launch::async, [this]() -> Result<void> {
      STROBE_TRY(instances());
      return annotations();
    });
    Result<void> sensed = detail_ == Detail::kAll ? all_sensor_data() : key_sensor_data();
    Result<void> boxes = annotated.get();
    STROBE_TRY(std::move(sensed));
    STROBE_TRY(std::move(boxes));
    group();
    return {};
  }

 private:
  static constexpr const char* kNames[] = {
      "log",   "map",    "sensor",   "calibrated_sensor", "category",    "attribute",        "visibility",
      "scene", "sample", "instance", "ego_pose",          "sample_data", "sample_annotation"};
  static constexpr size_t kTables = std::size(kNames);

  Result<void> map_files() {
    for (const char* name : kNames) {
      STROBE_ASSIGN(MappedText file, MappedText::open(out_.root_ / out_.version_ / (std::string(name) + ".json")));
      out_.files_.push_back(std::move(file));
    }
    return {};
  }

  Error at_table(Error error, std::string_view name) const {
    return std::move(error).at((out_.root_ / out_.version_ / fmt::format("{}.json", name)).string());
  }

  // Calls field(key, row, seen) for each member of each row: it reads the value, or returns false to have it skipped.
  // Then done(row) for each row, whose error names the row. `needed` is the mask of fields and `fields` their names.
  template <typename Row, typename Field, typename Done>
  Result<void> rows(std::string_view name, std::initializer_list<const char*> fields, Field&& field, Done&& done) {
    const size_t table = static_cast<size_t>(std::ranges::find(kNames, name) - std::begin(kNames));
    JsonCursor in(out_.files_[table].text(), out_.unescaped_[table]);
    const Seen needed = (Seen{1} << fields.size()) - 1;
    std::string_view key;
    in.begin_array();
    for (size_t number = 0; in.next_element(); ++number) {
      Row row;
      Seen seen = 0;
      in.begin_object();
      while (in.next_member(key))
        if (!field(in, key, row, seen)) in.skip();
      if (!in.ok()) break;
      if ((seen & needed) != needed) {
        size_t missing = 0;
        while (seen & (Seen{1} << missing)) ++missing;
        return at_table(
            bad_data(fmt::format("line {}: row {} has no \"{}\"", in.line(), number, fields.begin()[missing])), name);
      }
      if (Result<void> kept = done(row); !kept)
        return at_table(std::move(kept).error().at(fmt::format("line {}: row {}", in.line(), number)), name);
    }
    if (in.ok()) in.finish();
    if (auto whole = in.status(); !whole) return at_table(std::move(whole).error(), name);
    return {};
  }

  template <typename Row>
  Result<void> index(std::string_view name, const std::vector<Row>& rows_of_table, TokenIndex& tokens) {
    const uint32_t twice = tokens.build(rows_of_table);
    if (twice == kNone) return {};
    return at_table(
        bad_data(fmt::format("row {}: token \"{}\" is also that of an earlier row", twice, rows_of_table[twice].token)),
        name);
  }

  Result<void> logs() {
    STROBE_TRY(rows<Log>(
        "log", {"token", "logfile"},
        [](JsonCursor& in, std::string_view key, Log& row, Seen& seen) {
          if (key == "token") return row.token = in.string(), seen |= 1, true;
          if (key == "logfile") return row.logfile = in.string(), seen |= 2, true;
          if (key == "vehicle") return row.vehicle = in.string(), true;
          if (key == "date_captured") return row.date_captured = in.string(), true;
          if (key == "location") return row.location = in.string(), true;
          return false;
        },
        [this](Log& row) -> Result<void> { return out_.logs.push_back(row), Result<void>(); }));
    return index("log", out_.logs, logs_);
  }

  Result<void> maps() {
    std::vector<std::string_view> tokens;
    return rows<Map>(
        "map", {"token", "log_tokens"},
        [&tokens](JsonCursor& in, std::string_view key, Map& row, Seen& seen) {
          if (key == "token") return row.token = in.string(), seen |= 1, true;
          if (key == "filename") return row.filename = in.string(), true;
          if (key == "category") return row.category = in.string(), true;
          if (key != "log_tokens") return false;
          seen |= 2;
          tokens.clear();
          in.begin_array();
          while (in.next_element()) tokens.push_back(in.string());
          return true;
        },
        [this, &tokens](Map& row) -> Result<void> {
          for (const std::string_view token : tokens) {
            STROBE_ASSIGN(const uint32_t log, resolve(logs_, out_.logs, token, "log"));
            row.logs.push_back(log);
          }
          return out_.maps.push_back(std::move(row)), Result<void>();
        });
  }

  Result<void> sensors() {
    STROBE_TRY(rows<Sensor>(
        "sensor", {"token", "channel", "modality"},
        [](JsonCursor& in, std::string_view key, Sensor& row, Seen& seen) {
          if (key == "token") return row.token = in.string(), seen |= 1, true;
          if (key == "channel") return row.channel = in.string(), seen |= 2, true;
          if (key == "modality") return row.modality = in.string(), seen |= 4, true;
          return false;
        },
        [this](Sensor& row) -> Result<void> { return out_.sensors.push_back(row), Result<void>(); }));
    return index("sensor", out_.sensors, sensors_);
  }

  Result<void> calibrated_sensors() {
    struct Row : CalibratedSensor {
      std::string_view sensor_token;
    };
    STROBE_TRY(rows<Row>(
        "calibrated_sensor", {"token", "sensor_token", "translation", "rotation"},
        [](JsonCursor& in, std::string_view key, Row& row, Seen& seen) {
          if (key == "token") return row.token = in.string(), seen |= 1, true;
          if (key == "sensor_token") return row.sensor_token = in.string(), seen |= 2, true;
          if (key == "translation") return row.pose.translation = read_vector(in), seen |= 4, true;
          if (key == "rotation") return row.pose.rotation = read_quaternion(in), seen |= 8, true;
          if (key != "camera_intrinsic") return false;
          size_t line = 0;
          in.begin_array();
          for (; in.next_element(); ++line) {
            double v[3] = {};
            in.numbers(v);
            if (line < 3) row.intrinsic[line] = {v[0], v[1], v[2]};
          }
          if (line != 0 && line != 3) in.fault(fmt::format("camera_intrinsic has {} rows, expected 3 or none", line));
          row.has_intrinsic = line == 3;
          return true;
        },
        [this](Row& row) -> Result<void> {
          STROBE_ASSIGN(row.sensor, resolve(sensors_, out_.sensors, row.sensor_token, "sensor"));
          return out_.calibrated_sensors.push_back(row), Result<void>();
        }));
    return index("calibrated_sensor", out_.calibrated_sensors, calibrated_);
  }

  // category, attribute, visibility: a token, a name, a description.
  template <typename Row>
  Result<void> named(const char* table, std::vector<Row>& out, TokenIndex& tokens, std::string_view Row::*name) {
    const char* const name_key = std::string_view(table) == "visibility" ? "level" : "name";
    STROBE_TRY(rows<Row>(
        table, {"token", name_key},
        [name, name_key](JsonCursor& in, std::string_view key, Row& row, Seen& seen) {
          if (key == "token") return row.token = in.string(), seen |= 1, true;
          if (key == name_key) return row.*name = in.string(), seen |= 2, true;
          if (key == "description") return row.description = in.string(), true;
          return false;
        },
        [&out](Row& row) -> Result<void> { return out.push_back(row), Result<void>(); }));
    return index(table, out, tokens);
  }

  Result<void> scenes() {
    struct Row : Scene {
      std::string_view log_token, first, last;
    };
    STROBE_TRY(rows<Row>(
        "scene", {"token", "name", "log_token", "first_sample_token", "last_sample_token"},
        [](JsonCursor& in, std::string_view key, Row& row, Seen& seen) {
          if (key == "token") return row.token = in.string(), seen |= 1, true;
          if (key == "name") return row.name = in.string(), seen |= 2, true;
          if (key == "log_token") return row.log_token = in.string(), seen |= 4, true;
          if (key == "first_sample_token") return row.first = in.string(), seen |= 8, true;
          if (key == "last_sample_token") return row.last = in.string(), seen |= 16, true;
          if (key == "description") return row.description = in.string(), true;
          if (key == "nbr_samples") return row.sample_count = read_integer<uint32_t>(in), true;
          return false;
        },
        [this](Row& row) -> Result<void> {
          STROBE_ASSIGN(row.log, resolve(logs_, out_.logs, row.log_token, "log"));
          first_and_last_.push_back({row.first, row.last});
          return out_.scenes.push_back(row), Result<void>();
        }));
    return index("scene", out_.scenes, scenes_);
  }

  Result<void> samples() {
    struct Row : Sample {
      std::string_view scene_token, before, after;
    };
    std::vector<std::array<std::string_view, 2>> neighbours;
    STROBE_TRY(rows<Row>(
        "sample", {"token", "timestamp", "scene_token"},
        [](JsonCursor& in, std::string_view key, Row& row, Seen& seen) {
          if (key == "token") return row.token = in.string(), seen |= 1, true;
          if (key == "timestamp") return row.timestamp_us = read_time(in), seen |= 2, true;
          if (key == "scene_token") return row.scene_token = in.string(), seen |= 4, true;
          if (key == "prev") return row.before = in.string(), true;
          if (key == "next") return row.after = in.string(), true;
          return false;
        },
        [this, &neighbours](Row& row) -> Result<void> {
          STROBE_ASSIGN(row.scene, resolve(scenes_, out_.scenes, row.scene_token, "scene"));
          neighbours.push_back({row.before, row.after});
          return out_.samples.push_back(row), Result<void>();
        }));
    STROBE_TRY(index("sample", out_.samples, out_.sample_index_));
    STROBE_TRY(link("sample", out_.samples, out_.sample_index_, neighbours));
    for (size_t i = 0; i < out_.scenes.size(); ++i) {
      for (const size_t end : {0, 1}) {
        auto sample = resolve(out_.sample_index_, out_.samples, first_and_last_[i][end], "sample");
        if (!sample) return at_table(std::move(sample).error().at(fmt::format("row {}", i)), "scene");
        (end == 0 ? out_.scenes[i].first_sample : out_.scenes[i].last_sample) = *sample;
      }
    }
    return {};
  }

  // prev and next, which are rows of the same table or empty.
  template <typename Row>
  Result<void> link(std::string_view name, std::vector<Row>& table, const TokenIndex& tokens,
                    const std::vector<std::array<std::string_view, 2>>& neighbours) {
    for (uint32_t i = 0; i < table.size(); ++i) {
      for (const size_t side : {0, 1}) {
        const std::string_view token = neighbours[i][side];
        if (token.empty()) continue;
        auto row = resolve(tokens, table, token, name, side == 0 ? i - 1 : i + 1);
        if (!row)
          return at_table(std::move(row).error().at(fmt::format("row {}: {}", i, side == 0 ? "prev" : "next")), name);
        (side == 0 ? table[i].previous : table[i].next) = *row;
      }
    }
    return {};
  }

  Result<void> instances() {
    struct Row : Instance {
      std::string_view category_token, first, last;
    };
    STROBE_TRY(rows<Row>(
        "instance", {"token", "category_token"},
        [](JsonCursor& in, std::string_view key, Row& row, Seen& seen) {
          if (key == "token") return row.token = in.string(), seen |= 1, true;
          if (key == "category_token") return row.category_token = in.string(), seen |= 2, true;
          if (key == "first_annotation_token") return row.first = in.string(), true;
          if (key == "last_annotation_token") return row.last = in.string(), true;
          if (key == "nbr_annotations") return row.annotation_count = read_integer<uint32_t>(in), true;
          return false;
        },
        [this](Row& row) -> Result<void> {
          STROBE_ASSIGN(row.category, resolve(categories_, out_.categories, row.category_token, "category"));
          instance_ends_.push_back({row.first, row.last});
          return out_.instances.push_back(row), Result<void>();
        }));
    return index("instance", out_.instances, instances_);
  }

  Result<void> annotations() {
    struct Row : Annotation {
      std::string_view sample_token, instance_token, visibility_token, before, after;
    };
    std::vector<std::array<std::string_view, 2>> neighbours;
    std::vector<std::string_view> attribute_tokens;
    uint32_t last_sample = kNone, last_instance = kNone;
    STROBE_TRY(rows<Row>(
        "sample_annotation", {"token", "sample_token", "instance_token", "translation", "size", "rotation"},
        [&attribute_tokens](JsonCursor& in, std::string_view key, Row& row, Seen& seen) {
          if (key == "token") return row.token = in.string(), seen |= 1, true;
          if (key == "sample_token") return row.sample_token = in.string(), seen |= 2, true;
          if (key == "instance_token") return row.instance_token = in.string(), seen |= 4, true;
          if (key == "translation") return row.centre = read_vector(in), seen |= 8, true;
          if (key == "rotation") return row.rotation = read_quaternion(in), seen |= 32, true;
          if (key == "visibility_token") return row.visibility_token = in.string(), true;
          if (key == "prev") return row.before = in.string(), true;
          if (key == "next") return row.after = in.string(), true;
          if (key == "num_lidar_pts") return row.lidar_points = read_integer<int32_t>(in), true;
          if (key == "num_radar_pts") return row.radar_points = read_integer<int32_t>(in), true;
          if (key == "size") {
            const Vector3 size = read_vector(in);
            row.width = size.x, row.length = size.y, row.height = size.z;
            return seen |= 16, true;
          }
          if (key != "attribute_tokens") return false;
          in.begin_array();
          while (in.next_element()) attribute_tokens.push_back(in.string());
          return true;
        },
        [&](Row& row) -> Result<void> {
          STROBE_ASSIGN(row.sample, resolve(out_.sample_index_, out_.samples, row.sample_token, "sample", last_sample));
          STROBE_ASSIGN(row.instance,
                        resolve(instances_, out_.instances, row.instance_token, "instance", last_instance));
          last_sample = row.sample;
          last_instance = row.instance;
          if (!row.visibility_token.empty()) {
            STROBE_ASSIGN(row.visibility,
                          resolve(visibilities_, out_.visibilities, row.visibility_token, "visibility"));
          }
          row.first_attribute = row_number(out_.annotation_attributes.size());
          row.attribute_count = row_number(attribute_tokens.size());
          for (const std::string_view token : attribute_tokens) {
            STROBE_ASSIGN(const uint32_t attribute, resolve(attributes_, out_.attributes, token, "attribute"));
            out_.annotation_attributes.push_back(attribute);
          }
          attribute_tokens.clear();
          neighbours.push_back({row.before, row.after});
          return out_.annotations.push_back(row), Result<void>();
        }));
    STROBE_TRY(index("sample_annotation", out_.annotations, out_.annotation_index_));
    STROBE_TRY(link("sample_annotation", out_.annotations, out_.annotation_index_, neighbours));
    for (size_t i = 0; i < out_.instances.size(); ++i) {
      for (const size_t end : {0, 1}) {
        if (instance_ends_[i][end].empty()) continue;
        auto row = resolve(out_.annotation_index_, out_.annotations, instance_ends_[i][end], "sample_annotation");
        if (!row) return at_table(std::move(row).error().at(fmt::format("row {}", i)), "instance");
        (end == 0 ? out_.instances[i].first_annotation : out_.instances[i].last_annotation) = *row;
      }
    }
    return {};
  }

  Result<void> ego_poses(const std::vector<std::string_view>* wanted) {
    struct Wanted {
      std::string_view token;
    };
    std::vector<Wanted> tokens;
    TokenIndex index_of_wanted;
    if (wanted) {
      for (const std::string_view token : *wanted) tokens.push_back({token});
      index_of_wanted.build(tokens);
    }
    struct Row : EgoPose {
      bool unwanted = false;
    };
    STROBE_TRY(rows<Row>(
        "ego_pose", {"token", "translation", "rotation"},
        [&](JsonCursor& in, std::string_view key, Row& row, Seen& seen) {
          if (key == "token") {
            row.token = in.string();
            row.unwanted = wanted && index_of_wanted.find(tokens, row.token) == kNone;
            return seen |= row.unwanted ? 7 : 1, true;
          }
          if (row.unwanted) return false;
          if (key == "translation") return row.pose.translation = read_vector(in), seen |= 2, true;
          if (key == "rotation") return row.pose.rotation = read_quaternion(in), seen |= 4, true;
          if (key == "timestamp") return row.timestamp_us = read_time(in), true;
          return false;
        },
        [this](Row& row) -> Result<void> {
          if (!row.unwanted) out_.ego_poses.push_back(row);
          return {};
        }));
    return index("ego_pose", out_.ego_poses, ego_poses_);
  }

  struct DataRow : SampleData {
    std::string_view sample_token, ego_pose_token, calibrated_token;
  };
  template <typename Done>
  Result<void> sample_data_rows(Done&& done) {
    return rows<DataRow>(
        "sample_data",
        {"token", "sample_token", "ego_pose_token", "calibrated_sensor_token", "timestamp", "filename", "is_key_frame"},
        [](JsonCursor& in, std::string_view key, DataRow& row, Seen& seen) {
          if (key == "token") return row.token = in.string(), seen |= 1, true;
          if (key == "sample_token") return row.sample_token = in.string(), seen |= 2, true;
          if (key == "ego_pose_token") return row.ego_pose_token = in.string(), seen |= 4, true;
          if (key == "calibrated_sensor_token") return row.calibrated_token = in.string(), seen |= 8, true;
          if (key == "timestamp") return row.timestamp_us = read_time(in), seen |= 16, true;
          if (key == "filename") return row.filename = in.string(), seen |= 32, true;
          if (key == "is_key_frame") return row.is_key_frame = in.boolean(), seen |= 64, true;
          if (key == "fileformat") return row.fileformat = in.string(), true;
          if (key == "width") return row.width = read_integer<uint16_t>(in), true;
          if (key == "height") return row.height = read_integer<uint16_t>(in), true;
          return false;
        },
        [this, &done](DataRow& row) -> Result<void> {
          if (detail_ == Detail::kKeyFrames && !row.is_key_frame) return {};
          STROBE_ASSIGN(row.sample,
                        resolve(out_.sample_index_, out_.samples, row.sample_token, "sample", last_sample_));
          STROBE_ASSIGN(row.calibrated_sensor,
                        resolve(calibrated_, out_.calibrated_sensors, row.calibrated_token, "calibrated_sensor"));
          last_sample_ = row.sample;
          return done(row);
        });
  }

  Result<void> all_sensor_data() {
    STROBE_TRY(ego_poses(nullptr));
    uint32_t guess = 0;
    STROBE_TRY(sample_data_rows([this, &guess](DataRow& row) -> Result<void> {
      STROBE_ASSIGN(row.ego_pose, resolve(ego_poses_, out_.ego_poses, row.ego_pose_token, "ego_pose", guess));
      guess = row.ego_pose + 1;
      return out_.sample_data.push_back(row), Result<void>();
    }));
    return index("sample_data", out_.sample_data, out_.sample_data_index_);
  }

  // Frames first, then the poses that they name.
  Result<void> key_sensor_data() {
    std::vector<std::string_view> tokens;
    STROBE_TRY(sample_data_rows([this, &tokens](DataRow& row) -> Result<void> {
      tokens.push_back(row.ego_pose_token);
      return out_.sample_data.push_back(row), Result<void>();
    }));
    STROBE_TRY(index("sample_data", out_.sample_data, out_.sample_data_index_));
    STROBE_TRY(ego_poses(&tokens));
    for (size_t i = 0; i < tokens.size(); ++i) {
      auto pose = resolve(ego_poses_, out_.ego_poses, tokens[i], "ego_pose");
      if (!pose)
        return at_table(std::move(pose).error().at(fmt::format("\"{}\"", out_.sample_data[i].token)), "sample_data");
      out_.sample_data[i].ego_pose = *pose;
    }
    return {};
  }

  // Rows of `table` by their sample, in the table's order.
  template <typename Row, typename Keep>
  void by_sample(const std::vector<Row>& table, std::vector<uint32_t>& starts, std::vector<uint32_t>& order,
                 Keep&& keep) {
    starts.assign(out_.samples.size() + 1, 0);
    for (const Row& row : table)
      if (keep(row)) ++starts[row.sample + 1];
    for (size_t i = 1; i < starts.size(); ++i) starts[i] += starts[i - 1];
    order.resize(starts.back());
    std::vector<uint32_t> next(starts.begin(), starts.end() - 1);
    for (uint32_t i = 0; i < table.size(); ++i)
      if (keep(table[i])) order[next[table[i].sample]++] = i;
  }

  void group() {
    by_sample(out_.annotations, out_.annotation_starts_, out_.annotations_by_sample_, [](const auto&) { return true; });
    by_sample(out_.sample_data, out_.key_data_starts_, out_.key_data_by_sample_,
              [](const SampleData& row) { return row.is_key_frame; });
  }

  NuScenes& out_;
  Detail detail_;
  TokenIndex logs_, sensors_, calibrated_, categories_, attributes_, visibilities_, scenes_, instances_, ego_poses_;
  std::vector<std::array<std::string_view, 2>> first_and_last_, instance_ends_;
  uint32_t last_sample_ = kNone;
};

Result<NuScenes> NuScenes::open(const std::filesystem::path& root, const std::string& version, Detail detail) {
  NuScenes out;
  out.root_ = root;
  out.version_ = version;
  std::error_code failed;
  if (!std::filesystem::is_directory(root, failed)) return not_found(root.string() + ": no such folder");
  if (version.empty()) {
    std::vector<std::string> found;
    for (const auto& entry : std::filesystem::directory_iterator(root, failed))
      if (entry.path().filename().string().starts_with("v1.0-") && entry.is_directory())
        found.push_back(entry.path().filename());
    std::ranges::sort(found);
    if (found.empty())
      return not_found(root.string() +
                       ": no folder v1.0-* with nuScenes' tables (v1.0-mini, v1.0-trainval, v1.0-test)");
    if (found.size() > 1)
      return usage_error(fmt::format("{}: holds {}; say which one by --version", root.string(), joined(found)));
    out.version_ = found.front();
  }
  STROBE_TRY(NuScenesLoader(out, detail).load());
  return out;
}

}  // namespace strobe::sensors
