#include "models/shape_inference.h"

#include <fmt/format.h>

#include <algorithm>

namespace strobe::models {
namespace {

Result<void> check_range(const char* what, int64_t value, int64_t low, int64_t high) {
  if (value >= low && value <= high) return {};
  return bad_data(fmt::format("{} is {}, expected {} to {}", what, value, low, high));
}

Result<Shape> checked(const Shape& shape) {
  STROBE_TRY(check_range("the channels", shape.channels, 1, kMaxDimension));
  STROBE_TRY(check_range("the height", shape.height, 1, kMaxDimension));
  STROBE_TRY(check_range("the width", shape.width, 1, kMaxDimension));
  if (shape.elements() > kMaxElements) {
    return bad_data(fmt::format("{} is too large: at most {} numbers a tensor", shape.to_string(), kMaxElements));
  }
  return shape;
}

Result<void> check_weight_count(int64_t count) {
  if (count <= kMaxElements) return {};
  return bad_data(fmt::format("{} weights are too many: at most {} a layer", count, kMaxElements));
}

// Positions of a window along one side.
Result<int64_t> positions(const char* side, int64_t size, int64_t padding, int64_t window, int64_t stride) {
  const int64_t room = size + padding - window;
  if (room < 0) {
    return bad_data(
        fmt::format("the window's {} {} is larger than the padded input's {}", side, window, size + padding));
  }
  return room / stride + 1;
}

Result<Shape> window_shape(int64_t channels, const Shape& in, int64_t pad_h, int64_t pad_w, int64_t window_h,
                           int64_t window_w, int64_t stride_h, int64_t stride_w) {
  STROBE_ASSIGN(const int64_t height, positions("height", in.height, pad_h, window_h, stride_h));
  STROBE_ASSIGN(const int64_t width, positions("width", in.width, pad_w, window_w, stride_w));
  return Shape{channels, height, width};
}

struct Inference {
  std::span<const Shape> inputs;
  const Shape& in() const { return inputs.front(); }

  Result<Shape> operator()(const Input&) const { return internal_error("an input has no inputs to infer from"); }

  Result<Shape> operator()(const Convolution& op) const {
    STROBE_TRY(check_range("the number of filters", op.out_channels, 1, kMaxDimension));
    STROBE_TRY(check_range("the kernel's height", op.kernel_h, 1, kMaxKernel));
    STROBE_TRY(check_range("the kernel's width", op.kernel_w, 1, kMaxKernel));
    STROBE_TRY(check_range("the vertical stride", op.stride_h, 1, kMaxKernel));
    STROBE_TRY(check_range("the horizontal stride", op.stride_w, 1, kMaxKernel));
    STROBE_TRY(check_range("the vertical padding", op.pad_h, 0, kMaxKernel));
    STROBE_TRY(check_range("the horizontal padding", op.pad_w, 0, kMaxKernel));
    STROBE_TRY(check_range("the dilation", op.dilation, 1, kMaxKernel));
    STROBE_TRY(check_range("the number of groups", op.groups, 1, kMaxDimension));
    if (in().channels % op.groups != 0) {
      return bad_data(fmt::format("{} groups do not divide {} input channels", op.groups, in().channels));
    }
    if (op.out_channels % op.groups != 0) {
      return bad_data(fmt::format("{} groups do not divide {} filters", op.groups, op.out_channels));
    }
    STROBE_TRY(check_weight_count(op.out_channels * (in().channels / op.groups) * op.kernel_h * op.kernel_w));
    return window_shape(op.out_channels, in(), 2 * op.pad_h, 2 * op.pad_w, op.dilation * (op.kernel_h - 1) + 1,
                        op.dilation * (op.kernel_w - 1) + 1, op.stride_h, op.stride_w);
  }

  Result<Shape> operator()(const TransposedConvolution& op) const {
    STROBE_TRY(check_range("the number of filters", op.out_channels, 1, kMaxDimension));
    STROBE_TRY(check_range("the kernel's height", op.kernel_h, 1, kMaxKernel));
    STROBE_TRY(check_range("the kernel's width", op.kernel_w, 1, kMaxKernel));
    STROBE_TRY(check_range("the vertical stride", op.stride_h, 1, kMaxKernel));
    STROBE_TRY(check_range("the horizontal stride", op.stride_w, 1, kMaxKernel));
    STROBE_TRY(check_range("the vertical padding", op.pad_h, 0, op.kernel_h - 1));
    STROBE_TRY(check_range("the horizontal padding", op.pad_w, 0, op.kernel_w - 1));
    STROBE_TRY(check_weight_count(op.out_channels * in().channels * op.kernel_h * op.kernel_w));
    return Shape{op.out_channels, (in().height - 1) * op.stride_h + op.kernel_h - 2 * op.pad_h,
                 (in().width - 1) * op.stride_w + op.kernel_w - 2 * op.pad_w};
  }

  Result<Shape> operator()(const Pool& op) const {
    STROBE_TRY(check_range("the pool's height", op.kernel_h, 1, kMaxKernel));
    STROBE_TRY(check_range("the pool's width", op.kernel_w, 1, kMaxKernel));
    STROBE_TRY(check_range("the vertical stride", op.stride_h, 1, kMaxKernel));
    STROBE_TRY(check_range("the horizontal stride", op.stride_w, 1, kMaxKernel));
    // Padding as wide as the window would make outputs out of nothing but padding.
    STROBE_TRY(check_range("the pool's padding on top", op.pad_top, 0, op.kernel_h - 1));
    STROBE_TRY(check_range("the pool's padding at the bottom", op.pad_bottom, 0, op.kernel_h - 1));
    STROBE_TRY(check_range("the pool's padding on the left", op.pad_left, 0, op.kernel_w - 1));
    STROBE_TRY(check_range("the pool's padding on the right", op.pad_right, 0, op.kernel_w - 1));
    return window_shape(in().channels, in(), op.pad_top + op.pad_bottom, op.pad_left + op.pad_right, op.kernel_h,
                        op.kernel_w, op.stride_h, op.stride_w);
  }

  Result<Shape> operator()(const GlobalAveragePool&) const { return Shape{in().channels, 1, 1}; }

  Result<Shape> operator()(const Concat&) const {
    Shape sum = in();
    for (const Shape& other : inputs.subspan(1)) {
      if (other.height != in().height || other.width != in().width) {
        return bad_data(fmt::format("joins maps of unequal size: {} and {}", in().to_string(), other.to_string()));
      }
      sum.channels += other.channels;
      STROBE_TRY(check_range("the channels", sum.channels, 1, kMaxDimension));
    }
    return sum;
  }

  Result<Shape> operator()(const Slice& op) const {
    if (op.begin < 0 || op.end <= op.begin || op.end > in().channels) {
      return bad_data(fmt::format("channels {} to {} are not among the input's {}", op.begin, op.end, in().channels));
    }
    return Shape{op.end - op.begin, in().height, in().width};
  }

  Result<Shape> operator()(const Add&) const {
    for (const Shape& other : inputs.subspan(1)) {
      if (other != in()) {
        return bad_data(fmt::format("adds unequal shapes: {} and {}", in().to_string(), other.to_string()));
      }
    }
    return in();
  }

  Result<Shape> operator()(const Upsample& op) const {
    STROBE_TRY(check_range("the scale", op.scale, 1, kMaxKernel));
    return Shape{in().channels, in().height * op.scale, in().width * op.scale};
  }

  Result<Shape> operator()(const Flatten&) const { return Shape{in().elements(), 1, 1}; }

  Result<Shape> operator()(const Linear& op) const {
    STROBE_TRY(check_range("the number of outputs", op.out_features, 1, kMaxDimension));
    if (in().height != 1 || in().width != 1) {
      return bad_data(fmt::format("expected a vector, its input is {}", in().to_string()));
    }
    STROBE_TRY(check_weight_count(op.out_features * in().channels));
    return Shape{op.out_features, 1, 1};
  }

  Result<Shape> operator()(const YoloHead& op) const {
    STROBE_TRY(check_range("the number of classes", op.classes, 1, kMaxDimension));
    if (op.anchors.empty() || op.anchors.size() % 2 != 0) {
      return bad_data(fmt::format("expected pairs of anchor sizes, found {} numbers", op.anchors.size()));
    }
    const auto boxes = static_cast<int64_t>(op.anchors.size() / 2);
    if (in().channels != boxes * (5 + op.classes)) {
      return bad_data(fmt::format("expected {} input channels ({} anchors x (5 + {} classes)), found {}",
                                  boxes * (5 + op.classes), boxes, op.classes, in().channels));
    }
    return in();
  }

  // Batch norm, activation, softmax, dropout: element by element.
  template <typename ElementWise>
  Result<Shape> operator()(const ElementWise&) const {
    return in();
  }
};

bool takes_many(const Operation& operation) {
  return std::holds_alternative<Add>(operation) || std::holds_alternative<Concat>(operation);
}

}  // namespace

Result<Shape> infer_shape(const Operation& operation, std::span<const Shape> inputs) {
  const size_t least = std::holds_alternative<Add>(operation) ? 2 : 1;
  if (inputs.size() < least || (inputs.size() > least && !takes_many(operation))) {
    return bad_data(fmt::format("{} takes {}{} input{}, {} given", type_name(operation),
                                takes_many(operation) ? "at least " : "", least, least == 1 ? "" : "s", inputs.size()));
  }
  STROBE_ASSIGN(const Shape shape, std::visit(Inference{inputs}, operation));
  return checked(shape);
}

Step spatial_step(const Operation& operation) {
  if (const auto* conv = std::get_if<Convolution>(&operation)) return {std::max(conv->stride_h, conv->stride_w), 1};
  if (const auto* pool = std::get_if<Pool>(&operation)) return {std::max(pool->stride_h, pool->stride_w), 1};
  if (const auto* up = std::get_if<Upsample>(&operation)) return {1, up->scale};
  if (const auto* up = std::get_if<TransposedConvolution>(&operation)) return {1, std::max(up->stride_h, up->stride_w)};
  return {};
}

}  // namespace strobe::models
