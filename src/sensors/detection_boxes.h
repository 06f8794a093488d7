// Boxes as the nuScenes detection task counts them: its classes, its filters, and a box of a result file.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "sensors/detection_metrics.h"
#include "sensors/geometry.h"
#include "sensors/nuscenes_json.h"

namespace strobe::sensors {

struct FilterCounts {
  uint64_t boxes = 0, in_range = 0, with_points = 0, kept = 0;  // what is left after each step
};

// What the filters need to know of the moment that boxes are of.
struct DetectionPlace {
  double ego_x = 0, ego_y = 0;
  std::vector<Box> racks;  // of bicycles
};

// The class that a category counts as; kDetectionClasses for none.
size_t detection_class_of(std::string_view category);
// A number for DetectionBox::attribute. One that the task does not know is still one, and not that of any prediction.
uint8_t detection_attribute_of(std::string_view name);

// The task's three filters, in its order: range of the class, boxes without points (points == 0), cycles in racks.
bool passes_filters(const DetectionBox& box, double z, int64_t points, const DetectionPlace& place,
                    FilterCounts& counts);

// The next value: a box of a result file under this token; faults are the cursor's. z: of its centre. points: left as
// it is where the file does not tell.
void read_detection_box(JsonCursor& in, std::string_view token, DetectionBox& box, double& z, int64_t& points);

}  // namespace strobe::sensors
