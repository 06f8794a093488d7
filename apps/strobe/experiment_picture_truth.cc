#include "experiment_picture_truth.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/file.h"
#include "experiment_predictions.h"
#include "sensors/detection_boxes.h"
#include "sensors/picture_truth.h"

namespace strobe::app {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;
using namespace strobe::sensors;

namespace {

// In the order of the first results; delay_s of the last one.
struct Input {
  std::string token;
  double delay_s = 0;
};

std::vector<Input> read_inputs(const tenants::TenantSpec& tenant, const fs::path& path, const FrameDelays& delays) {
  std::vector<Input> inputs;
  std::map<std::string, size_t> rows;
  std::ifstream file(path);
  int64_t frame_before = -1;
  double period_s = 0;  // since the first picture of the batch
  for (std::string text; std::getline(file, text);) {
    const Json line = Json::parse(text, nullptr, false);
    if (!line.is_object() || line.value("model_type", "") != "image") continue;
    const int64_t frame = line.value("frame", int64_t{0});
    period_s = frame == frame_before ? period_s + 1 / tenant.rate_hz : 0;
    frame_before = frame;
    const std::string token = line.value("token", "");
    const auto [row, fresh] = rows.try_emplace(token, inputs.size());
    if (fresh) inputs.push_back({token, 0});
    if (const auto delay = delays.find({tenant.name, frame}); delay != delays.end())
      inputs[row->second].delay_s = std::max(0.0, delay->second - period_s);
  }
  return inputs;
}

// The picture of the same camera and scene that is nearest to the moment at which the result was there.
Result<uint32_t> offset_of(const NuScenes& database, uint32_t picture, double delay_s) {
  const nuscenes::SampleData& data = database.sample_data[picture];
  STROBE_ASSIGN(
      const std::vector<uint32_t> all,
      database.data_of(database.samples[data.sample].scene, {std::string(database.sensor_of(data).channel)}, true));
  const int64_t ready_us = data.timestamp_us + std::llround(1e6 * delay_s);
  return *std::ranges::min_element(
      all, {}, [&](uint32_t row) { return std::abs(database.sample_data[row].timestamp_us - ready_us); });
}

Json categories() {
  Json all = Json::array();
  for (const DetectionClass& known : kDetectionClassTable)
    if (is_picture_class(known.name))
      all.push_back({{"id", nuscenes_category(known.name)}, {"name", known.name}, {"supercategory", "object"}});
  return all;
}

}  // namespace

Result<void> write_picture_truth(const tenants::TenantSpec& tenant, const fs::path& predictions,
                                 const FrameDelays& delays, const fs::path& to) {
  if (tenant.source.kind != tenants::SourceSpec::Kind::kNuscenes) return {};
  const std::vector<Input> inputs = read_inputs(tenant, predictions, delays);
  if (inputs.empty()) return {};
  STROBE_ASSIGN(const NuScenes database, NuScenes::open(tenant.source.path));
  if (database.annotations.empty()) return {};
  Json images = Json::array(), annotations = Json::array();
  for (const Input& input : inputs) {
    const uint32_t picture = database.find_sample_data(input.token);
    if (picture == nuscenes::kNone) continue;
    STROBE_ASSIGN(const uint32_t offset, offset_of(database, picture, input.delay_s));
    const nuscenes::SampleData& data = database.sample_data[picture];
    const nuscenes::SampleData& then = database.sample_data[offset];
    for (const ShownBox& box : shown_boxes(database, picture, offset)) {
      const nuscenes::Annotation& annotation = database.annotations[box.annotation];
      const size_t cls = detection_class_of(database.category_of(annotation));
      if (cls == kDetectionClasses || !is_picture_class(kDetectionClassTable[cls].name)) continue;
      annotations.push_back({{"id", annotations.size() + 1},  // to COCO's tools 0 is none
                             {"image_id", input.token},
                             {"category_id", nuscenes_category(kDetectionClassTable[cls].name)},
                             {"bbox", {box.x, box.y, box.width, box.height}},
                             {"area", box.width * box.height},
                             {"iscrowd", 0},
                             {"instance_token", database.instances[annotation.instance].token}});
    }
    images.push_back({{"id", input.token},
                      {"file_name", then.filename},
                      {"width", data.width},
                      {"height", data.height},
                      {"offset_token", then.token}});
  }
  const Json content = {
      {"images", std::move(images)}, {"annotations", std::move(annotations)}, {"categories", categories()}};
  return write_file(to, content.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
}

}  // namespace strobe::app
