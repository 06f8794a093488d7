#include "models/box_decoder.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>

namespace strobe::models {

namespace {

struct Span1d {
  float low, high;
};
// From the network's input to the picture, clipped to it.
Span1d to_picture(float centre, float size, float offset, float placed, int picture) {
  const auto limit = static_cast<float>(picture);
  const float scale = limit / placed;
  return {std::clamp((centre - size / 2 - offset) * scale, 0.0F, limit),
          std::clamp((centre + size / 2 - offset) * scale, 0.0F, limit)};
}

}  // namespace

std::optional<Detection> into_picture(const InputBox& box, const PicturePlacement& placement, int class_id,
                                      float score) {
  if (!(std::isfinite(box.centre_x) && std::isfinite(box.centre_y) && std::isfinite(box.width) &&
        std::isfinite(box.height)))
    return std::nullopt;
  const Span1d across = to_picture(box.centre_x, box.width, placement.x, placement.width, placement.picture_width);
  const Span1d down = to_picture(box.centre_y, box.height, placement.y, placement.height, placement.picture_height);
  if (!(across.high > across.low && down.high > down.low)) return std::nullopt;
  return Detection{class_id, score, across.low, down.low, across.high - across.low, down.high - down.low};
}

std::vector<Detection> non_maximum_suppression(std::vector<Detection> candidates, float iou_threshold) {
  std::erase_if(candidates, [](const Detection& d) { return std::isnan(d.score); });
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const Detection& a, const Detection& b) { return a.score > b.score; });
  std::vector<Detection> kept;
  std::unordered_map<int, std::vector<size_t>> kept_of_class;  // indices into kept
  for (const Detection& candidate : candidates) {
    std::vector<size_t>& rivals = kept_of_class[candidate.class_id];
    const bool beaten =
        std::any_of(rivals.begin(), rivals.end(), [&](size_t i) { return iou(kept[i], candidate) > iou_threshold; });
    if (beaten) continue;
    rivals.push_back(kept.size());
    kept.push_back(candidate);
  }
  return kept;
}

}  // namespace strobe::models
