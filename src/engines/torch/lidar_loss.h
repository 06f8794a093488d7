// Training of LiDAR detectors with anchors (PointPillars, Lang et al. 2019, section 2.4; SECOND, Yan et al. 2018): the
// scatter that gradients go back through, and the loss.
#pragma once

#include <ATen/core/Tensor.h>

#include <span>

#include "strobe/base/result.h"
#include "strobe/engines/trainer.h"
#include "strobe/models/graph.h"

namespace strobe::engines::torch_plugin {

// The three outputs of the network behind the scatter: classes (anchors x classes channels), codes (anchors x numbers
// of a box), directions (anchors x 2).
struct AnchorHead {
  int64_t anchors = 0, classes = 0, code = 0, cells = 0;
};
// Errors: kUnsupported (outputs that are no such head, a pillar net that does not fit the network).
Result<AnchorHead> anchor_head_of(const models::Graph& graph, const models::Graph& pillar_net);
// Errors: kUsage (cells off the map, more pillars than the net takes, targets of another head).
Result<void> check_lidar_target(const AnchorHead& head, const models::Graph& graph, const models::Graph& pillar_net,
                                const Target& target);

// All pillars of a batch side by side in host memory, without the empty places behind them: 1 x features x points x
// pillars.
at::Tensor joined_pillars(std::span<const float> input, const models::Shape& of_item, std::span<const Target> targets);
// pillars: 1 x channels x 1 x all pillars. Returns items x channels x rows x columns.
at::Tensor scattered(const at::Tensor& pillars, const models::Shape& canvas, std::span<const Target> targets);

// Focal loss of the classes (alpha 0.25, gamma 2), 2 x smooth L1 of the codes (1/9; of the yaw the sine of the
// difference), 0.2 x cross-entropy of the directions; divided by the number of positive anchors.
at::Tensor anchor_loss(const AnchorHead& head, const at::Tensor& classes, const at::Tensor& codes,
                       const at::Tensor& directions, std::span<const Target> targets);

}  // namespace strobe::engines::torch_plugin
