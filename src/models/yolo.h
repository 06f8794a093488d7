// The YOLO heads of a graph (YOLOv2 to v4 and Scaled-YOLOv4, as Darknet trains them) as boxes.
#pragma once

#include <span>
#include <vector>

#include "models/box_decoder.h"
#include "strobe/base/result.h"
#include "strobe/models/graph.h"

namespace strobe::models {

// The decoder of one graph's heads.
class YoloDecoder : public BoxDecoder {
 public:
  // Errors: kUnsupported when the graph has no YOLO head.
  static Result<YoloDecoder> create(const Graph& graph, const DetectOptions& options);

  // outputs[i]: the raw map of one item of graph.outputs[i], {anchors * (5 + classes), h, w}.
  std::vector<Detection> decode(std::span<const float* const> outputs,
                                const PicturePlacement& placement) const override;

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

}  // namespace strobe::models
