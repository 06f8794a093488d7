#include "emit.h"

#include <array>

#include "engines/fusion.h"

namespace strobe::engines::opencv_plugin {
namespace {

using cv::dnn::DictValue;
using cv::dnn::LayerParams;
using models::ActivationKind;

cv::Mat blob_of(const models::Weights& weights) {
  const std::vector<int> shape(weights->shape.begin(), weights->shape.end());
  // A matrix over memory that is not its own; nothing writes to it.
  return {shape, CV_32F, const_cast<float*>(weights->values.data())};
}

cv::Mat row_of(const models::Weights& weights) {
  return {1, static_cast<int>(weights->values.size()), CV_32F, const_cast<float*>(weights->values.data())};
}

DictValue integers(const std::array<int, 4>& values) {
  return DictValue::arrayInt(values.data(), 4);
}

// Fills the parameters of one layer and names its type.
struct Describer {
  const models::Layer& layer;
  LayerParams& params;

  void set(const char* key, int64_t value) const { params.set(key, static_cast<int>(value)); }

  const char* operator()(const models::Convolution& c) const {
    set("kernel_h", c.kernel_h);
    set("kernel_w", c.kernel_w);
    set("stride_h", c.stride_h);
    set("stride_w", c.stride_w);
    set("pad_h", c.pad_h);
    set("pad_w", c.pad_w);
    set("dilation_h", c.dilation);
    set("dilation_w", c.dilation);
    set("group", c.groups);
    set("num_output", c.out_channels);
    params.set("bias_term", c.bias != nullptr);
    params.blobs = {blob_of(c.weight)};
    if (c.bias != nullptr) params.blobs.push_back(row_of(c.bias));
    return "Convolution";
  }
  const char* operator()(const models::TransposedConvolution& c) const {
    set("kernel_h", c.kernel_h);
    set("kernel_w", c.kernel_w);
    set("stride_h", c.stride_h);
    set("stride_w", c.stride_w);
    set("pad_h", c.pad_h);
    set("pad_w", c.pad_w);
    set("num_output", c.out_channels);
    params.set("bias_term", c.bias != nullptr);
    params.blobs = {blob_of(c.weight)};
    if (c.bias != nullptr) params.blobs.push_back(row_of(c.bias));
    return "Deconvolution";
  }
  const char* operator()(const models::BatchNorm& b) const {
    params.set("eps", b.epsilon);
    params.set("has_weight", true);
    params.set("has_bias", true);
    params.blobs = {row_of(b.mean), row_of(b.variance), row_of(b.scale), row_of(b.shift)};
    return "BatchNorm";
  }
  const char* operator()(const models::Activation& a) const {
    switch (a.kind) {
      case ActivationKind::kLinear:
        return nullptr;
      case ActivationKind::kRelu:
        return "ReLU";
      case ActivationKind::kRelu6:
        return "ReLU6";
      case ActivationKind::kLeaky:
        return params.set("negative_slope", a.slope), "ReLU";
      case ActivationKind::kLogistic:
        return "Sigmoid";
      case ActivationKind::kMish:
        return "Mish";
      case ActivationKind::kSwish:
        return "Swish";
      case ActivationKind::kTanh:
        return "TanH";
      case ActivationKind::kElu:
        return params.set("alpha", a.slope), "ELU";
      case ActivationKind::kHardSwish:
        return "HardSwish";
    }
    return nullptr;
  }
  const char* operator()(const models::Pool& p) const {
    params.set("pool", p.kind == models::Pool::Kind::kMax ? "max" : "ave");
    set("kernel_h", p.kernel_h);
    set("kernel_w", p.kernel_w);
    set("stride_h", p.stride_h);
    set("stride_w", p.stride_w);
    set("pad_t", p.pad_top);
    set("pad_l", p.pad_left);
    set("pad_b", p.pad_bottom);
    set("pad_r", p.pad_right);
    params.set("ceil_mode", false);
    params.set("ave_pool_padded_area", p.count_padding);
    return "Pooling";
  }
  const char* operator()(const models::GlobalAveragePool&) const {
    params.set("pool", "ave");
    params.set("global_pooling", true);
    return "Pooling";
  }
  const char* operator()(const models::Concat&) const { return set("axis", 1), "Concat"; }
  const char* operator()(const models::Slice& s) const {
    params.set("begin", integers({0, static_cast<int>(s.begin), 0, 0}));
    params.set("size", integers({-1, static_cast<int>(s.end - s.begin), -1, -1}));
    return "Slice";
  }
  const char* operator()(const models::Add&) const { return params.set("operation", "sum"), "Eltwise"; }
  const char* operator()(const models::Upsample& u) const {
    set("zoom_factor", u.scale);
    params.set("interpolation", "nearest");
    return "Resize";
  }
  const char* operator()(const models::Flatten&) const { return params.set("dim", integers({0, -1, 1, 1})), "Reshape"; }
  const char* operator()(const models::Linear& l) const {
    set("num_output", l.out_features);
    set("axis", 1);
    params.set("bias_term", l.bias != nullptr);
    params.blobs = {blob_of(l.weight)};
    if (l.bias != nullptr) params.blobs.push_back(row_of(l.bias));
    return "InnerProduct";
  }
  const char* operator()(const models::Softmax&) const { return set("axis", 1), "Softmax"; }
  const char* operator()(const models::Input&) const { return nullptr; }
  const char* operator()(const models::Dropout&) const { return nullptr; }
  const char* operator()(const models::YoloHead&) const { return nullptr; }
};

int add(cv::dnn::Net& net, const std::string& name, const char* type, LayerParams& params) {
  params.name = name;
  params.type = type;
  return net.addLayer(name, type, params);
}

}  // namespace

Emitted emit(const models::Graph& graph) {
  Emitted emitted;
  cv::dnn::Net& net = emitted.net;
  net.setInputsNames({graph.layers.front().name});
  std::vector<int> ids{0};  // by layer; an identity has its input's
  std::vector<std::string> names{graph.layers.front().name};
  for (size_t i = 1; i < graph.layers.size(); ++i) {
    const auto& layer = graph.layers[i];
    const auto source = static_cast<size_t>(layer.inputs.front());
    LayerParams params;
    const char* type = is_identity(layer) ? nullptr : std::visit(Describer{layer, params}, layer.operation);
    if (type == nullptr) {
      ids.push_back(ids[source]);
      names.push_back(names[source]);
      continue;
    }
    int id = add(net, layer.name, type, params);
    for (size_t k = 0; k < layer.inputs.size(); ++k) {
      net.connect(ids[static_cast<size_t>(layer.inputs[k])], 0, id, static_cast<int>(k));
    }
    names.push_back(layer.name);
    if (std::holds_alternative<models::Linear>(layer.operation)) {
      // Back to four extents, as every layer here has them.
      LayerParams shape;
      shape.set("dim", integers({0, -1, 1, 1}));
      const int reshaped = add(net, layer.name + "#shape", "Reshape", shape);
      net.connect(id, 0, reshaped, 0);
      id = reshaped;
      names.back() += "#shape";
    }
    ids.push_back(id);
  }
  for (const models::LayerId output : graph.outputs) {
    std::string name = names[static_cast<size_t>(output)];
    if (ids[static_cast<size_t>(output)] == 0) {
      // OpenCV returns what its layers make; its input is no layer.
      name += "#copy";
      LayerParams none;
      if (net.getLayerId(name) < 0) net.connect(0, 0, add(net, name, "Identity", none), 0);
    }
    emitted.outputs.push_back(std::move(name));
  }
  return emitted;
}

}  // namespace strobe::engines::opencv_plugin
