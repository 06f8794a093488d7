#include "report/lidar_scene.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "report/packing.h"

namespace strobe::report {

using nlohmann::ordered_json;

namespace {

constexpr float kCentimetres = 100;

// Three digits: millimetres and mrad.
double rounded(float value) {
  return std::isfinite(value) ? std::round(static_cast<double>(value) * 1000) / 1000 : 0;
}

ordered_json boxes_json(const std::vector<SceneBox>& boxes) {
  ordered_json all = ordered_json::array();
  for (const SceneBox& box : boxes)
    all.push_back({rounded(box.x), rounded(box.y), rounded(box.z), rounded(box.length), rounded(box.width),
                   rounded(box.height), rounded(box.yaw), box.label, rounded(box.score)});
  return all;
}

ordered_json frame_json(const PointFrame& frame) {
  const size_t count = frame.points.size() / 4;
  std::string places, intensity;
  places.reserve(6 * count);
  intensity.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    for (size_t axis = 0; axis < 3; ++axis) {
      const float value = frame.points[4 * i + axis] * kCentimetres;
      const auto centimetres =
          static_cast<int16_t>(std::isfinite(value) ? std::clamp(std::round(value), -32767.0F, 32767.0F) : 0.0F);
      const auto bits = static_cast<uint16_t>(centimetres);
      places += static_cast<char>(bits & 255);
      places += static_cast<char>(bits >> 8);
    }
    const float bright = frame.points[4 * i + 3];
    intensity += static_cast<char>(
        static_cast<uint8_t>(std::isfinite(bright) ? std::clamp(std::round(bright * 255), 0.0F, 255.0F) : 0.0F));
  }
  return {{"token", frame.token},           {"n", count},
          {"before", frame.points_before},  {"places", base64(places)},
          {"intensity", base64(intensity)}, {"truth", boxes_json(frame.truth)}};
}

}  // namespace

std::vector<float> sampled_rows(std::span<const float> values, size_t columns, size_t most, uint64_t seed) {
  const size_t count = values.size() / columns;
  std::vector<float> out;
  out.reserve(std::min(count, most) * columns);
  uint64_t state = seed;
  size_t wanted = std::min(count, most);
  for (size_t row = 0; row < count && wanted > 0; ++row) {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    const double chance = static_cast<double>(state >> 11) / 9007199254740992.0;
    if (chance * static_cast<double>(count - row) >= static_cast<double>(wanted)) continue;
    --wanted;
    const auto first = values.begin() + static_cast<std::ptrdiff_t>(row * columns);
    out.insert(out.end(), first, first + static_cast<std::ptrdiff_t>(columns));
  }
  return out;
}

ordered_json streams_json(std::span<const PointStream> streams) {
  ordered_json all = ordered_json::array();
  for (const PointStream& stream : streams) {
    ordered_json frames = ordered_json::array();
    for (const PointFrame& frame : stream.frames) frames.push_back(frame_json(frame));
    all.push_back({{"name", stream.name},
                   {"notes", stream.notes},
                   {"has_truth", stream.has_truth},
                   {"frames", std::move(frames)}});
  }
  return all;
}

ordered_json scenes_json(std::span<const LidarScene> scenes) {
  ordered_json all = ordered_json::array();
  for (const LidarScene& scene : scenes) {
    ordered_json predicted = ordered_json::array();
    for (const auto& boxes : scene.predicted) predicted.push_back(boxes_json(boxes));
    all.push_back({{"run", scene.run},
                   {"tenant", scene.tenant},
                   {"model", scene.model},
                   {"stream", scene.stream},
                   {"predicted", std::move(predicted)}});
  }
  return all;
}

}  // namespace strobe::report
