#include "models/lidar_kitti.h"

#include <fmt/format.h>

#include <charconv>
#include <map>
#include <span>

namespace strobe::models {
namespace {

constexpr size_t kMaxLines = 100'000;

std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  constexpr std::string_view kSpace = " \t\r";
  for (size_t at = line.find_first_not_of(kSpace); at != std::string_view::npos;) {
    const size_t end = std::min(line.find_first_of(kSpace, at), line.size());
    words.push_back(line.substr(at, end - at));
    at = line.find_first_not_of(kSpace, end);
  }
  return words;
}

Result<float> number(std::string_view word) {
  float value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc() || end != word.data() + word.size() || !std::isfinite(value))
    return bad_data(fmt::format("'{}' is no number", word.substr(0, 40)));
  return value;
}

// Calls take(words) for every line that is not empty.
template <typename Take>
Result<void> each_line(std::string_view text, Take take) {
  size_t count = 0;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    const auto words = words_of(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (++count > kMaxLines) return bad_data(fmt::format("more than {} lines", kMaxLines));
    if (words.empty()) continue;
    auto taken = take(words);
    if (!taken) return std::move(taken).error().at(fmt::format("line {}", count));
  }
  return {};
}

Result<KittiLabel> label_of(const std::vector<std::string_view>& words) {
  if (words.size() != 15 && words.size() != 16)
    return bad_data(fmt::format("expected 15 words (a score: 16), found {}", words.size()));
  float values[15] = {};
  for (size_t i = 1; i < words.size(); ++i) {
    STROBE_ASSIGN(values[i - 1], number(words[i]));
  }
  KittiLabel label;
  label.type = words[0];
  label.truncated = values[0];
  if (!(std::abs(values[1]) <= 100)) return bad_data(fmt::format("an occlusion of '{}': expected -1 to 3", words[2]));
  label.occluded = static_cast<int>(values[1]);
  label.alpha = values[2];
  std::copy(values + 3, values + 7, label.box);
  label.height = values[7];
  label.width = values[8];
  label.length = values[9];
  label.x = values[10];
  label.y = values[11];
  label.z = values[12];
  label.rotation_y = values[13];
  label.score = values[14];
  if (label.type != "DontCare" && !(label.height > 0 && label.width > 0 && label.length > 0))
    return bad_data("a box has a side that is not positive");
  return label;
}

using Vector = std::array<float, 3>;

// The transpose of a rotation, times a vector.
template <size_t kRowLength>
Vector turned_back(std::span<const float> matrix, const Vector& v) {
  Vector out{};
  for (size_t column = 0; column < 3; ++column)
    for (size_t row = 0; row < 3; ++row) out[column] += matrix[row * kRowLength + column] * v[row];
  return out;
}

}  // namespace

Result<std::vector<KittiLabel>> parse_kitti_labels(std::string_view text) {
  std::vector<KittiLabel> labels;
  STROBE_TRY(each_line(text, [&](const std::vector<std::string_view>& words) -> Result<void> {
    STROBE_ASSIGN(KittiLabel label, label_of(words));
    labels.push_back(std::move(label));
    return {};
  }));
  return labels;
}

Result<KittiCalibration> parse_kitti_calibration(std::string_view text) {
  KittiCalibration calibration;
  std::map<std::string_view, std::span<float>> wanted = {
      {"P2:", calibration.p2}, {"R0_rect:", calibration.r0_rect}, {"Tr_velo_to_cam:", calibration.velodyne_to_camera}};
  STROBE_TRY(each_line(text, [&](const std::vector<std::string_view>& words) -> Result<void> {
    const auto found = wanted.find(words[0]);
    if (found == wanted.end()) return {};
    if (words.size() != found->second.size() + 1)
      return bad_data(fmt::format("{} has {} numbers, expected {}", words[0], words.size() - 1, found->second.size()));
    for (size_t i = 1; i < words.size(); ++i) {
      STROBE_ASSIGN(found->second[i - 1], number(words[i]));
    }
    wanted.erase(found);
    return {};
  }));
  if (!wanted.empty()) return bad_data(fmt::format("no line '{}'", wanted.begin()->first));
  // What is not a rotation cannot be turned back by its transpose.
  const auto is_rotation = [](std::span<const float> m, size_t row_length) {
    for (size_t a = 0; a < 3; ++a) {
      for (size_t b = 0; b < 3; ++b) {
        float dot = 0;
        for (size_t k = 0; k < 3; ++k) dot += m[a * row_length + k] * m[b * row_length + k];
        if (!(std::abs(dot - (a == b ? 1.0F : 0.0F)) < 1e-2F)) return false;
      }
    }
    return true;
  };
  if (!is_rotation(calibration.r0_rect, 3)) return bad_data("R0_rect is no rotation");
  if (!is_rotation(calibration.velodyne_to_camera, 4)) return bad_data("Tr_velo_to_cam has no rotation");
  return calibration;
}

Box3d lidar_box(const KittiLabel& label, const KittiCalibration& calibration) {
  const auto& to_camera = calibration.velodyne_to_camera;
  const auto to_lidar = [&](const Vector& rectified, bool is_point) {
    Vector camera = turned_back<3>(calibration.r0_rect, rectified);
    for (size_t i = 0; is_point && i < 3; ++i) camera[i] -= to_camera[i * 4 + 3];
    return turned_back<4>(to_camera, camera);
  };
  const Vector centre = to_lidar({label.x, label.y - 0.5F * label.height, label.z}, true);
  const Vector heading = to_lidar({std::cos(label.rotation_y), 0, -std::sin(label.rotation_y)}, false);
  Box3d box;
  box.x = centre[0];
  box.y = centre[1];
  box.z = centre[2];
  box.length = label.length;
  box.width = label.width;
  box.height = label.height;
  box.yaw = std::atan2(heading[1], heading[0]);
  return box;
}

}  // namespace strobe::models
