#include "models/cost.h"

#include <limits>
#include <vector>

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

ActivationPeak activation_peak(const Graph& graph) {
  const size_t count = graph.layers.size();
  std::vector<size_t> tensor(count), last_use(count);  // the layer whose tensor it is; of a tensor, its last reader
  for (size_t i = 0; i < count; ++i) {
    const Layer& layer = graph.layers[i];
    const bool shares = i > 0 && is_view(layer.operation);
    tensor[i] = shares ? tensor[static_cast<size_t>(layer.inputs.front())] : i;
    last_use[tensor[i]] = i;
    for (const LayerId input : layer.inputs) last_use[tensor[static_cast<size_t>(input)]] = i;
  }
  for (const LayerId output : graph.outputs) last_use[tensor[static_cast<size_t>(output)]] = count;

  std::vector<std::vector<size_t>> ends(count + 1);
  for (size_t i = 0; i < count; ++i)
    if (tensor[i] == i) ends[last_use[i]].push_back(i);
  ActivationPeak peak;
  int64_t alive = 0;
  for (size_t i = 0; i < count; ++i) {
    if (tensor[i] == i) alive += kBytesPerNumber * graph.layers[i].output.elements();
    if (alive > peak.bytes) peak = {alive, static_cast<LayerId>(i)};
    for (const size_t gone : ends[i]) alive -= kBytesPerNumber * graph.layers[gone].output.elements();
  }
  return peak;
}

}  // namespace strobe::models
