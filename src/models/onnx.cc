#include "models/onnx.h"

#include <fmt/format.h>

#include <bit>
#include <cstring>
#include <limits>
#include <optional>
#include <span>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/proto.h"
#include "models/graph_builder.h"

namespace strobe::models {
namespace {

// Field numbers and codes of onnx.proto.
namespace model {
constexpr uint32_t kIrVersion = 1, kProducer = 2, kGraph = 7, kOpset = 8;
}
namespace opset {
constexpr uint32_t kVersion = 2;
}
namespace graph_of {
constexpr uint32_t kNode = 1, kName = 2, kInitializer = 5, kInput = 11, kOutput = 12;
}
namespace node_of {
constexpr uint32_t kInput = 1, kOutput = 2, kName = 3, kType = 4, kAttribute = 5;
}
namespace attribute_of {
constexpr uint32_t kName = 1, kReal = 2, kInteger = 3, kText = 4, kIntegers = 8, kType = 20;
constexpr uint64_t kRealType = 1, kIntegerType = 2, kTextType = 3, kIntegersType = 7;
}  // namespace attribute_of
namespace tensor_of {
constexpr uint32_t kDims = 1, kType = 2, kName = 8, kRaw = 9;
}
namespace value_of {
constexpr uint32_t kName = 1, kType = 2, kTensorType = 1, kElement = 1, kShape = 2, kDim = 1, kDimValue = 1,
                   kDimName = 2;
}
constexpr uint64_t kFloat = 1, kInt64 = 7, kFloat16 = 10, kBfloat16 = 16;
constexpr uint64_t kIr = 8, kOpsetVersion = 17;  // both of ONNX 1.12

constexpr int64_t kLargestFile = std::numeric_limits<int32_t>::max();  // what protocol buffers can hold

// Nearest, ties to even; what is too large becomes infinite, as in every framework.
uint16_t half_of(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const uint32_t sign = bits >> 16 & 0x8000, size = bits & 0x7fffffff;
  constexpr uint32_t kInfinite = 0x7f800000, kOverflow = 0x477ff000, kSmallestNormal = 0x38800000;
  if (size > kInfinite) return static_cast<uint16_t>(sign | 0x7e00);
  if (size >= kOverflow) return static_cast<uint16_t>(sign | 0x7c00);
  if (size >= kSmallestNormal) {
    const uint32_t rounded = size + 0xfff + (size >> 13 & 1);
    return static_cast<uint16_t>(sign | (rounded - 0x38000000) >> 13);
  }
  // Added to 0.5 it loses all bits below those of a subnormal half, rounded as floats are.
  const float shifted = std::bit_cast<float>(size) + 0.5F;
  return static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(shifted) - std::bit_cast<uint32_t>(0.5F)));
}

uint16_t bfloat_of(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7fffffff) > 0x7f800000) return static_cast<uint16_t>(bits >> 16 | 0x40);
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

template <typename Number>
std::string raw_bytes(std::span<const Number> values) {
  static_assert(std::endian::native == std::endian::little, "a tensor's bytes are little-endian");
  return {reinterpret_cast<const char*>(values.data()), values.size_bytes()};
}

// One attribute of a node.
struct Attribute {
  const char* name;
  std::optional<float> real{};
  std::optional<int64_t> integer{};
  std::string_view text{};
  std::vector<int64_t> integers{};
};
Attribute real(const char* name, float value) {
  return {.name = name, .real = value};
}
Attribute integer(const char* name, int64_t value) {
  return {.name = name, .integer = value};
}
Attribute text(const char* name, std::string_view value) {
  return {.name = name, .text = value};
}
Attribute integers(const char* name, std::vector<int64_t> values) {
  return {.name = name, .integers = std::move(values)};
}
using Attributes = std::vector<Attribute>;

ProtoMessage message_of(const Attribute& attribute) {
  using namespace attribute_of;
  ProtoMessage message;
  message.text(kName, attribute.name);
  if (attribute.real) {
    message.real32(kReal, *attribute.real);
    message.integer(kType, kRealType);
  } else if (attribute.integer) {
    message.integer_signed(kInteger, *attribute.integer);
    message.integer(kType, kIntegerType);
  } else if (!attribute.text.empty()) {
    message.text(kText, attribute.text);
    message.integer(kType, kTextType);
  } else {
    for (const int64_t value : attribute.integers) message.integer_signed(kIntegers, value);
    message.integer(kType, kIntegersType);
  }
  return message;
}

bool passes_through(const Operation& operation) {
  if (const auto* activation = std::get_if<Activation>(&operation)) return activation->kind == ActivationKind::kLinear;
  return std::holds_alternative<Dropout>(operation) || std::holds_alternative<YoloHead>(operation);
}

class Writer {
 public:
  Writer(const Graph& graph, const OnnxOptions& options) : graph_(graph), options_(options) {}

  Result<std::string> run(int64_t weight_bytes) {
    body_.reserve(static_cast<size_t>(weight_bytes) + graph_.layers.size() * kRoomALayer);
    name_values();
    ends();
    for (size_t id = 0; id < graph_.layers.size(); ++id) {
      layer_ = &graph_.layers[id];
      id_ = id;
      inputs_.clear();
      for (const LayerId source : layer_->inputs) inputs_.push_back(values_[static_cast<size_t>(source)]);
      std::visit(*this, layer_->operation);
    }
    for (const ExtraOutput& extra : extra_outputs_) {
      const std::string& value = values_[static_cast<size_t>(extra.layer)];
      if (reduced())
        node("Cast", extra.node, {value}, extra.name, {integer("to", kFloat)});
      else
        node("Identity", extra.node, {value}, extra.name);
    }
    if (!taken_twice_.empty())
      return bad_data(fmt::format("{}: two things would be called {}; rename a layer", graph_.name, taken_twice_));
    body_.text(graph_of::kName, graph_.name.empty() ? "network" : graph_.name);

    ProtoMessage file, version;
    version.text(1, "");  // the domain of ONNX's own operations
    version.integer(opset::kVersion, kOpsetVersion);
    file.reserve(body_.bytes().size() + kRoomALayer);
    file.integer(model::kIrVersion, kIr);
    file.text(model::kProducer, "strobe");
    file.message(model::kGraph, body_);
    file.message(model::kOpset, version);
    return std::move(file).take();
  }

  // What each operation is; the layer and its inputs' values are members.
  void operator()(const Input&) {
    if (reduced()) helper("Cast", "number", {layer_->name}, values_[id_], {integer("to", element())});
  }
  void operator()(const Dropout&) {}
  void operator()(const YoloHead&) {}

  void operator()(const Convolution& c) {
    std::vector<std::string> inputs{x(), weights("weight", c.weight)};
    if (c.bias != nullptr) inputs.push_back(weights("bias", c.bias));
    own("Conv", inputs,
        {integers("kernel_shape", {c.kernel_h, c.kernel_w}), integers("strides", {c.stride_h, c.stride_w}),
         integers("pads", {c.pad_h, c.pad_w, c.pad_h, c.pad_w}), integers("dilations", {c.dilation, c.dilation}),
         integer("group", c.groups)});
  }

  void operator()(const TransposedConvolution& c) {
    const Attributes attributes{integers("kernel_shape", {c.kernel_h, c.kernel_w}),
                                integers("strides", {c.stride_h, c.stride_w}),
                                integers("pads", {c.pad_h, c.pad_w, c.pad_h, c.pad_w})};
    if (options_.number != OnnxNumber::kBf16) {
      std::vector<std::string> inputs{x(), weights("weight", c.weight)};
      if (c.bias != nullptr) inputs.push_back(weights("bias", c.bias));
      return node("ConvTranspose", layer_->name, inputs, values_[id_], attributes);
    }
    // TensorRT (11.1) has it of no bfloat16: it is done in float32.
    std::vector<std::string> inputs{step("Cast", "wide", {x()}, {integer("to", kFloat)}),
                                    floats("weight", c.weight->shape, c.weight->values)};
    if (c.bias != nullptr) inputs.push_back(floats("bias", c.bias->shape, c.bias->values));
    const std::string wide = layer_->name + "#wide_sum";
    node("ConvTranspose", layer_->name, inputs, wide, attributes);
    helper("Cast", "number", {wide}, values_[id_], {integer("to", static_cast<int64_t>(element()))});
  }

  void operator()(const BatchNorm& b) {
    own("BatchNormalization",
        {x(), weights("scale", b.scale), weights("shift", b.shift), weights("mean", b.mean),
         weights("variance", b.variance)},
        {real("epsilon", b.epsilon)});
  }

  void operator()(const Activation& a) {
    switch (a.kind) {
      case ActivationKind::kLinear:
        return;
      case ActivationKind::kRelu:
        return own("Relu", {x()});
      case ActivationKind::kRelu6:
        return own("Clip", {x(), number("least", 0), number("most", 6)});
      case ActivationKind::kLeaky:
        return own("LeakyRelu", {x()}, {real("alpha", a.slope)});
      case ActivationKind::kLogistic:
        return own("Sigmoid", {x()});
      case ActivationKind::kMish:  // an operation of its own from opset 18 on
        return own("Mul", {x(), step("Tanh", "tanh", {step("Softplus", "softplus", {x()})})});
      case ActivationKind::kSwish:
        return own("Mul", {x(), step("Sigmoid", "sigmoid", {x()})});
      case ActivationKind::kTanh:
        return own("Tanh", {x()});
      case ActivationKind::kElu:
        return own("Elu", {x()}, {real("alpha", a.slope)});
      case ActivationKind::kHardSwish:
        if (options_.number != OnnxNumber::kBf16) return own("HardSwish", {x()});
        // TensorRT's parser (11.1) has it of no bfloat16.
        return own("Mul", {x(), step("HardSigmoid", "gate", {x()}, {real("alpha", 1.0F / 6), real("beta", 0.5F)})});
    }
  }

  void operator()(const Pool& p) {
    const auto kernel = integers("kernel_shape", {p.kernel_h, p.kernel_w});
    const auto strides = integers("strides", {p.stride_h, p.stride_w});
    const auto pads = integers("pads", {p.pad_top, p.pad_left, p.pad_bottom, p.pad_right});
    if (p.kind == Pool::Kind::kMax) return own("MaxPool", {x()}, {kernel, strides, pads});
    own("AveragePool", {x()}, {kernel, strides, pads, integer("count_include_pad", p.count_padding ? 1 : 0)});
  }

  void operator()(const GlobalAveragePool&) { own("GlobalAveragePool", {x()}); }
  void operator()(const Concat&) { own("Concat", inputs_, {integer("axis", 1)}); }

  void operator()(const Slice& s) {
    own("Slice", {x(), indices("begin", {s.begin}), indices("end", {s.end}), indices("axis", {1})});
  }

  void operator()(const Add&) {
    std::string sum = inputs_.front();
    for (size_t i = 1; i + 1 < inputs_.size(); ++i)
      sum = step("Add", fmt::format("partial{}", i).c_str(), {sum, inputs_[i]});
    own("Add", {sum, inputs_.back()});
  }

  void operator()(const Upsample& u) {
    const auto scale = static_cast<float>(u.scale);
    own("Resize", {x(), "", floats("scales", {4}, {1, 1, scale, scale})},
        {text("mode", "nearest"), text("coordinate_transformation_mode", "asymmetric"), text("nearest_mode", "floor")});
  }

  void operator()(const Flatten&) { own("Reshape", {x(), indices("shape", {0, -1, 1, 1})}); }

  // A matrix product knows two extents.
  void operator()(const Linear& l) {
    const std::string rows = step("Reshape", "rows", {x(), indices("rows_shape", {0, -1})});
    std::vector<std::string> inputs{rows, weights("weight", l.weight)};
    if (l.bias != nullptr) inputs.push_back(weights("bias", l.bias));
    const std::string product = layer_->name + "#product";
    node("Gemm", layer_->name, inputs, product, {integer("transB", 1)});
    helper("Reshape", "shape", {product, indices("out_shape", {0, l.out_features, 1, 1})}, values_[id_]);
  }

  void operator()(const Softmax&) { own("Softmax", {x()}, {integer("axis", 1)}); }

 private:
  static constexpr size_t kRoomALayer = 1024;

  // An output whose value has another name, or is of another type: made by a node more.
  struct ExtraOutput {
    LayerId layer;
    std::string node, name;
  };

  bool reduced() const { return options_.number != OnnxNumber::kF32; }
  uint64_t element() const {
    return options_.number == OnnxNumber::kF32 ? kFloat : options_.number == OnnxNumber::kF16 ? kFloat16 : kBfloat16;
  }
  const std::string& x() const { return inputs_.front(); }

  // The layer that computes what this one passes on.
  LayerId source(LayerId id) const {
    while (passes_through(graph_.layer(id).operation)) id = graph_.layer(id).inputs.front();
    return id;
  }

  // Names the value of each layer, so that outputs need as few nodes of their own as can be.
  void name_values() {
    for (const Layer& layer : graph_.layers) values_.push_back(reduced() ? layer.name + "#value" : layer.name);
    if (!reduced()) rename_passed_on_outputs();
    std::unordered_set<std::string> served;
    for (const LayerId output : graph_.outputs) {
      const Layer& layer = graph_.layer(output);
      const LayerId from = source(output);
      const bool again = !served.insert(layer.name).second;
      const std::string name = again ? fmt::format("{}#{}", layer.name, served.size()) : layer.name;
      if (again) served.insert(name);
      output_names_.push_back(name);
      if (!reduced() && !again && from != 0 && values_[static_cast<size_t>(from)] == name) continue;
      if (output == 0 && !again) output_names_.back() += "#output";
      const std::string& value = output_names_.back();
      const bool node_is_free = output != from && !reduced();
      extra_outputs_.push_back({from, value != layer.name || node_is_free ? value : value + "#output", value});
    }
    for (size_t id = 0; id < graph_.layers.size(); ++id)
      values_[id] = values_[static_cast<size_t>(source(static_cast<LayerId>(id)))];
  }

  // What an identity at the end passes on takes the identity's name, if it has no need of its own.
  void rename_passed_on_outputs() {
    std::unordered_set<LayerId> keep{0};
    for (const LayerId output : graph_.outputs)
      if (source(output) == output) keep.insert(output);
    for (const LayerId output : graph_.outputs)
      if (const LayerId from = source(output); keep.insert(from).second)
        values_[static_cast<size_t>(from)] = graph_.layer(output).name;
  }

  void ends() {
    body_.message(graph_of::kInput, value_info(graph_.layers.front().name, graph_.input_shape()));
    take(tensors_, graph_.layers.front().name);
    for (size_t i = 0; i < graph_.outputs.size(); ++i)
      body_.message(graph_of::kOutput, value_info(output_names_[i], graph_.layer(graph_.outputs[i]).output));
  }

  ProtoMessage value_info(const std::string& name, const Shape& item) const {
    ProtoMessage shape, tensor, type, value;
    const auto extent = [&shape](int64_t number) {
      ProtoMessage dim;
      dim.integer_signed(value_of::kDimValue, number);
      shape.message(value_of::kDim, dim);
    };
    if (options_.batch > 0) {
      extent(options_.batch);
    } else {
      ProtoMessage open;
      open.text(value_of::kDimName, "batch");
      shape.message(value_of::kDim, open);
    }
    extent(item.channels), extent(item.height), extent(item.width);
    tensor.integer(value_of::kElement, kFloat);
    tensor.message(value_of::kShape, shape);
    type.message(value_of::kTensorType, tensor);
    value.text(value_of::kName, name);
    value.message(value_of::kType, type);
    return value;
  }

  void take(std::unordered_set<std::string>& names, const std::string& name) {
    if (!names.insert(name).second) taken_twice_ = name;
  }

  void node(const char* type, const std::string& name, const std::vector<std::string>& inputs,
            const std::string& output, const Attributes& attributes = {}) {
    take(nodes_, name);
    take(tensors_, output);
    ProtoMessage message;
    for (const std::string& input : inputs) message.text(node_of::kInput, input);
    message.text(node_of::kOutput, output);
    message.text(node_of::kName, name);
    message.text(node_of::kType, type);
    for (const Attribute& one : attributes) message.message(node_of::kAttribute, message_of(one));
    body_.message(graph_of::kNode, message);
  }
  void own(const char* type, const std::vector<std::string>& inputs, const Attributes& attributes = {}) {
    node(type, layer_->name, inputs, values_[id_], attributes);
  }
  void helper(const char* type, const char* what, const std::vector<std::string>& inputs, const std::string& output,
              const Attributes& attributes = {}) {
    node(type, layer_->name + "#" + what, inputs, output, attributes);
  }
  // A helper whose value another node of the layer reads.
  std::string step(const char* type, const char* what, const std::vector<std::string>& inputs,
                   const Attributes& attributes = {}) {
    std::string output = layer_->name + "#" + what;
    helper(type, what, inputs, output, attributes);
    return output;
  }

  std::string initializer(const char* what, const std::vector<int64_t>& shape, uint64_t type, std::string_view raw) {
    std::string name = layer_->name + "#" + what;
    take(tensors_, name);
    ProtoMessage tensor;
    tensor.reserve(raw.size() + kRoomALayer);
    for (const int64_t extent : shape) tensor.integer_signed(tensor_of::kDims, extent);
    tensor.integer(tensor_of::kType, type);
    tensor.text(tensor_of::kName, name);
    tensor.text(tensor_of::kRaw, raw);
    body_.message(graph_of::kInitializer, tensor);
    return name;
  }
  std::string indices(const char* what, const std::vector<int64_t>& values) {
    return initializer(what, {static_cast<int64_t>(values.size())}, kInt64, raw_bytes(std::span(values)));
  }
  std::string floats(const char* what, const std::vector<int64_t>& shape, const std::vector<float>& values) {
    return initializer(what, shape, kFloat, raw_bytes(std::span(values)));
  }
  // In the network's numbers.
  std::string tensor(const char* what, const std::vector<int64_t>& shape, const std::vector<float>& values) {
    if (!reduced()) return floats(what, shape, values);
    std::vector<uint16_t> narrow(values.size());
    const auto convert = options_.number == OnnxNumber::kF16 ? half_of : bfloat_of;
    for (size_t i = 0; i < values.size(); ++i) narrow[i] = convert(values[i]);
    return initializer(what, shape, element(), raw_bytes(std::span<const uint16_t>(narrow)));
  }
  std::string weights(const char* what, const Weights& values) { return tensor(what, values->shape, values->values); }
  std::string number(const char* what, float value) { return tensor(what, {}, {value}); }

  const Graph& graph_;
  const OnnxOptions& options_;
  ProtoMessage body_;
  std::vector<std::string> values_;  // by layer: the value that its readers read
  std::vector<std::string> output_names_;
  std::vector<ExtraOutput> extra_outputs_;
  std::unordered_set<std::string> nodes_, tensors_;
  std::string taken_twice_;
  const Layer* layer_ = nullptr;
  size_t id_ = 0;
  std::vector<std::string> inputs_;
};

}  // namespace

Result<std::string> write_onnx(const Graph& graph, const OnnxOptions& options) {
  const int64_t bytes_a_weight = options.number == OnnxNumber::kF32 ? 4 : 2;
  int64_t bytes = 0;
  for (const Layer& layer : graph.layers) bytes += weight_count(layer.operation) * bytes_a_weight;
  const auto too_large = [&graph](int64_t size) {
    return unsupported(
        fmt::format("{}: {} bytes as ONNX, and a file of this form holds at most {} (weights in files "
                    "beside it are not written)",
                    graph.name, size, kLargestFile));
  };
  if (bytes > kLargestFile) return too_large(bytes);
  STROBE_TRY(validate(graph));
  STROBE_ASSIGN(std::string file, Writer(graph, options).run(bytes));
  if (static_cast<int64_t>(file.size()) > kLargestFile) return too_large(static_cast<int64_t>(file.size()));
  return file;
}

}  // namespace strobe::models
