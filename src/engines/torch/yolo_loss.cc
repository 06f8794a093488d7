#include "yolo_loss.h"

#include <ATen/ATen.h>
#include <ATen/TensorIndexing.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <cmath>

#include "device.h"

namespace strobe::engines::torch_plugin {
namespace {

using at::indexing::Slice;

constexpr double kFitting = 0.213, kIgnored = 0.7, kBoxWeight = 3;
constexpr double kLargestExponent =
    8;  // of a side: e^8 anchors is wider than any picture, and its gradient still finite

// The anchors that answer for boxes, as columns: item, anchor, row, column, class and the box itself.
struct Assigned {
  std::vector<int64_t> item, anchor, row, column, class_id;
  std::vector<float> box;  // x, y, w, h each

  void add(int64_t in_item, int64_t of_anchor, int64_t at_row, int64_t at_column, const TargetBox& target) {
    item.push_back(in_item);
    anchor.push_back(of_anchor);
    row.push_back(at_row);
    column.push_back(at_column);
    class_id.push_back(target.class_id);
    box.insert(box.end(), {target.x, target.y, target.width, target.height});
  }
};

// Overlap of two boxes that share a corner.
double shape_iou(double w1, double h1, double w2, double h2) {
  const double common = std::min(w1, w2) * std::min(h1, h2);
  return common / (w1 * h1 + w2 * h2 - common + 1e-9);
}

class Head {
 public:
  Head(const HeadMap& of, const models::Shape& input)
      : rule_(*of.rule),
        anchors_(static_cast<int64_t>(rule_.anchors.size() / 2)),
        height_(of.map.size(2)),
        width_(of.map.size(3)),
        stride_x_(static_cast<double>(input.width) / static_cast<double>(width_)),
        stride_y_(static_cast<double>(input.height) / static_cast<double>(height_)) {
    raw_ = of.map.to(at::kFloat)
               .reshape({of.map.size(0), anchors_, 5 + rule_.classes, height_, width_})
               .permute({0, 1, 3, 4, 2});
    sides_ = brought(rule_.anchors, device()).reshape({1, anchors_, 1, 1, 2});
    stride_ = brought(std::vector<float>{static_cast<float>(stride_x_), static_cast<float>(stride_y_)}, device());
    const at::Tensor rows = at::arange(height_, raw_.options()).reshape({1, 1, height_, 1, 1});
    const at::Tensor columns = at::arange(width_, raw_.options()).reshape({1, 1, 1, width_, 1});
    cells_ = at::cat({columns.expand({1, 1, height_, width_, 1}), rows.expand({1, 1, height_, width_, 1})}, 4);
  }

  int64_t anchors() const { return anchors_; }
  c10::Device device() const { return raw_.device(); }
  double fit(int64_t anchor, const TargetBox& box) const {
    const auto at = static_cast<size_t>(2 * anchor);
    return shape_iou(box.width, box.height, rule_.anchors[at], rule_.anchors[at + 1]);
  }
  void assign(int64_t item, int64_t anchor, const TargetBox& box) {
    const auto cell = [](double place, double stride, int64_t count) {
      return std::clamp<int64_t>(static_cast<int64_t>(place / stride), 0, count - 1);
    };
    assigned_.add(item, anchor, cell(box.y, stride_y_, height_), cell(box.x, stride_x_, width_), box);
  }
  size_t assigned() const { return assigned_.item.size(); }

  // Not yet divided by the number of assigned anchors. boxes: all of the targets, x, y, w, h each.
  at::Tensor loss(std::span<const Target> targets, const at::Tensor& boxes) const {
    at::Tensor wanted = at::zeros({raw_.size(0), anchors_, height_, width_}, raw_.options());
    at::Tensor counted = cells_without_their_own(targets, boxes);
    at::Tensor total = at::zeros({}, raw_.options());
    if (assigned() > 0) {
      const at::Tensor item = brought(assigned_.item, device()), anchor = brought(assigned_.anchor, device());
      const at::Tensor row = brought(assigned_.row, device()), column = brought(assigned_.column, device());
      wanted.index_put_({item, anchor, row, column}, 1.0F);
      counted.index_put_({item, anchor, row, column}, 1.0F);
      const at::Tensor raw = raw_.index({item, anchor, row, column});  // assigned x (5 + classes)
      const at::Tensor cell = at::stack({column, row}, 1).to(at::kFloat);
      const at::Tensor side = sides_.reshape({anchors_, 2}).index({anchor});
      const at::Tensor box = brought(assigned_.box, device()).reshape({-1, 4});
      total = total + kBoxWeight * (1 - ciou(decode(raw, cell, side), box)).sum();
      if (rule_.classes > 1) {
        const at::Tensor classes = one_of(brought(assigned_.class_id, device()));
        total = total + at::binary_cross_entropy_with_logits(raw.slice(1, 5), classes, {}, {}, at::Reduction::Sum);
      }
    }
    const at::Tensor objectness = raw_.select(4, 4);
    return total + at::binary_cross_entropy_with_logits(objectness, wanted, counted, {}, at::Reduction::Sum);
  }

 private:
  // One row a value: 1 at its place, else 0. at::one_hot would ask some devices for the largest value.
  at::Tensor one_of(const at::Tensor& classes) const {
    return at::zeros({classes.size(0), rule_.classes}, raw_.options()).scatter(1, classes.unsqueeze(1), 1.0F);
  }

  // Raw values (..., 5 + classes) as boxes x, y, w, h in pixels of the input.
  at::Tensor decode(const at::Tensor& raw, const at::Tensor& cell, const at::Tensor& side) const {
    const double s = rule_.scale_x_y;
    const at::Tensor centre = (cell + s * at::sigmoid(raw.narrow(-1, 0, 2)) - 0.5 * (s - 1)) * stride_;
    const at::Tensor size = at::exp(raw.narrow(-1, 2, 2).clamp_max(kLargestExponent)) * side;
    return at::cat({centre, size}, -1);
  }

  static at::Tensor corners(const at::Tensor& box) {
    const at::Tensor centre = box.narrow(-1, 0, 2), half = 0.5 * box.narrow(-1, 2, 2);
    return at::cat({centre - half, centre + half}, -1);
  }

  // 1 where objectness is learned: everywhere but where a prediction overlaps a target well.
  at::Tensor cells_without_their_own(std::span<const Target> targets, const at::Tensor& boxes) const {
    const c10::NoGradGuard no_gradients;
    at::Tensor counted = at::ones({raw_.size(0), anchors_, height_, width_}, raw_.options());
    const at::Tensor predicted = corners(decode(raw_.detach(), cells_, sides_));
    int64_t next = 0;
    for (size_t i = 0; i < targets.size(); ++i) {
      const auto count = static_cast<int64_t>(targets[i].boxes.size());
      if (count == 0) continue;
      const at::Tensor truth = corners(boxes.narrow(0, next, count).reshape({1, count, 4}));
      next += count;
      const at::Tensor mine = predicted[static_cast<int64_t>(i)].reshape({-1, 1, 4});
      const at::Tensor best = std::get<0>(iou(mine, truth).max(1)).reshape({anchors_, height_, width_});
      counted.index_put_({static_cast<int64_t>(i)}, (best <= kIgnored).to(at::kFloat));
    }
    return counted;
  }

  static at::Tensor iou(const at::Tensor& a, const at::Tensor& b) {
    const at::Tensor low = at::maximum(a.narrow(-1, 0, 2), b.narrow(-1, 0, 2));
    const at::Tensor high = at::minimum(a.narrow(-1, 2, 2), b.narrow(-1, 2, 2));
    // Not prod(-1), whose gradient asks the device how many zeros there are, and waits.
    const auto product = [](const at::Tensor& sides) { return sides.select(-1, 0) * sides.select(-1, 1); };
    const auto area = [&](const at::Tensor& x) { return product(x.narrow(-1, 2, 2) - x.narrow(-1, 0, 2)); };
    const at::Tensor common = product((high - low).clamp_min(0));
    return common / (area(a) + area(b) - common + 1e-7);
  }

  // Complete IoU: less the distance of the centres and the difference of the shapes.
  static at::Tensor ciou(const at::Tensor& box, const at::Tensor& truth) {
    constexpr double kFourOverPiSquared = 0.405284734569351;
    const at::Tensor a = corners(box), b = corners(truth);
    const at::Tensor overlap = iou(a, b);
    const at::Tensor hull =
        at::maximum(a.narrow(-1, 2, 2), b.narrow(-1, 2, 2)) - at::minimum(a.narrow(-1, 0, 2), b.narrow(-1, 0, 2));
    const at::Tensor apart = (box.narrow(-1, 0, 2) - truth.narrow(-1, 0, 2)).square().sum(-1);
    const at::Tensor diagonal = hull.square().sum(-1) + 1e-7;
    const auto angle = [](const at::Tensor& x) { return at::atan(x.select(-1, 2) / (x.select(-1, 3) + 1e-7)); };
    const at::Tensor shape = kFourOverPiSquared * (angle(truth) - angle(box)).square();
    const at::Tensor weight = (shape / (1 - overlap + shape + 1e-7)).detach();
    return overlap - apart / diagonal - weight * shape;
  }

  const models::YoloHead& rule_;
  int64_t anchors_, height_, width_;
  double stride_x_, stride_y_;  // pixels of the input in one cell
  at::Tensor raw_;              // items x anchors x height x width x (5 + classes)
  at::Tensor sides_, stride_, cells_;
  Assigned assigned_;
};

void assign_box(std::vector<Head>& heads, int64_t item, const TargetBox& box) {
  Head* best_head = nullptr;
  int64_t best_anchor = 0;
  double best = -1;
  for (Head& head : heads) {
    for (int64_t anchor = 0; anchor < head.anchors(); ++anchor) {
      if (const double fit = head.fit(anchor, box); fit > best) {
        best = fit;
        best_head = &head;
        best_anchor = anchor;
      }
    }
  }
  for (Head& head : heads) {
    for (int64_t anchor = 0; anchor < head.anchors(); ++anchor) {
      if ((&head == best_head && anchor == best_anchor) || head.fit(anchor, box) > kFitting)
        head.assign(item, anchor, box);
    }
  }
}

}  // namespace

at::Tensor yolo_loss(const std::vector<HeadMap>& maps, const models::Shape& input, std::span<const Target> targets) {
  std::vector<Head> heads;
  for (const HeadMap& map : maps) heads.emplace_back(map, input);
  for (size_t item = 0; item < targets.size(); ++item) {
    for (const TargetBox& box : targets[item].boxes) assign_box(heads, static_cast<int64_t>(item), box);
  }
  size_t assigned = 0;
  std::vector<float> values;
  for (const Target& target : targets)
    for (const TargetBox& box : target.boxes) values.insert(values.end(), {box.x, box.y, box.width, box.height});
  const c10::Device device = maps.front().map.device();
  const at::Tensor boxes = brought(values, device).reshape({-1, 4});
  at::Tensor total = at::zeros({}, at::TensorOptions(at::kFloat).device(device));
  for (const Head& head : heads) {
    assigned += head.assigned();
    total = total + head.loss(targets, boxes);
  }
  return total / static_cast<double>(std::max<size_t>(assigned, 1));
}

}  // namespace strobe::engines::torch_plugin
