#include "sensors/detection_boxes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <vector>

#include "base/suggest.h"

namespace strobe::sensors {

namespace {

constexpr std::string_view kAttributes[] = {"",
                                            "pedestrian.moving",
                                            "pedestrian.sitting_lying_down",
                                            "pedestrian.standing",
                                            "cycle.with_rider",
                                            "cycle.without_rider",
                                            "vehicle.moving",
                                            "vehicle.parked",
                                            "vehicle.stopped"};

template <typename Names>
size_t place_of(std::string_view name, const Names& names) {
  size_t i = 0;
  while (i < std::size(names) && names[i] != name) ++i;
  return i;
}

size_t class_named(std::string_view name) {
  size_t i = 0;
  while (i < kDetectionClasses && kDetectionClassTable[i].name != name) ++i;
  return i;
}

}  // namespace

size_t detection_class_of(std::string_view category) {
  static const std::map<std::string_view, std::string_view> classes = {
      {"movable_object.barrier", "barrier"},
      {"vehicle.bicycle", "bicycle"},
      {"vehicle.bus.bendy", "bus"},
      {"vehicle.bus.rigid", "bus"},
      {"vehicle.car", "car"},
      {"vehicle.construction", "construction_vehicle"},
      {"vehicle.motorcycle", "motorcycle"},
      {"human.pedestrian.adult", "pedestrian"},
      {"human.pedestrian.child", "pedestrian"},
      {"human.pedestrian.construction_worker", "pedestrian"},
      {"human.pedestrian.police_officer", "pedestrian"},
      {"movable_object.trafficcone", "traffic_cone"},
      {"vehicle.trailer", "trailer"},
      {"vehicle.truck", "truck"}};
  const auto found = classes.find(category);
  return found == classes.end() ? kDetectionClasses : class_named(found->second);
}

uint8_t detection_attribute_of(std::string_view name) {
  return static_cast<uint8_t>(place_of(name, kAttributes));
}

bool passes_filters(const DetectionBox& box, double z, int64_t points, const DetectionPlace& facts,
                    FilterCounts& counts) {
  ++counts.boxes;
  const double dx = box.x - facts.ego_x, dy = box.y - facts.ego_y;
  if (!(std::sqrt(dx * dx + dy * dy) < kDetectionClassTable[box.cls].range)) return false;
  ++counts.in_range;
  if (points == 0) return false;
  ++counts.with_points;
  const std::string_view name = kDetectionClassTable[box.cls].name;
  if ((name == "bicycle" || name == "motorcycle") && std::ranges::any_of(facts.racks, [&](const Box& rack) {
        return rack.contains({box.x, box.y, z});
      }))
    return false;
  ++counts.kept;
  return true;
}

void read_detection_box(JsonCursor& in, std::string_view token, DetectionBox& box, double& z, int64_t& points) {
  enum : uint8_t { kSample = 1, kPlace = 2, kSize = 4, kRotation = 8, kVelocity = 16, kName = 32, kAttribute = 64 };
  static constexpr std::string_view kFields[] = {"sample_token", "translation",    "size",          "rotation",
                                                 "velocity",     "detection_name", "attribute_name"};
  box.score = -1;
  double place[3] = {}, size[3] = {}, turn[4] = {}, velocity[2] = {};
  uint8_t fields = 0;
  std::string_view key;
  in.begin_object();
  while (in.next_member(key)) {
    if (key == "sample_token") {
      fields |= kSample;
      if (const std::string_view named = in.string(); in.ok() && named != token)
        in.fault(fmt::format("a box of sample \"{}\" stands under \"{}\"", named, token));
    } else if (key == "translation") {
      fields |= kPlace;
      in.numbers(place);
    } else if (key == "size") {
      fields |= kSize;
      in.numbers(size);
    } else if (key == "rotation") {
      fields |= kRotation;
      in.numbers(turn);
    } else if (key == "velocity") {
      fields |= kVelocity;
      in.numbers(velocity);
    } else if (key == "detection_name") {
      fields |= kName;
      const std::string_view name = in.string();
      const size_t cls = class_named(name);
      if (in.ok() && cls == kDetectionClasses) {
        std::vector<std::string> names;
        for (const DetectionClass& known : kDetectionClassTable) names.emplace_back(known.name);
        return in.fault(fmt::format("detection_name \"{}\" is none of {}", name, joined(names)));
      }
      box.cls = static_cast<uint8_t>(cls);
    } else if (key == "attribute_name") {
      fields |= kAttribute;
      const std::string_view name = in.string();
      const size_t attribute = place_of(name, kAttributes);
      if (in.ok() && attribute == std::size(kAttributes))
        return in.fault(fmt::format("attribute_name \"{}\" is none of nuScenes' eight", name));
      box.attribute = static_cast<uint8_t>(attribute);
    } else if (key == "detection_score") {
      box.score = in.number();
    } else if (key == "num_pts") {
      points = static_cast<int64_t>(std::clamp(in.number(), -1.0, 1e9));
    } else {
      in.skip();
    }
  }
  if (!in.ok()) return;
  for (size_t i = 0; i < std::size(kFields); ++i)
    if ((fields & (1U << i)) == 0) return in.fault(fmt::format("a box without \"{}\"", kFields[i]));
  const auto is_nan = [](double v) { return std::isnan(v); };
  if (std::ranges::any_of(place, is_nan) || std::ranges::any_of(size, is_nan) || std::ranges::any_of(turn, is_nan) ||
      std::isnan(box.score))
    return in.fault("a box with a NaN in its translation, size, rotation or score");
  box.x = place[0], box.y = place[1];
  box.width = size[0], box.length = size[1], box.height = size[2];
  box.vx = velocity[0], box.vy = velocity[1];
  z = place[2];
  box.yaw = Quaternion{turn[0], turn[1], turn[2], turn[3]}.yaw();
}

}  // namespace strobe::sensors
