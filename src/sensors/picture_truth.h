// What of the annotations a camera's picture shows, as boxes on the picture.
#pragma once

#include <cstdint>
#include <vector>

#include "sensors/nuscenes.h"

namespace strobe::sensors {

// Pixels from the top left corner, cut to the picture.
struct ShownBox {
  uint32_t annotation = nuscenes::kNone;
  double x = 0, y = 0, width = 0, height = 0;
};

// Of the annotations of the moment of `moment` (a row of sample_data), as the camera of `picture` (another one, or the
// same) sees them from where it was: those of a visibility of 60 % and more of whose outline at least 0.3 lies on the
// picture. The outline is the convex hull of the projected corners before the camera. As pPerf's image_eval has it.
std::vector<ShownBox> shown_boxes(const NuScenes& database, uint32_t picture, uint32_t moment);

}  // namespace strobe::sensors
