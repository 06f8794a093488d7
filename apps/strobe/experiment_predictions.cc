#include "experiment_predictions.h"

#include <fmt/format.h>
#include <unordered_map>
#include <vector>

#include <algorithm>
#include <array>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "base/file.h"

namespace strobe::app {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

namespace {

// nuScenes' detection classes, numbered from 1 in this order.
constexpr std::array<std::string_view, 10> kNuscenesClasses = {
    "car",        "truck",      "bus",     "trailer",      "construction_vehicle",
    "pedestrian", "motorcycle", "bicycle", "traffic_cone", "barrier"};
// COCO's names of what nuScenes has, too.
constexpr std::array<std::pair<std::string_view, std::string_view>, 6> kFromCoco = {{{"car", "car"},
                                                                                     {"truck", "truck"},
                                                                                     {"bus", "bus"},
                                                                                     {"bicycle", "bicycle"},
                                                                                     {"motorcycle", "motorcycle"},
                                                                                     {"person", "pedestrian"}}};

// Of an input that is repeated the last answer counts, here and in space.
void put_picture_boxes(const Json& line, Json& list) {
  list = Json::array();
  for (const Json& box : line.value("picture_boxes", Json::array())) {
    const int category = nuscenes_category(box.value("label", ""));
    if (category == 0) continue;
    list.push_back({{"image_id", line.value("token", "")},
                    {"category_id", category},
                    {"bbox", {box.value("x", 0.0), box.value("y", 0.0), box.value("w", 0.0), box.value("h", 0.0)}},
                    {"score", box.value("score", 0.0)}});
  }
}

void add_space_boxes(const Json& line, Json& results) {
  const std::string token = line.value("token", "");
  Json& boxes = results[token];
  boxes = Json::array();
  for (const Json& box : line.value("space_boxes", Json::array()))
    boxes.push_back({{"sample_token", token},
                     {"translation", box["translation"]},
                     {"size", box["size"]},
                     {"rotation", box["rotation"]},
                     {"velocity", box["velocity"]},
                     {"detection_name", box["label"]},
                     {"detection_score", box["score"]},
                     {"attribute_name", ""}});
}

struct Predictions {
  std::string type;
  Json pictures = Json::array(), space = Json::object();
};

Predictions read_predictions(const fs::path& path) {
  Predictions all;
  std::vector<Json> pictures;
  std::unordered_map<std::string, size_t> of_token;
  std::ifstream file(path);
  for (std::string text; std::getline(file, text);) {
    const Json line = Json::parse(text, nullptr, false);
    if (!line.is_object()) continue;
    all.type = line.value("model_type", "");
    const auto [row, fresh] = of_token.try_emplace(line.value("token", ""), pictures.size());
    if (fresh) pictures.emplace_back();
    put_picture_boxes(line, pictures[row->second]);
    if (all.type != "image") add_space_boxes(line, all.space);
  }
  for (const Json& boxes : pictures) all.pictures.insert(all.pictures.end(), boxes.begin(), boxes.end());
  return all;
}

}  // namespace

int nuscenes_category(std::string_view label) {
  for (const auto& [coco, nuscenes] : kFromCoco)
    if (label == coco) label = nuscenes;
  for (size_t i = 0; i < kNuscenesClasses.size(); ++i)
    if (kNuscenesClasses[i] == label) return static_cast<int>(i) + 1;
  return 0;
}

bool is_picture_class(std::string_view nuscenes_name) {
  return std::ranges::any_of(kFromCoco, [&](const auto& both) { return both.second == nuscenes_name; });
}

Result<void> merge_predictions(const tenants::Cell& cell, const FrameDelays& delays, const fs::path& from,
                               const fs::path& to) {
  int of_space = 0, of_pictures = 0;
  for (const tenants::TenantSpec& tenant : cell.spec.tenants) {
    Predictions all = read_predictions(from / (tenant.name + ".jsonl"));
    if (all.type.empty()) continue;
    const bool in_space = all.type != "image";
    int& earlier = in_space ? of_space : of_pictures;
    const std::string suffix = earlier++ == 0 ? "" : "_" + tenant.name;
    const fs::path path = to / fmt::format("{}_pred_{}{}.json", in_space ? "lidar" : "image", cell.index, suffix);
    const Json content = in_space ? Json{{"meta",
                                          {{"use_camera", all.type == "multi-modal"},
                                           {"use_lidar", true},
                                           {"use_radar", false},
                                           {"use_map", false},
                                           {"use_external", false}}},
                                         {"results", std::move(all.space)}}
                                  : std::move(all.pictures);
    STROBE_TRY(write_file(path, content.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n"));
    if (!in_space)
      STROBE_TRY(write_picture_truth(tenant, from / (tenant.name + ".jsonl"), delays,
                                     to / fmt::format("image_gt_{}{}.json", cell.index, suffix)));
  }
  return {};
}

}  // namespace strobe::app
