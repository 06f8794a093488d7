#include "emit.h"

#include <openvino/core/shape.hpp>
#include <openvino/op/add.hpp>
#include <openvino/op/avg_pool.hpp>
#include <openvino/op/batch_norm.hpp>
#include <openvino/op/clamp.hpp>
#include <openvino/op/concat.hpp>
#include <openvino/op/constant.hpp>
#include <openvino/op/convolution.hpp>
#include <openvino/op/elu.hpp>
#include <openvino/op/group_conv.hpp>
#include <openvino/op/hswish.hpp>
#include <openvino/op/interpolate.hpp>
#include <openvino/op/matmul.hpp>
#include <openvino/op/max_pool.hpp>
#include <openvino/op/mish.hpp>
#include <openvino/op/parameter.hpp>
#include <openvino/op/prelu.hpp>
#include <openvino/op/reduce_mean.hpp>
#include <openvino/op/relu.hpp>
#include <openvino/op/reshape.hpp>
#include <openvino/op/result.hpp>
#include <openvino/op/sigmoid.hpp>
#include <openvino/op/slice.hpp>
#include <openvino/op/softmax.hpp>
#include <openvino/op/swish.hpp>
#include <openvino/op/tanh.hpp>
#include <openvino/runtime/tensor.hpp>

namespace strobe::engines::openvino_plugin {
namespace {

using models::ActivationKind;
using Value = ov::Output<ov::Node>;

size_t at(int64_t value) {
  return static_cast<size_t>(value);
}

struct Emitter {
  const models::Layer& layer;
  std::vector<Value> inputs;

  const Value& x() const { return inputs.front(); }

  // Makes an operation and names it: the layer's own one, or a helper of it.
  template <typename Op, typename... Args>
  Value own(Args&&... args) const {
    auto node = std::make_shared<Op>(std::forward<Args>(args)...);
    node->set_friendly_name(layer.name);
    return node->output(0);
  }
  template <typename Op, typename... Args>
  Value helper(const char* what, Args&&... args) const {
    auto node = std::make_shared<Op>(std::forward<Args>(args)...);
    node->set_friendly_name(layer.name + "#" + what);
    return node->output(0);
  }
  Value weights(const char* what, const models::Weights& tensor, const ov::Shape& shape) const {
    // A tensor over memory that is not its own; nothing writes to it.
    const ov::Tensor view(ov::element::f32, shape, const_cast<float*>(tensor->values.data()));
    return helper<ov::op::v0::Constant>(what, view);
  }
  Value integers(const char* what, const std::vector<int64_t>& values) const {
    return helper<ov::op::v0::Constant>(what, ov::element::i64, ov::Shape{values.size()}, values);
  }
  Value number(const char* what, float value) const {
    return helper<ov::op::v0::Constant>(what, ov::element::f32, ov::Shape{1}, value);
  }
  // {n, c, h, w} as {n, c * h * w}.
  Value rows() const {
    return helper<ov::op::v1::Reshape>("rows", x(), integers("rows_shape", {0, -1}), /*special_zero=*/true);
  }

  Value operator()(const models::Input&) const { return x(); }
  Value operator()(const models::Dropout&) const { return x(); }
  Value operator()(const models::YoloHead&) const { return x(); }

  Value operator()(const models::Convolution& c) const {
    const ov::Strides strides{at(c.stride_h), at(c.stride_w)};
    const ov::Strides dilations{at(c.dilation), at(c.dilation)};
    const ov::CoordinateDiff pads{static_cast<std::ptrdiff_t>(c.pad_h), static_cast<std::ptrdiff_t>(c.pad_w)};
    const auto& extents = c.weight->shape;
    ov::Shape shape(extents.begin(), extents.end());
    Value out;
    if (c.groups == 1) {
      out = own<ov::op::v1::Convolution>(x(), weights("weight", c.weight, shape), strides, pads, pads, dilations);
    } else {
      shape.front() /= at(c.groups);
      shape.insert(shape.begin(), at(c.groups));
      out = own<ov::op::v1::GroupConvolution>(x(), weights("weight", c.weight, shape), strides, pads, pads, dilations);
    }
    if (c.bias == nullptr) return out;
    return helper<ov::op::v1::Add>("bias", out, weights("bias_values", c.bias, {1, at(c.out_channels), 1, 1}));
  }

  Value operator()(const models::TransposedConvolution& c) const {
    const ov::CoordinateDiff pads{static_cast<std::ptrdiff_t>(c.pad_h), static_cast<std::ptrdiff_t>(c.pad_w)};
    const auto& extents = c.weight->shape;
    const Value out = own<ov::op::v1::ConvolutionBackpropData>(
        x(), weights("weight", c.weight, {extents.begin(), extents.end()}), ov::Strides{at(c.stride_h), at(c.stride_w)},
        pads, pads, ov::Strides{1, 1});
    if (c.bias == nullptr) return out;
    return helper<ov::op::v1::Add>("bias", out, weights("bias_values", c.bias, {1, at(c.out_channels), 1, 1}));
  }

  Value operator()(const models::BatchNorm& b) const {
    const ov::Shape shape{at(layer.output.channels)};
    return own<ov::op::v5::BatchNormInference>(x(), weights("scale", b.scale, shape), weights("shift", b.shift, shape),
                                               weights("mean", b.mean, shape), weights("variance", b.variance, shape),
                                               static_cast<double>(b.epsilon));
  }

  Value operator()(const models::Activation& a) const {
    switch (a.kind) {
      case ActivationKind::kLinear:
        return x();
      case ActivationKind::kRelu:
        return own<ov::op::v0::Relu>(x());
      case ActivationKind::kRelu6:
        return own<ov::op::v0::Clamp>(x(), 0.0, 6.0);
      case ActivationKind::kLeaky:
        return own<ov::op::v0::PRelu>(x(), number("slope", a.slope));
      case ActivationKind::kLogistic:
        return own<ov::op::v0::Sigmoid>(x());
      case ActivationKind::kMish:
        return own<ov::op::v4::Mish>(x());
      case ActivationKind::kSwish:
        return own<ov::op::v4::Swish>(x());
      case ActivationKind::kTanh:
        return own<ov::op::v0::Tanh>(x());
      case ActivationKind::kElu:
        return own<ov::op::v0::Elu>(x(), a.slope);
      case ActivationKind::kHardSwish:
        return own<ov::op::v4::HSwish>(x());
    }
    return x();
  }

  Value operator()(const models::Pool& p) const {
    const ov::Strides strides{at(p.stride_h), at(p.stride_w)};
    const ov::Shape begin{at(p.pad_top), at(p.pad_left)};
    const ov::Shape end{at(p.pad_bottom), at(p.pad_right)};
    const ov::Shape kernel{at(p.kernel_h), at(p.kernel_w)};
    if (p.kind == models::Pool::Kind::kMax) return own<ov::op::v1::MaxPool>(x(), strides, begin, end, kernel);
    return own<ov::op::v1::AvgPool>(x(), strides, begin, end, kernel, !p.count_padding);
  }

  Value operator()(const models::GlobalAveragePool&) const {
    return own<ov::op::v1::ReduceMean>(x(), integers("axes", {2, 3}), /*keep_dims=*/true);
  }

  Value operator()(const models::Concat&) const { return own<ov::op::v0::Concat>(inputs, 1); }

  Value operator()(const models::Slice& s) const {
    return own<ov::op::v8::Slice>(x(), integers("begin", {s.begin}), integers("end", {s.end}), integers("step", {1}),
                                  integers("axis", {1}));
  }

  Value operator()(const models::Add&) const {
    Value sum = inputs.front();
    for (size_t i = 1; i + 1 < inputs.size(); ++i) sum = helper<ov::op::v1::Add>("partial", sum, inputs[i]);
    return own<ov::op::v1::Add>(sum, inputs.back());
  }

  Value operator()(const models::Upsample& u) const {
    using Interpolate = ov::op::v4::Interpolate;
    Interpolate::InterpolateAttrs attributes;
    attributes.mode = Interpolate::InterpolateMode::NEAREST;
    attributes.shape_calculation_mode = Interpolate::ShapeCalcMode::SCALES;
    attributes.coordinate_transformation_mode = Interpolate::CoordinateTransformMode::ASYMMETRIC;
    attributes.nearest_mode = Interpolate::NearestMode::FLOOR;
    attributes.pads_begin = {0};
    attributes.pads_end = {0};
    const auto scale = static_cast<float>(u.scale);
    const Value scales =
        helper<ov::op::v0::Constant>("scales", ov::element::f32, ov::Shape{2}, std::vector<float>{scale, scale});
    return own<Interpolate>(x(), integers("size", {layer.output.height, layer.output.width}), scales,
                            integers("axes", {2, 3}), attributes);
  }

  Value operator()(const models::Flatten&) const {
    return own<ov::op::v1::Reshape>(x(), integers("shape", {0, -1, 1, 1}), /*special_zero=*/true);
  }

  Value operator()(const models::Linear& l) const {
    const auto& extents = l.weight->shape;
    Value out = own<ov::op::v0::MatMul>(rows(), weights("weight", l.weight, {extents.begin(), extents.end()}),
                                        /*transpose_a=*/false, /*transpose_b=*/true);
    if (l.bias != nullptr) {
      out = helper<ov::op::v1::Add>("bias", out, weights("bias_values", l.bias, {1, at(l.out_features)}));
    }
    return helper<ov::op::v1::Reshape>("shape", out, integers("out_shape", {0, l.out_features, 1, 1}),
                                       /*special_zero=*/true);
  }

  Value operator()(const models::Softmax&) const { return own<ov::op::v8::Softmax>(x(), 1); }
};

}  // namespace

std::shared_ptr<ov::Model> emit(const models::Graph& graph, int64_t batch) {
  const auto& input = graph.layers.front();
  const auto& shape = input.output;
  auto parameter = std::make_shared<ov::op::v0::Parameter>(
      ov::element::f32, ov::Shape{at(batch), at(shape.channels), at(shape.height), at(shape.width)});
  parameter->set_friendly_name(input.name);
  parameter->output(0).set_names({input.name});

  std::vector<Value> values{parameter->output(0)};
  for (size_t id = 1; id < graph.layers.size(); ++id) {
    const auto& layer = graph.layers[id];
    std::vector<Value> inputs;
    for (const models::LayerId source : layer.inputs) inputs.push_back(values[at(source)]);
    values.push_back(std::visit(Emitter{layer, std::move(inputs)}, layer.operation));
  }
  ov::ResultVector results;
  for (const models::LayerId id : graph.outputs) {
    auto result = std::make_shared<ov::op::v0::Result>(values[at(id)]);
    result->set_friendly_name(graph.layer(id).name + "#result");
    results.push_back(std::move(result));
  }
  return std::make_shared<ov::Model>(results, ov::ParameterVector{parameter}, graph.name);
}

std::string layer_of(const std::string& operation_name) {
  return operation_name.substr(0, operation_name.rfind('#'));
}

}  // namespace strobe::engines::openvino_plugin
