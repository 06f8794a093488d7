#include "models/yolo.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "models/graph_builder.h"

namespace strobe::models {
namespace {

float logistic(float x) {
  return 1.0F / (1.0F + std::exp(-x));
}

// The smallest raw value whose probability can reach the threshold; a little below it, since rounding must not lose a
// box (the exact comparison follows).
float raw_threshold(float probability, bool is_logit) {
  if (!is_logit || probability <= 0) return is_logit ? -std::numeric_limits<float>::infinity() : probability;
  if (probability >= 1) return std::numeric_limits<float>::infinity();
  return std::log(probability / (1 - probability)) - 1e-3F;
}

// One anchor's planes of one head: x, y, w, h, objectness, classes.
class AnchorDecoder {
 public:
  AnchorDecoder(const YoloHead& rule, size_t anchor, int64_t height, int64_t width, const Shape& input,
                const PicturePlacement& placement, float score_threshold)
      : rule_(rule),
        anchor_(anchor),
        height_(height),
        width_(width),
        input_(input),
        placement_(placement),
        score_threshold_(score_threshold) {}

  void run(const float* planes, std::vector<Detection>& out) const {
    const int64_t cells = height_ * width_;
    const float* objectness = planes + 4 * cells;
    const float least = raw_threshold(score_threshold_, !rule_.new_coords);
    for (int64_t cell = 0; cell < cells; ++cell) {
      if (objectness[cell] >= least) decode_cell(planes, cell, out);
    }
  }

 private:
  // The best class alone, as OpenCV's DetectionModel does: a box is one object.
  void decode_cell(const float* planes, int64_t cell, std::vector<Detection>& out) const {
    const int64_t cells = height_ * width_;
    const auto value = [&](int64_t plane) { return planes[plane * cells + cell]; };
    int64_t best = 0;
    for (int64_t c = 1; c < rule_.classes; ++c) {
      if (value(5 + c) > value(5 + best)) best = c;
    }
    const float score = rule_.new_coords ? value(4) * value(5 + best) : logistic(value(4)) * logistic(value(5 + best));
    if (!(score >= score_threshold_)) return;
    const float x = centre(value(0), cell % width_) / static_cast<float>(width_) * static_cast<float>(input_.width);
    const float y = centre(value(1), cell / width_) / static_cast<float>(height_) * static_cast<float>(input_.height);
    const float w = side(value(2), rule_.anchors[2 * anchor_]);
    const float h = side(value(3), rule_.anchors[2 * anchor_ + 1]);
    const auto box = into_picture({x, y, w, h}, placement_, static_cast<int>(best), score);
    if (box) out.push_back(*box);
  }

  // Grid coordinates: cell + s * logistic(t) - (s - 1) / 2, with s = scale_x_y.
  float centre(float raw, int64_t cell) const {
    const float inside = rule_.new_coords ? raw : logistic(raw);
    return static_cast<float>(cell) + rule_.scale_x_y * inside - 0.5F * (rule_.scale_x_y - 1);
  }
  // exp(t) anchors; (2 t)^2 anchors with new_coords.
  float side(float raw, float anchor) const { return anchor * (rule_.new_coords ? 4 * raw * raw : std::exp(raw)); }

  const YoloHead& rule_;
  size_t anchor_;
  int64_t height_, width_;
  const Shape& input_;
  const PicturePlacement& placement_;
  float score_threshold_;
};

}  // namespace

Result<YoloDecoder> YoloDecoder::create(const Graph& graph, const DetectOptions& options) {
  std::vector<Head> heads;
  for (const LayerId id : graph.outputs) {
    const Layer& layer = graph.layer(id);
    const auto* rule = std::get_if<YoloHead>(&layer.operation);
    if (!rule) {
      return unsupported(fmt::format("network {}: output {} is no YOLO head, so that no boxes can be read from it",
                                     graph.name, layer.name));
    }
    heads.push_back({*rule, layer.output.height, layer.output.width});
  }
  if (heads.empty()) return unsupported(fmt::format("network {} has no YOLO head", graph.name));
  return YoloDecoder(std::move(heads), graph.input_shape(), options);
}

std::vector<Detection> YoloDecoder::decode(std::span<const float* const> outputs,
                                           const PicturePlacement& placement) const {
  std::vector<Detection> candidates;
  for (size_t i = 0; i < std::min(heads_.size(), outputs.size()); ++i) {
    const Head& head = heads_[i];
    const int64_t anchor_numbers = (5 + head.rule.classes) * head.height * head.width;
    for (size_t anchor = 0; anchor < head.rule.anchors.size() / 2; ++anchor) {
      AnchorDecoder(head.rule, anchor, head.height, head.width, input_, placement, options_.score_threshold)
          .run(outputs[i] + static_cast<int64_t>(anchor) * anchor_numbers, candidates);
    }
  }
  return non_maximum_suppression(std::move(candidates), options_.nms_threshold);
}

}  // namespace strobe::models
