#include "models/cost.h"

#include <limits>

#include "models/graph_builder.h"

namespace strobe::models {
namespace {

constexpr int64_t kBytesPerNumber = 4;

int64_t saturating_sum(int64_t a, int64_t b) {
  int64_t sum = 0;
  return __builtin_add_overflow(a, b, &sum) ? std::numeric_limits<int64_t>::max() : sum;
}

// FLOP of one operation; docs/models.md has the table.
struct Flop {
  const Shape& in;
  const Shape& out;
  size_t inputs;

  int64_t operator()(const Convolution& op) const {
    const int64_t per_output = 2 * (in.channels / op.groups) * op.kernel_h * op.kernel_w + (op.bias ? 1 : 0);
    return per_output * out.elements();
  }
  // Each input pixel adds its kernel to the output; what is cut as padding is counted, too.
  int64_t operator()(const TransposedConvolution& op) const {
    return 2 * in.elements() * op.out_channels * op.kernel_h * op.kernel_w + (op.bias ? out.elements() : 0);
  }
  int64_t operator()(const Linear& op) const { return (2 * in.channels + (op.bias ? 1 : 0)) * op.out_features; }
  int64_t operator()(const BatchNorm&) const { return 2 * out.elements(); }  // one multiply-add once folded
  int64_t operator()(const Activation& op) const { return op.kind == ActivationKind::kLinear ? 0 : out.elements(); }
  int64_t operator()(const Pool& op) const { return op.kernel_h * op.kernel_w * out.elements(); }
  int64_t operator()(const GlobalAveragePool&) const { return in.elements(); }
  int64_t operator()(const Add&) const { return static_cast<int64_t>(inputs - 1) * out.elements(); }
  int64_t operator()(const Softmax&) const { return 3 * out.elements(); }  // exp, sum, divide
  template <typename MovesOnly>
  int64_t operator()(const MovesOnly&) const {
    return 0;
  }
};

// Layers that only give their input a new name move nothing.
bool is_view(const Operation& operation) {
  return std::holds_alternative<Input>(operation) || std::holds_alternative<Flatten>(operation) ||
         std::holds_alternative<Dropout>(operation) || std::holds_alternative<YoloHead>(operation);
}

}  // namespace

Cost& Cost::operator+=(const Cost& other) {
  parameters = saturating_sum(parameters, other.parameters);
  flop = saturating_sum(flop, other.flop);
  bytes = saturating_sum(bytes, other.bytes);
  return *this;
}

Cost layer_cost(const Graph& graph, LayerId id) {
  const Layer& layer = graph.layer(id);
  Cost cost;
  if (is_view(layer.operation)) return cost;
  // Batch norm's running statistics are moved but not learned.
  const int64_t weights = weight_count(layer.operation);
  cost.parameters = std::holds_alternative<BatchNorm>(layer.operation) ? weights / 2 : weights;
  int64_t moved = weights + layer.output.elements();
  for (const LayerId input : layer.inputs) {
    const bool is_slice = std::holds_alternative<Slice>(layer.operation);
    moved += is_slice ? layer.output.elements() : graph.layer(input).output.elements();
  }
  cost.bytes = kBytesPerNumber * moved;
  cost.flop =
      std::visit(Flop{graph.layer(layer.inputs.front()).output, layer.output, layer.inputs.size()}, layer.operation);
  return cost;
}

Cost graph_cost(const Graph& graph) {
  Cost sum;
  for (LayerId id = 0; id < static_cast<LayerId>(graph.layers.size()); ++id) sum += layer_cost(graph, id);
  return sum;
}

}  // namespace strobe::models
