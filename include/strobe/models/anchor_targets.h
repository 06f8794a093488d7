// What the anchors of one LiDAR sweep learn; made by models/pillar_anchors.h, taken by a trainer.
#pragma once

#include <cstdint>
#include <vector>

namespace strobe::models {

// An anchor's index is its place in the head's maps: (kind * rows + row) * columns + column.
struct AnchorTargets {
  std::vector<int8_t> label;       // by anchor: -1 learns nothing, 0 that there is no object, 1 + class
  std::vector<int32_t> positives;  // indices of the anchors that learn a box
  std::vector<float> codes;        // of each positive: as many numbers as the head has a box
  std::vector<int8_t> directions;  // of each positive: 0 or 1
};

}  // namespace strobe::models
