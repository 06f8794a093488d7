// Detection: one object that a detector found.
#pragma once

namespace strobe::models {

struct Detection {
  int class_id = 0;
  float score = 0;                            // 0..1: objectness times class probability
  float x = 0, y = 0, width = 0, height = 0;  // top left corner and size; pixels of the source frame, clipped to it
};

// Intersection over union, 0..1.
float iou(const Detection& a, const Detection& b);

}  // namespace strobe::models
