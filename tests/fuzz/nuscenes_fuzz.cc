// Links: strobe_sensors
// The first byte chooses one of the tables of a small database, or the result file; the rest is its text. What opens is
// asked everything.
#include <unistd.h>

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "sensors/detection_metrics_input.h"
#include "sensors/nuscenes.h"
#include "sensors/nuscenes_stream.h"

namespace {

using namespace strobe::sensors;

struct Table {
  const char* name;
  const char* text;
};
constexpr Table kTables[] = {
    {"log", R"([{"token":"log","logfile":"l"}])"},
    {"map", R"([{"token":"map","log_tokens":["log"]}])"},
    {"sensor", R"([{"token":"sensor","channel":"LIDAR_TOP","modality":"lidar"}])"},
    {"calibrated_sensor",
     R"([{"token":"cal","sensor_token":"sensor","translation":[1,2,3],"rotation":[1,0,0,0],"camera_intrinsic":[]}])"},
    {"category", R"([{"token":"car","name":"vehicle.car"}])"},
    {"attribute", R"([{"token":"moving","name":"vehicle.moving"}])"},
    {"visibility", R"([{"token":"1","level":"v0-40"}])"},
    {"scene", R"([{"token":"scene","name":"s","log_token":"log","first_sample_token":"s0","last_sample_token":"s0"}])"},
    {"sample", R"([{"token":"s0","timestamp":1000000,"scene_token":"scene","prev":"","next":""}])"},
    {"instance", R"([{"token":"i","category_token":"car","first_annotation_token":"a","last_annotation_token":"a"}])"},
    {"ego_pose", R"([{"token":"e","timestamp":1000000,"translation":[10,20,0],"rotation":[1,0,0,0]}])"},
    {"sample_data",
     R"([{"token":"d","sample_token":"s0","ego_pose_token":"e","calibrated_sensor_token":"cal","timestamp":1000000,)"
     R"("filename":"f","is_key_frame":true}])"},
    {"sample_annotation",
     R"([{"token":"a","sample_token":"s0","instance_token":"i","visibility_token":"1","attribute_tokens":["moving"],)"
     R"("translation":[11,21,0],"size":[2,4,1.5],"rotation":[1,0,0,0],"prev":"","next":"","num_lidar_pts":3}])"},
    {"results",
     R"({"results":{"s0":[{"sample_token":"s0","translation":[11,21,0],"size":[2,4,1.5],"rotation":[1,0,0,0],)"
     R"("velocity":[1,0],"detection_name":"car","detection_score":0.5,"attribute_name":"vehicle.moving"}]}})"}};

class Folder {
 public:
  Folder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "strobe-fuzz-XXXXXX").string();
    root_ = ::mkdtemp(pattern.data());
    std::filesystem::create_directories(root_ / "v1.0-mini");
    for (const Table& table : kTables) write(table.name, table.text);
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(root_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  void write(const std::string& name, std::string_view text) const { std::ofstream(file(name)) << text; }
  std::filesystem::path file(const std::string& name) const { return root_ / "v1.0-mini" / (name + ".json"); }
  const std::filesystem::path& root() const { return root_; }

 private:
  std::filesystem::path root_;
};

void check_line(const strobe::Error& error) {
  if (error.to_string().find('\n') != std::string::npos) std::abort();
}

void ask(const NuScenes& database, const std::filesystem::path& results) {
  for (uint32_t i = 0; i < database.annotations.size(); ++i) (void)database.velocity(i);
  for (const auto& data : database.sample_data) (void)database.boxes_at(data);
  for (uint32_t scene = 0; scene < database.scenes.size(); ++scene) {
    (void)database.boxes_at(scene, 1'000'000);
    StreamOptions options;
    options.scene = database.scenes[scene].token;
    auto stream = NuScenesStream::open(database, options);
    if (!stream) continue;
    StreamMessage message;
    for (auto more = stream->next(message); more && *more; more = stream->next(message)) continue;
  }
  const auto input = read_detection_input(results, database, "");
  if (!input) return check_line(input.error());
  const auto metrics = detection_metrics(input->truths, input->predictions, database.samples.size());
  if (metrics && !(metrics->mean_ap >= 0 && metrics->mean_ap <= 1)) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const Folder folder;
  if (size == 0) return 0;
  const Table& table = kTables[data[0] % std::size(kTables)];
  folder.write(table.name, {reinterpret_cast<const char*>(data + 1), size - 1});
  for (const auto detail : {nuscenes::Detail::kAll, nuscenes::Detail::kKeyFrames}) {
    const auto database = NuScenes::open(folder.root(), "", detail);
    if (database) {
      ask(*database, folder.file("results"));
    } else {
      check_line(database.error());
    }
  }
  folder.write(table.name, table.text);
  return 0;
}
