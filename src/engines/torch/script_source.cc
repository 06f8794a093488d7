#include "script_source.h"

#include <fmt/format.h>

#include "operations.h"

namespace strobe::engines::torch_plugin {
namespace {

using models::ActivationKind;

// The expression of one layer; `id` names its weights, `x` its first input.
struct Writer {
  size_t id;
  const models::Layer& layer;
  std::string x;
  std::string all;  // every input, separated by commas

  std::string operator()(const models::Input&) const { return x; }
  std::string operator()(const models::Dropout&) const { return x; }
  std::string operator()(const models::YoloHead&) const { return x; }
  std::string operator()(const models::Convolution& c) const {
    return fmt::format("torch.conv2d({}, self.weight{}, {}, [{}, {}], [{}, {}], [{}, {}], {})", x, id,
                       c.bias ? fmt::format("self.bias{}", id) : "None", c.stride_h, c.stride_w, c.pad_h, c.pad_w,
                       c.dilation, c.dilation, c.groups);
  }
  std::string operator()(const models::TransposedConvolution& c) const {
    return fmt::format("torch.conv_transpose2d({}, self.weight{}, {}, [{}, {}], [{}, {}])", x, id,
                       c.bias ? fmt::format("self.bias{}", id) : "None", c.stride_h, c.stride_w, c.pad_h, c.pad_w);
  }
  std::string operator()(const models::BatchNorm& b) const {
    return fmt::format(
        "torch.batch_norm({0}, self.scale{1}, self.shift{1}, self.mean{1}, self.variance{1}, False, 0.1, {2:e}, False)",
        x, id, b.epsilon);
  }
  std::string operator()(const models::Activation& a) const {
    switch (a.kind) {
      case ActivationKind::kLinear:
        return x;
      case ActivationKind::kRelu:
        return fmt::format("torch.relu({})", x);
      case ActivationKind::kRelu6:
        return fmt::format("torch.relu6({})", x);
      case ActivationKind::kLeaky:
        return fmt::format("torch.leaky_relu({}, {:e})", x, a.slope);
      case ActivationKind::kLogistic:
        return fmt::format("torch.sigmoid({})", x);
      case ActivationKind::kMish:
        return fmt::format("torch.mish({})", x);
      case ActivationKind::kSwish:
        return fmt::format("torch.silu({})", x);
      case ActivationKind::kTanh:
        return fmt::format("torch.tanh({})", x);
      case ActivationKind::kElu:
        return fmt::format("torch.elu({}, {:e})", x, a.slope);
      case ActivationKind::kHardSwish:
        return fmt::format("torch.hardswish({})", x);
    }
    return x;
  }
  std::string operator()(const models::Pool& p) const {
    const bool written_out = needs_explicit_padding(p);
    const auto padded = [&](const std::string& tensor, const char* value) {
      if (!written_out) return tensor;
      return fmt::format("torch.constant_pad_nd({}, [{}, {}, {}, {}], {})", tensor, p.pad_left, p.pad_right, p.pad_top,
                         p.pad_bottom, value);
    };
    const std::string window = fmt::format("[{}, {}], [{}, {}], [{}, {}]", p.kernel_h, p.kernel_w, p.stride_h,
                                           p.stride_w, written_out ? 0 : p.pad_top, written_out ? 0 : p.pad_left);
    if (p.kind == models::Pool::Kind::kMax) {
      return fmt::format("torch.max_pool2d({}, {})", padded(x, "float('-inf')"), window);
    }
    const auto average = [&](const std::string& tensor, bool count_padding) {
      return fmt::format("torch.avg_pool2d({}, {}, False, {})", padded(tensor, "0."), window,
                         count_padding ? "True" : "False");
    };
    if (p.count_padding || !written_out) return average(x, p.count_padding);
    return average(x, true) + " / " + average(fmt::format("torch.ones_like({})", x), true);
  }
  std::string operator()(const models::GlobalAveragePool&) const {
    return fmt::format("torch.adaptive_avg_pool2d({}, [1, 1])", x);
  }
  std::string operator()(const models::Concat&) const { return fmt::format("torch.cat([{}], 1)", all); }
  std::string operator()(const models::Slice& s) const {
    return fmt::format("torch.narrow({}, 1, {}, {})", x, s.begin, s.end - s.begin);
  }
  std::string operator()(const models::Add&) const {
    std::string sum = all;
    for (size_t at = sum.find(", "); at != std::string::npos; at = sum.find(", ", at)) sum.replace(at, 2, " + ");
    return sum;
  }
  std::string operator()(const models::Upsample&) const {
    return fmt::format("torch.upsample_nearest2d({}, [{}, {}])", x, layer.output.height, layer.output.width);
  }
  std::string operator()(const models::Flatten&) const {
    return fmt::format("{0}.reshape([{0}.size(0), -1, 1, 1])", x);
  }
  std::string operator()(const models::Linear& l) const {
    return fmt::format(
        "torch.linear({0}.reshape([{0}.size(0), -1]), self.weight{1}, {2}).reshape([{0}.size(0), {3}, 1, "
        "1])",
        x, id, l.bias ? fmt::format("self.bias{}", id) : "None", l.out_features);
  }
  std::string operator()(const models::Softmax&) const { return fmt::format("torch.softmax({}, 1)", x); }
};

}  // namespace

ScriptSource script_source(const models::Graph& graph) {
  ScriptSource source;
  source.text = "def forward(self, x0: Tensor) -> List[Tensor]:\n";
  size_t line = 1;
  for (size_t id = 1; id < graph.layers.size(); ++id) {
    const auto& layer = graph.layers[id];
    std::string all;
    for (const models::LayerId input : layer.inputs) all += fmt::format("{}x{}", all.empty() ? "" : ", ", input);
    const std::string expression =
        std::visit(Writer{id, layer, fmt::format("x{}", layer.inputs.front()), all}, layer.operation);
    source.text += fmt::format("    x{} = {}\n", id, expression);
    source.line_of[line++] = layer.name;
  }
  std::string outputs;
  for (const models::LayerId id : graph.outputs) outputs += fmt::format("{}x{}", outputs.empty() ? "" : ", ", id);
  source.text += fmt::format("    return [{}]\n", outputs);
  return source;
}

}  // namespace strobe::engines::torch_plugin
