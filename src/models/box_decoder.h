// BoxDecoder: from a network's raw outputs to boxes in pixels of the source picture.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "models/detection.h"

namespace strobe::models {

struct DetectOptions {
  float score_threshold = 0.3F;
  float nms_threshold = 0.45F;  // IoU above which the weaker of two boxes of the same class goes
};

// Where the picture lies inside the network's input (pixels of the input) and how large the picture is.
struct PicturePlacement {
  float x = 0, y = 0, width = 0, height = 0;
  int picture_width = 0, picture_height = 0;
};

// Made once per network. Immutable, thread-safe.
class BoxDecoder {
 public:
  virtual ~BoxDecoder() = default;
  // outputs[i]: the values of one item of the network's output i. Boxes come out highest score first, without those
  // that a stronger one of the same class covers.
  virtual std::vector<Detection> decode(std::span<const float* const> outputs,
                                        const PicturePlacement& placement) const = 0;
};

// A box given in pixels of the network's input, moved into the picture and clipped to it; nothing where no part of it
// lies in the picture, or a number is not finite.
struct InputBox {
  float centre_x = 0, centre_y = 0, width = 0, height = 0;
};
std::optional<Detection> into_picture(const InputBox& box, const PicturePlacement& placement, int class_id,
                                      float score);

// Greedy non-maximum suppression per class; keeps the order of scores (ties: earlier first).
std::vector<Detection> non_maximum_suppression(std::vector<Detection> candidates, float iou_threshold);

}  // namespace strobe::models
