#include "models/pillar_anchors.h"

#include <algorithm>
#include <numbers>

#include "models/centre_peaks.h"
#include "models/nms3d.h"
#include "models/rotated_iou.h"

namespace strobe::models {
namespace {

constexpr float kPi = std::numbers::pi_v<float>;

struct Candidate {
  float logit;
  int32_t anchor, class_id;
};

// Cells around a box whose anchors of one size can overlap it.
struct Window {
  int64_t first_row, last_row, first_column, last_column;
};
Window window_of(const AnchorRule& rule, const Box3d& box, const AnchorSize& size) {
  const float reach = 0.5F * (std::max(box.length, box.width) + std::max(size.length, size.width));
  const auto cell = [](float at, float low, float side, int64_t count) {
    return static_cast<int64_t>(std::clamp((at - low) / side, 0.0F, static_cast<float>(count - 1)));
  };
  return {cell(box.y - reach, rule.low_y, rule.cell_y, rule.rows),
          cell(box.y + reach, rule.low_y, rule.cell_y, rule.rows),
          cell(box.x - reach, rule.low_x, rule.cell_x, rule.columns),
          cell(box.x + reach, rule.low_x, rule.cell_x, rule.columns)};
}

bool on_map(const AnchorRule& rule, const Box3d& box) {
  const float column = (box.x - rule.low_x) / rule.cell_x, row = (box.y - rule.low_y) / rule.cell_y;
  return column >= 0 && row >= 0 && column < static_cast<float>(rule.columns) && row < static_cast<float>(rule.rows);
}

// Calls action(anchor, overlap) for the anchors of a box's class that overlap it.
template <typename Action>
void each_overlap(const AnchorRule& rule, const Box3d& box, Action action) {
  for (size_t s = 0; s < rule.sizes.size(); ++s) {
    if (rule.sizes[s].class_id != box.class_id) continue;
    const Window window = window_of(rule, box, rule.sizes[s]);
    for (int64_t turned = 0; turned < 2; ++turned) {
      for (int64_t row = window.first_row; row <= window.last_row; ++row) {
        for (int64_t column = window.first_column; column <= window.last_column; ++column) {
          const int64_t index = ((2 * static_cast<int64_t>(s) + turned) * rule.rows + row) * rule.columns + column;
          const float overlap = nearest_bev_iou(anchor_box(rule, index), box);
          if (overlap > 0) action(index, overlap, rule.sizes[s]);
        }
      }
    }
  }
}

}  // namespace

Box3d anchor_box(const AnchorRule& rule, int64_t index) {
  const int64_t cells = rule.rows * rule.columns, kind = index / cells, cell = index % cells;
  const AnchorSize& size = rule.sizes[static_cast<size_t>(kind / 2)];
  Box3d box;
  box.x = rule.low_x + (static_cast<float>(cell % rule.columns) + 0.5F) * rule.cell_x;
  box.y = rule.low_y + (static_cast<float>(cell / rule.columns) + 0.5F) * rule.cell_y;
  box.z = size.z;
  box.length = size.length;
  box.width = size.width;
  box.height = size.height;
  box.yaw = kind % 2 == 0 ? 0 : kPi / 2;
  box.class_id = size.class_id;
  return box;
}

void encode_box(const Box3d& box, const Box3d& anchor, std::span<float> code) {
  const float diagonal = std::hypot(anchor.length, anchor.width);
  code[0] = (box.x - anchor.x) / diagonal;
  code[1] = (box.y - anchor.y) / diagonal;
  code[2] = (box.z - anchor.z) / anchor.height;
  code[3] = std::log(box.width / anchor.width);
  code[4] = std::log(box.length / anchor.length);
  code[5] = std::log(box.height / anchor.height);
  code[6] = box.yaw - anchor.yaw;
  if (code.size() < 9) return;
  code[7] = box.vx;
  code[8] = box.vy;
}

Box3d decode_box(std::span<const float> code, const Box3d& anchor) {
  static constexpr float kLargestExponent = 5;  // 150 anchors: no street has such a thing, and the numbers stay finite
  const auto grown = [](float side, float exponent) { return side * std::exp(std::min(exponent, kLargestExponent)); };
  const float diagonal = std::hypot(anchor.length, anchor.width);
  Box3d box = anchor;
  box.x += code[0] * diagonal;
  box.y += code[1] * diagonal;
  box.z += code[2] * anchor.height;
  box.width = grown(anchor.width, code[3]);
  box.length = grown(anchor.length, code[4]);
  box.height = grown(anchor.height, code[5]);
  box.yaw += code[6];
  if (code.size() >= 9) {
    box.vx = code[7];
    box.vy = code[8];
  }
  return box;
}

int direction_of(float yaw, float offset) {
  return wrap_angle(yaw - offset, 0, 2 * kPi) >= kPi ? 1 : 0;
}

std::vector<Box3d> decode_anchors(const AnchorRule& rule, const AnchorMaps& maps, const AnchorDecoding& how,
                                  std::vector<Box3d>& candidates) {
  const int64_t cells = rule.rows * rule.columns;
  const float least = logit_of(how.score_threshold);
  std::vector<Candidate> found;
  for (int64_t channel = 0; channel < rule.anchors() * rule.classes; ++channel) {
    const auto class_id = static_cast<int32_t>(channel % rule.classes);
    const int64_t first = channel / rule.classes * cells;
    each_above({maps.classes + channel * cells, static_cast<size_t>(cells)}, least, [&](int64_t cell, float logit) {
      found.push_back({logit, static_cast<int32_t>(first + cell), class_id});
    });
  }
  const auto better = [](const Candidate& a, const Candidate& b) {
    return a.logit != b.logit ? a.logit > b.logit : a.anchor < b.anchor;
  };
  const size_t kept = std::min(found.size(), how.most_before_nms);
  std::partial_sort(found.begin(), found.begin() + static_cast<std::ptrdiff_t>(kept), found.end(), better);
  candidates.clear();
  float code[9];
  for (size_t i = 0; i < kept; ++i) {
    const int64_t kind = found[i].anchor / cells, cell = found[i].anchor % cells;
    for (int64_t k = 0; k < rule.code; ++k) code[k] = maps.codes[(kind * rule.code + k) * cells + cell];
    Box3d box = decode_box({code, static_cast<size_t>(rule.code)}, anchor_box(rule, found[i].anchor));
    const float* direction = maps.directions + 2 * kind * cells + cell;
    const float half = direction[cells] > direction[0] ? kPi : 0;
    box.yaw = wrap_angle(wrap_angle(box.yaw - rule.direction_offset, 0, kPi) + rule.direction_offset + half);
    box.class_id = found[i].class_id;
    box.score = logistic(found[i].logit);
    if (std::isfinite(box.x + box.y + box.z + box.yaw + box.length + box.width + box.height)) candidates.push_back(box);
  }
  std::vector<Box3d> boxes;
  for (const int32_t at : rotated_nms(candidates, how.nms_iou, false, how.most))
    boxes.push_back(candidates[static_cast<size_t>(at)]);
  return boxes;
}

AnchorTargets assign_anchors(const AnchorRule& rule, std::span<const Box3d> boxes) {
  const auto count = static_cast<size_t>(rule.count());
  AnchorTargets targets;
  targets.label.assign(count, 0);
  std::vector<float> overlap_of(count, 0);
  std::vector<int32_t> box_of(count, -1);
  const auto usable = [&](const Box3d& box) { return on_map(rule, box); };
  for (size_t i = 0; i < boxes.size(); ++i) {
    if (!usable(boxes[i])) continue;
    each_overlap(rule, boxes[i], [&](int64_t index, float overlap, const AnchorSize& size) {
      const auto at = static_cast<size_t>(index);
      if (overlap <= overlap_of[at]) return;
      overlap_of[at] = overlap;
      box_of[at] = overlap >= size.matched ? static_cast<int32_t>(i) : -1;
      targets.label[at] = static_cast<int8_t>(overlap >= size.matched     ? 1 + size.class_id
                                              : overlap >= size.unmatched ? -1
                                                                          : 0);
    });
  }
  for (size_t i = 0; i < boxes.size(); ++i) {
    if (!usable(boxes[i])) continue;
    float best = 0;
    each_overlap(rule, boxes[i], [&](int64_t, float overlap, const AnchorSize&) { best = std::max(best, overlap); });
    each_overlap(rule, boxes[i], [&](int64_t index, float overlap, const AnchorSize& size) {
      if (overlap < best) return;
      box_of[static_cast<size_t>(index)] = static_cast<int32_t>(i);
      targets.label[static_cast<size_t>(index)] = static_cast<int8_t>(1 + size.class_id);
    });
  }
  for (size_t at = 0; at < count; ++at) {
    if (targets.label[at] <= 0) continue;
    const Box3d& box = boxes[static_cast<size_t>(box_of[at])];
    targets.positives.push_back(static_cast<int32_t>(at));
    targets.codes.resize(targets.codes.size() + static_cast<size_t>(rule.code));
    const std::span<float> code(targets.codes.end() - rule.code, targets.codes.end());
    encode_box(box, anchor_box(rule, static_cast<int64_t>(at)), code);
    targets.directions.push_back(static_cast<int8_t>(direction_of(box.yaw, rule.direction_offset)));
  }
  return targets;
}

}  // namespace strobe::models
