// The loss of a detector with YOLO heads.
#pragma once

#include <ATen/core/Tensor.h>

#include <span>
#include <vector>

#include "strobe/engines/trainer.h"
#include "strobe/models/graph.h"

namespace strobe::engines::torch_plugin {

// One head: its rule and its raw map, items x anchors * (5 + classes) x height x width.
struct HeadMap {
  const models::YoloHead* rule = nullptr;
  at::Tensor map;
};

// Per box of a target: the anchor of all heads whose shape fits best, and every other with a shape IoU above 0.213
// (YOLOv4, Bochkovskiy et al. 2020), in the cell of the box's centre. Sum over them of 3 (1 - CIoU) (Zheng et al. 2020)
// and binary cross-entropy of the classes; plus that of objectness over all cells, but those whose box overlaps a
// target's by more than 0.7 without being its own. All divided by the number of assigned anchors (YOLOX, Ge et al.
// 2021). input: of the network. Boxes are decoded as models/yolo.h does.
at::Tensor yolo_loss(const std::vector<HeadMap>& heads, const models::Shape& input, std::span<const Target> targets);

}  // namespace strobe::engines::torch_plugin
