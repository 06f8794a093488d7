// YOLO: from the raw outputs of a network's heads to boxes in pixels of the source picture.
#pragma once

#include <span>
#include <vector>

#include "models/detection.h"
#include "strobe/base/result.h"
#include "strobe/models/graph.h"

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

// The decoder of one graph's heads, made once per network. Immutable, thread-safe.
class YoloDecoder {
 public:
  // Errors: kUnsupported when the graph has no YOLO head.
  static Result<YoloDecoder> create(const Graph& graph, const DetectOptions& options);

  // outputs[i]: the raw map of one item of graph.outputs[i], {anchors * (5 + classes), h, w}. Boxes come out after
  // per-class non-maximum suppression, highest score first.
  std::vector<Detection> decode(std::span<const float* const> outputs, const PicturePlacement& placement) const;

 private:
  struct Head {
    YoloHead rule;
    int64_t height = 0, width = 0;
  };
  YoloDecoder(std::vector<Head> heads, Shape input, DetectOptions options)
      : heads_(std::move(heads)), input_(input), options_(options) {}
  std::vector<Head> heads_;
  Shape input_;
  DetectOptions options_;
};

// Greedy non-maximum suppression per class; keeps the order of scores (ties: earlier first).
std::vector<Detection> non_maximum_suppression(std::vector<Detection> candidates, float iou_threshold);

}  // namespace strobe::models
