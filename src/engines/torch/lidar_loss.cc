#include "lidar_loss.h"

#include <ATen/ATen.h>
#include <ATen/TensorIndexing.h>

#include <algorithm>
#include <string>
#include <vector>

#include "device.h"

namespace strobe::engines::torch_plugin {
namespace {

constexpr double kAlpha = 0.25, kGamma = 2, kSmooth = 1.0 / 9, kCodeWeight = 2, kDirectionWeight = 0.2;
constexpr int64_t kYaw = 6;

// The targets of a batch as columns; item and anchor kind and cell of each positive.
struct Positives {
  std::vector<int64_t> item, kind, cell, class_id, direction;
  std::vector<float> codes;
};

Positives positives_of(const AnchorHead& head, std::span<const Target> targets) {
  Positives all;
  for (size_t i = 0; i < targets.size(); ++i) {
    const models::AnchorTargets& own = targets[i].anchors;
    for (const int32_t anchor : own.positives) {
      all.item.push_back(static_cast<int64_t>(i));
      all.kind.push_back(anchor / head.cells);
      all.cell.push_back(anchor % head.cells);
      all.class_id.push_back(own.label[static_cast<size_t>(anchor)] - 1);
    }
    all.direction.insert(all.direction.end(), own.directions.begin(), own.directions.end());
    all.codes.insert(all.codes.end(), own.codes.begin(), own.codes.end());
  }
  return all;
}

}  // namespace

Result<AnchorHead> anchor_head_of(const models::Graph& graph, const models::Graph& pillar_net) {
  const auto refuse = [&](const std::string& why) { return unsupported("network " + graph.name + " " + why); };
  if (graph.outputs.size() != 3)
    return refuse("has no loss: training knows LiDAR detectors with anchors (classes, codes, directions)");
  const models::Shape& classes = graph.layer(graph.outputs[0]).output;
  const models::Shape& codes = graph.layer(graph.outputs[1]).output;
  const models::Shape& directions = graph.layer(graph.outputs[2]).output;
  AnchorHead head;
  head.anchors = directions.channels / 2;
  head.cells = classes.height * classes.width;
  const bool whole = head.anchors > 0 && directions.channels % 2 == 0 && classes.channels % head.anchors == 0 &&
                     codes.channels % head.anchors == 0 && codes.height * codes.width == head.cells &&
                     directions.height * directions.width == head.cells;
  if (!whole) return refuse("has outputs that are no classes, codes and directions of the same anchors");
  head.classes = classes.channels / head.anchors;
  head.code = codes.channels / head.anchors;
  if (head.code <= kYaw) return refuse("has boxes of " + std::to_string(head.code) + " numbers, expected at least 7");
  const models::Shape& pillars = pillar_net.layer(pillar_net.outputs.front()).output;
  if (pillars.channels != graph.input_shape().channels || pillars.height != 1)
    return refuse("takes " + std::to_string(graph.input_shape().channels) + " channels, the pillar net gives " +
                  pillars.to_string());
  return head;
}

Result<void> check_lidar_target(const AnchorHead& head, const models::Graph& graph, const models::Graph& pillar_net,
                                const Target& target) {
  const models::Shape& canvas = graph.input_shape();
  const auto count = static_cast<int64_t>(target.cells.size());
  if (count == 0 || count > pillar_net.input_shape().width)
    return usage_error("a sweep has " + std::to_string(count) + " pillars, expected 1 to " +
                       std::to_string(pillar_net.input_shape().width));
  for (const int32_t cell : target.cells)
    if (cell < 0 || cell >= canvas.height * canvas.width)
      return usage_error("a pillar has cell " + std::to_string(cell) + ", the map has " +
                         std::to_string(canvas.height * canvas.width));
  const models::AnchorTargets& own = target.anchors;
  const auto anchors = static_cast<size_t>(head.anchors * head.cells);
  if (own.label.size() != anchors || own.directions.size() != own.positives.size() ||
      own.codes.size() != own.positives.size() * static_cast<size_t>(head.code))
    return usage_error("the targets are not of this head: it has " + std::to_string(anchors) + " anchors and " +
                       std::to_string(head.code) + " numbers a box");
  for (size_t i = 0; i < own.positives.size(); ++i) {
    const auto anchor = static_cast<size_t>(own.positives[i]);
    if (own.positives[i] < 0 || anchor >= anchors || own.label[anchor] < 1 || own.label[anchor] > head.classes)
      return usage_error("a target has class " + std::to_string(anchor < anchors ? own.label[anchor] - 1 : -1) +
                         ", the network has " + std::to_string(head.classes) + " classes");
    if (own.directions[i] != 0 && own.directions[i] != 1) return usage_error("a direction is neither 0 nor 1");
  }
  return {};
}

at::Tensor joined_pillars(std::span<const float> input, const models::Shape& of_item, std::span<const Target> targets) {
  std::vector<at::Tensor> sweeps;
  for (size_t i = 0; i < targets.size(); ++i) {
    auto* values = const_cast<float*>(input.data()) + i * static_cast<size_t>(of_item.elements());
    sweeps.push_back(at::from_blob(values, {1, of_item.channels, of_item.height, of_item.width}, at::kFloat)
                         .narrow(3, 0, static_cast<int64_t>(targets[i].cells.size())));
  }
  return at::cat(sweeps, 3);
}

at::Tensor scattered(const at::Tensor& pillars, const models::Shape& canvas, std::span<const Target> targets) {
  const auto items = static_cast<int64_t>(targets.size());
  const int64_t cells = canvas.height * canvas.width;
  std::vector<int64_t> places;
  for (int64_t i = 0; i < items; ++i)
    for (const int32_t cell : targets[static_cast<size_t>(i)].cells) places.push_back(i * cells + cell);
  const at::Tensor flat = pillars.reshape({canvas.channels, -1});
  const at::Tensor map = at::zeros({canvas.channels, items * cells}, flat.options());
  return map.index_copy(1, brought(places, flat.device()), flat)
      .reshape({canvas.channels, items, canvas.height, canvas.width})
      .permute({1, 0, 2, 3})
      .contiguous();
}

at::Tensor anchor_loss(const AnchorHead& head, const at::Tensor& classes, const at::Tensor& codes,
                       const at::Tensor& directions, std::span<const Target> targets) {
  const auto items = static_cast<int64_t>(targets.size());
  const Positives positives = positives_of(head, targets);
  const c10::Device device = classes.device();
  const at::Tensor item = brought(positives.item, device), kind = brought(positives.kind, device);
  const at::Tensor cell = brought(positives.cell, device);
  const auto count = static_cast<int64_t>(positives.item.size());

  std::vector<at::Tensor> labels;
  for (const Target& target : targets) {
    auto* values = const_cast<int8_t*>(target.anchors.label.data());
    labels.push_back(at::from_blob(values, {1, head.anchors, 1, head.cells}, at::kChar));
  }
  const at::Tensor counted = brought(at::cat(labels), device).ge(0).to(at::kFloat);
  const at::Tensor logits = classes.to(at::kFloat).reshape({items, head.anchors, head.classes, head.cells});
  at::Tensor wanted = at::zeros_like(logits.detach());
  if (count > 0) wanted.index_put_({item, kind, brought(positives.class_id, device), cell}, 1.0F);
  const at::Tensor probability = at::sigmoid(logits);
  const at::Tensor miss = wanted * (1 - probability) + (1 - wanted) * probability;
  const at::Tensor weight = (wanted * kAlpha + (1 - wanted) * (1 - kAlpha)) * miss.pow(kGamma) * counted;
  const at::Tensor entropy = at::binary_cross_entropy_with_logits(logits, wanted, {}, {}, at::Reduction::None);
  at::Tensor total = (weight * entropy).sum();
  if (count == 0) return total;

  // Of the positives only: count x numbers.
  const at::Tensor found = codes.to(at::kFloat)
                               .reshape({items, head.anchors, head.code, head.cells})
                               .permute({0, 1, 3, 2})
                               .index({item, kind, cell});
  const at::Tensor truth = brought(positives.codes, device).reshape({count, head.code});
  at::Tensor off = found - truth;
  off = at::cat({off.narrow(1, 0, kYaw), at::sin(off.narrow(1, kYaw, 1)), off.slice(1, kYaw + 1)}, 1);
  total = total + kCodeWeight * at::smooth_l1_loss(off, at::zeros_like(off.detach()), at::Reduction::Sum, kSmooth);

  const at::Tensor halves = directions.to(at::kFloat)
                                .reshape({items, head.anchors, 2, head.cells})
                                .permute({0, 1, 3, 2})
                                .index({item, kind, cell});
  const at::Tensor turned = brought(positives.direction, device);
  total = total + kDirectionWeight * at::cross_entropy_loss(halves, turned, {}, at::Reduction::Sum);
  return total / static_cast<double>(count);
}

}  // namespace strobe::engines::torch_plugin
