// Non-maximum suppression of boxes in a vehicle's frame: greedy, the best score first, equal scores in their order.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "models/box3d.h"

namespace strobe::models {

// The positions of the boxes that stay, best first, at most `most` (0: no limit). Candidates are compared with all
// boxes that stayed: distances vectorised, polygons clipped only where the circles around two boxes meet. A box goes
// when its overlap seen from above with a better one of its class is more than `iou`; any_class: of any.
std::vector<int32_t> rotated_nms(std::span<const Box3d> boxes, float iou, bool any_class = false, size_t most = 0);
// A box goes when its centre is nearer than radius[class] metres to a better one of its class (Yin et al. 2021,
// CenterPoint). Classes beyond the radii keep all their boxes.
std::vector<int32_t> circle_nms(std::span<const Box3d> boxes, std::span<const float> radius, size_t most = 0);

}  // namespace strobe::models
