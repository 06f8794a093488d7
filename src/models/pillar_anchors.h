// The anchor boxes of PointPillars and SECOND (Yan et al. 2018): how their codes become boxes, and which of them answer
// for a labelled box.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "models/box3d.h"
#include "strobe/models/anchor_targets.h"

namespace strobe::models {

struct AnchorSize {
  float length = 0, width = 0, height = 0, z = 0;  // metres; z of the centre
  int class_id = 0;                                // of the boxes that it answers for
  float matched = 0.6F, unmatched = 0.45F;         // overlap from which it learns the box, below which nothing
};

// Two anchors a size, at 0 and 90 degrees, in the middle of every cell of the head's map.
struct AnchorRule {
  float low_x = 0, low_y = 0, cell_x = 0, cell_y = 0;  // metres
  int64_t columns = 0, rows = 0;
  std::vector<AnchorSize> sizes;
  int64_t classes = 0;
  int64_t code = 7;  // x, y, z, width, length, height, yaw; 9: and the velocity
  // Yaws are told apart by half turns that begin here: far from the headings of a street.
  float direction_offset = 0.78539816F;
  int64_t anchors() const { return 2 * static_cast<int64_t>(sizes.size()); }  // of a cell
  int64_t count() const { return rows * columns * anchors(); }
};
// Anchor (row, column, size, turned) has the index ((size * 2 + turned) * rows + row) * columns + column: the place of
// its numbers in a map of the head.
Box3d anchor_box(const AnchorRule& rule, int64_t index);

// x, y over the anchor's diagonal; z over its height; logarithms of width, length, height ratios; yaw; vx, vy.
void encode_box(const Box3d& box, const Box3d& anchor, std::span<float> code);
Box3d decode_box(std::span<const float> code, const Box3d& anchor);
// 0 or 1: the half turn that the yaw lies in.
int direction_of(float yaw, float offset);

// A head's maps: classes (anchors * classes channels), codes (anchors * code), directions (anchors * 2).
struct AnchorMaps {
  const float *classes = nullptr, *codes = nullptr, *directions = nullptr;
};
struct AnchorDecoding {
  float score_threshold = 0.1F;
  float nms_iou = 0.01F;  // overlaps beyond are one object: seen from above, two do not share a place
  size_t most_before_nms = 1000, most = 300;
};
// Scores are the logistic of a class's number; the best before NMS, the rotated NMS by class, best first.
// candidates: memory that is reused.
std::vector<Box3d> decode_anchors(const AnchorRule& rule, const AnchorMaps& maps, const AnchorDecoding& how,
                                  std::vector<Box3d>& candidates);

// An anchor learns the box of its class that it overlaps most, if by `matched`; besides, every box gets the anchors
// that overlap it most, if at all. Boxes whose centre is off the map get none.
AnchorTargets assign_anchors(const AnchorRule& rule, std::span<const Box3d> boxes);

}  // namespace strobe::models
