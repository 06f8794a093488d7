#include "operations.h"

#include <ATen/ATen.h>

#include <limits>

namespace strobe::engines::torch_plugin {
namespace {

using models::ActivationKind;

at::Tensor tensor_of(const models::Weights& weights, at::ScalarType type, c10::Device device) {
  if (weights == nullptr) return {};
  // ATen has no constant tensors; nothing writes to this one.
  auto* values = const_cast<float*>(weights->values.data());
  return at::from_blob(values, weights->shape, at::kFloat).to(type).to(device);
}

const char* activation_name(ActivationKind kind) {
  switch (kind) {
    case ActivationKind::kLinear:
      return "";
    case ActivationKind::kRelu:
      return "aten::relu";
    case ActivationKind::kRelu6:
      return "aten::relu6";
    case ActivationKind::kLeaky:
      return "aten::leaky_relu";
    case ActivationKind::kLogistic:
      return "aten::sigmoid";
    case ActivationKind::kMish:
      return "aten::mish";
    case ActivationKind::kSwish:
      return "aten::silu";
    case ActivationKind::kTanh:
      return "aten::tanh";
    case ActivationKind::kElu:
      return "aten::elu";
    case ActivationKind::kHardSwish:
      return "aten::hardswish";
  }
  return "";
}

struct Namer {
  const char* operator()(const models::Input&) const { return ""; }
  const char* operator()(const models::Convolution&) const { return "aten::conv2d"; }
  const char* operator()(const models::TransposedConvolution&) const { return "aten::conv_transpose2d"; }
  const char* operator()(const models::BatchNorm&) const { return "aten::batch_norm"; }
  const char* operator()(const models::Activation& a) const { return activation_name(a.kind); }
  const char* operator()(const models::Pool& p) const {
    return p.kind == models::Pool::Kind::kMax ? "aten::max_pool2d" : "aten::avg_pool2d";
  }
  const char* operator()(const models::GlobalAveragePool&) const { return "aten::adaptive_avg_pool2d"; }
  const char* operator()(const models::Concat&) const { return "aten::cat"; }
  const char* operator()(const models::Slice&) const { return "aten::narrow"; }
  const char* operator()(const models::Add&) const { return "aten::add"; }
  const char* operator()(const models::Upsample&) const { return "aten::upsample_nearest2d"; }
  const char* operator()(const models::Flatten&) const { return "aten::reshape"; }
  const char* operator()(const models::Linear&) const { return "aten::linear"; }
  const char* operator()(const models::Softmax&) const { return "aten::softmax"; }
  const char* operator()(const models::Dropout&) const { return ""; }
  const char* operator()(const models::YoloHead&) const { return ""; }
};

struct Caller {
  const models::Layer& layer;
  const LayerWeights& weights;
  std::span<const at::Tensor> inputs;

  const at::Tensor& x() const { return inputs.front(); }

  at::Tensor operator()(const models::Input&) const { return x(); }
  at::Tensor operator()(const models::Dropout&) const { return x(); }
  at::Tensor operator()(const models::YoloHead&) const { return x(); }
  at::Tensor operator()(const models::Convolution& c) const {
    return at::conv2d(x(), weights.weight, weights.bias, {c.stride_h, c.stride_w}, {c.pad_h, c.pad_w},
                      {c.dilation, c.dilation}, c.groups);
  }
  at::Tensor operator()(const models::TransposedConvolution& c) const {
    return at::conv_transpose2d(x(), weights.weight, weights.bias, {c.stride_h, c.stride_w}, {c.pad_h, c.pad_w});
  }
  at::Tensor operator()(const models::BatchNorm& b) const {
    return at::batch_norm(x(), weights.scale, weights.shift, weights.mean, weights.variance, /*training=*/false,
                          /*momentum=*/0.1, b.epsilon, /*cudnn_enabled=*/false);
  }
  at::Tensor operator()(const models::Activation& a) const {
    switch (a.kind) {
      case ActivationKind::kLinear:
        return x();
      case ActivationKind::kRelu:
        return at::relu(x());
      case ActivationKind::kRelu6:
        return at::relu6(x());
      case ActivationKind::kLeaky:
        return at::leaky_relu(x(), a.slope);
      case ActivationKind::kLogistic:
        return at::sigmoid(x());
      case ActivationKind::kMish:
        return at::mish(x());
      case ActivationKind::kSwish:
        return at::silu(x());
      case ActivationKind::kTanh:
        return at::tanh(x());
      case ActivationKind::kElu:
        return at::elu(x(), a.slope);
      case ActivationKind::kHardSwish:
        return at::hardswish(x());
    }
    return x();
  }
  at::Tensor operator()(const models::Pool& p) const {
    const bool explicit_padding = needs_explicit_padding(p);
    const int64_t pad_h = explicit_padding ? 0 : p.pad_top;
    const int64_t pad_w = explicit_padding ? 0 : p.pad_left;
    const auto padded = [&](const at::Tensor& tensor, double value) {
      if (!explicit_padding) return tensor;
      return at::constant_pad_nd(tensor, {p.pad_left, p.pad_right, p.pad_top, p.pad_bottom}, value);
    };
    if (p.kind == models::Pool::Kind::kMax) {
      return at::max_pool2d(padded(x(), -std::numeric_limits<double>::infinity()), {p.kernel_h, p.kernel_w},
                            {p.stride_h, p.stride_w}, {pad_h, pad_w});
    }
    const auto average = [&](const at::Tensor& tensor, bool count_padding) {
      return at::avg_pool2d(padded(tensor, 0), {p.kernel_h, p.kernel_w}, {p.stride_h, p.stride_w}, {pad_h, pad_w},
                            /*ceil_mode=*/false, count_padding);
    };
    if (p.count_padding || !explicit_padding) return average(x(), p.count_padding);
    // The share of each window that is not padding, by the same pooling over ones.
    return average(x(), true) / average(at::ones({1, 1, x().size(2), x().size(3)}, x().options()), true);
  }
  at::Tensor operator()(const models::GlobalAveragePool&) const { return at::adaptive_avg_pool2d(x(), {1, 1}); }
  at::Tensor operator()(const models::Concat&) const {
    return at::cat(at::TensorList(inputs.data(), inputs.size()), 1);
  }
  at::Tensor operator()(const models::Slice& s) const { return x().narrow(1, s.begin, s.end - s.begin); }
  at::Tensor operator()(const models::Add&) const {
    at::Tensor sum = inputs[0] + inputs[1];
    for (size_t i = 2; i < inputs.size(); ++i) sum = sum + inputs[i];
    return sum;
  }
  at::Tensor operator()(const models::Upsample&) const {
    return at::upsample_nearest2d(x(), {layer.output.height, layer.output.width});
  }
  at::Tensor operator()(const models::Flatten&) const { return x().reshape({x().size(0), -1, 1, 1}); }
  at::Tensor operator()(const models::Linear& l) const {
    return at::linear(x().reshape({x().size(0), -1}), weights.weight, weights.bias)
        .reshape({x().size(0), l.out_features, 1, 1});
  }
  at::Tensor operator()(const models::Softmax&) const { return at::softmax(x(), 1); }
};

}  // namespace

std::vector<LayerWeights> tensors_of(const models::Graph& graph, at::ScalarType type, c10::Device device) {
  std::vector<LayerWeights> all(graph.layers.size());
  for (size_t i = 0; i < all.size(); ++i) {
    const auto& operation = graph.layers[i].operation;
    if (const auto* convolution = std::get_if<models::Convolution>(&operation)) {
      all[i].weight = tensor_of(convolution->weight, type, device);
      all[i].bias = tensor_of(convolution->bias, type, device);
    } else if (const auto* up = std::get_if<models::TransposedConvolution>(&operation)) {
      all[i].weight = tensor_of(up->weight, type, device);
      all[i].bias = tensor_of(up->bias, type, device);
    } else if (const auto* linear = std::get_if<models::Linear>(&operation)) {
      all[i].weight = tensor_of(linear->weight, type, device);
      all[i].bias = tensor_of(linear->bias, type, device);
    } else if (const auto* norm = std::get_if<models::BatchNorm>(&operation)) {
      all[i].scale = tensor_of(norm->scale, type, device);
      all[i].shift = tensor_of(norm->shift, type, device);
      all[i].mean = tensor_of(norm->mean, type, device);
      all[i].variance = tensor_of(norm->variance, type, device);
    }
  }
  return all;
}

const char* call_name(const models::Operation& operation) {
  return std::visit(Namer{}, operation);
}

bool needs_explicit_padding(const models::Pool& pool) {
  return pool.pad_top != pool.pad_bottom || pool.pad_left != pool.pad_right || 2 * pool.pad_top > pool.kernel_h ||
         2 * pool.pad_left > pool.kernel_w;
}

at::Tensor apply(const models::Layer& layer, const LayerWeights& weights, std::span<const at::Tensor> inputs) {
  return std::visit(Caller{layer, weights, inputs}, layer.operation);
}

}  // namespace strobe::engines::torch_plugin
