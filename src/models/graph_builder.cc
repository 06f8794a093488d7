#include "models/graph_builder.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <numeric>

#include "models/shape_inference.h"

namespace strobe::models {
namespace {

constexpr size_t kMaxLayers = 20'000;

// The shapes that an operation's weights must have, by slot role order; a missing bias stays missing.
void declare_missing(Operation& operation, const Shape& in) {
  const auto declare = [](Weights& slot, std::vector<int64_t> shape) {
    if (!slot) slot = declared_tensor(std::move(shape));
  };
  if (auto* conv = std::get_if<Convolution>(&operation)) {
    declare(conv->weight, {conv->out_channels, in.channels / conv->groups, conv->kernel_h, conv->kernel_w});
  } else if (auto* up = std::get_if<TransposedConvolution>(&operation)) {
    declare(up->weight, {in.channels, up->out_channels, up->kernel_h, up->kernel_w});
  } else if (auto* norm = std::get_if<BatchNorm>(&operation)) {
    for (Weights* slot : {&norm->scale, &norm->shift, &norm->mean, &norm->variance}) declare(*slot, {in.channels});
  } else if (auto* linear = std::get_if<Linear>(&operation)) {
    declare(linear->weight, {linear->out_features, in.channels});
  }
}

Result<void> check_weights(const Operation& operation, const Shape& in, bool values_too) {
  // What a bare copy would be given is what must be there.
  Operation bare = operation;
  for (const WeightSlot& slot : weight_slots(bare)) {
    if (slot.role != "bias") slot.tensor->reset();
  }
  declare_missing(bare, in);
  if (auto* conv = std::get_if<Convolution>(&bare); conv && conv->bias) {
    conv->bias = declared_tensor({conv->out_channels});
  }
  if (auto* up = std::get_if<TransposedConvolution>(&bare); up && up->bias) {
    up->bias = declared_tensor({up->out_channels});
  }
  if (auto* linear = std::get_if<Linear>(&bare); linear && linear->bias) {
    linear->bias = declared_tensor({linear->out_features});
  }
  Operation copy = operation;
  const std::vector<WeightSlot> expected = weight_slots(bare);
  const std::vector<WeightSlot> actual = weight_slots(copy);
  if (actual.size() != expected.size()) return bad_data("lacks some of its weights");
  for (size_t i = 0; i < expected.size(); ++i) {
    const Tensor& tensor = **actual[i].tensor;
    if (tensor.shape != (*expected[i].tensor)->shape) {
      return bad_data(fmt::format("its {} has a shape that does not fit the layer", actual[i].role));
    }
    if (values_too && static_cast<int64_t>(tensor.values.size()) != element_count(tensor)) {
      return bad_data(fmt::format("its {} has {} values, expected {}", actual[i].role, tensor.values.size(),
                                  element_count(tensor)));
    }
  }
  return {};
}

Result<void> validate_layer(const Graph& graph, size_t index) {
  const Layer& layer = graph.layers[index];
  if (std::holds_alternative<Input>(layer.operation)) return bad_data("only the first layer can be an input");
  std::vector<Shape> shapes;
  for (const LayerId id : layer.inputs) {
    if (id < 0 || static_cast<size_t>(id) >= index) {
      return bad_data(fmt::format("takes input from layer {}, expected an earlier one", id));
    }
    shapes.push_back(graph.layer(id).output);
  }
  STROBE_ASSIGN(const Shape inferred, infer_shape(layer.operation, shapes));
  if (inferred != layer.output) {
    return bad_data(fmt::format("says its output is {}, it is {}", layer.output.to_string(), inferred.to_string()));
  }
  return check_weights(layer.operation, shapes.front(), true);
}

std::string place(const std::string& layer_name) {
  return fmt::format("layer {}", layer_name);
}

}  // namespace

Result<LayerId> GraphBuilder::input(const Shape& shape, const InputRule& rule, std::string name) {
  if (!graph_.layers.empty()) return internal_error("a graph has one input, and it comes first");
  const Shape inputs[] = {shape};
  auto checked = infer_shape(Dropout{}, inputs);  // the identity, for its limits
  if (!checked) return std::move(checked).error().at("the input");
  graph_.input_rule = rule;
  return push(Layer{std::move(name), Input{}, {}, shape});
}

Result<LayerId> GraphBuilder::append(std::string name, Operation operation, std::vector<LayerId> inputs) {
  std::vector<Shape> shapes;
  for (const LayerId id : inputs) {
    if (id < 0 || static_cast<size_t>(id) >= graph_.layers.size()) {
      return bad_data(fmt::format("takes input from layer {}, expected an earlier one", id)).at(place(name));
    }
    shapes.push_back(shape(id));
  }
  auto output = infer_shape(operation, shapes);
  if (!output) return std::move(output).error().at(place(name));
  declare_missing(operation, shapes.front());
  if (auto fits = check_weights(operation, shapes.front(), false); !fits) {
    return std::move(fits).error().at(place(name));
  }
  return push(Layer{std::move(name), std::move(operation), std::move(inputs), *output});
}

Result<LayerId> GraphBuilder::push(Layer layer) {
  if (graph_.layers.size() >= kMaxLayers) return bad_data(fmt::format("more than {} layers", kMaxLayers));
  if (!names_.insert(layer.name).second) return bad_data("its name is taken").at(place(layer.name));
  graph_.layers.push_back(std::move(layer));
  return last();
}

Result<Graph> GraphBuilder::finish() && {
  if (graph_.layers.size() < 2) return bad_data("a network needs at least one layer");
  if (graph_.outputs.empty()) graph_.outputs.push_back(last());
  return std::move(graph_);
}

Weights declared_tensor(std::vector<int64_t> shape) {
  return std::make_shared<const Tensor>(Tensor{std::move(shape), {}});
}

int64_t element_count(const Tensor& tensor) {
  return std::accumulate(tensor.shape.begin(), tensor.shape.end(), int64_t{1}, std::multiplies<>());
}

std::vector<WeightSlot> weight_slots(Operation& operation) {
  std::vector<WeightSlot> slots;
  if (auto* conv = std::get_if<Convolution>(&operation)) {
    slots = {{"weight", &conv->weight}, {"bias", &conv->bias}};
  } else if (auto* up = std::get_if<TransposedConvolution>(&operation)) {
    slots = {{"weight", &up->weight}, {"bias", &up->bias}};
  } else if (auto* norm = std::get_if<BatchNorm>(&operation)) {
    slots = {{"scale", &norm->scale}, {"shift", &norm->shift}, {"mean", &norm->mean}, {"variance", &norm->variance}};
  } else if (auto* linear = std::get_if<Linear>(&operation)) {
    slots = {{"weight", &linear->weight}, {"bias", &linear->bias}};
  }
  std::erase_if(slots, [](const WeightSlot& slot) { return *slot.tensor == nullptr; });
  return slots;
}

int64_t weight_count(const Operation& operation) {
  Operation copy = operation;
  int64_t sum = 0;
  for (const WeightSlot& slot : weight_slots(copy)) sum += element_count(**slot.tensor);
  return sum;
}

Result<void> validate(const Graph& graph) {
  if (graph.layers.empty() || !std::holds_alternative<Input>(graph.layers.front().operation)) {
    return bad_data("the first layer of a graph must be its input");
  }
  std::unordered_set<std::string_view> names;
  for (size_t i = 0; i < graph.layers.size(); ++i) {
    const Layer& layer = graph.layers[i];
    if (!names.insert(layer.name).second) return bad_data("its name is taken").at(place(layer.name));
    if (i == 0) continue;
    if (auto sound = validate_layer(graph, i); !sound) return std::move(sound).error().at(place(layer.name));
  }
  if (graph.outputs.empty()) return bad_data("the graph has no output");
  for (const LayerId id : graph.outputs) {
    if (id < 0 || static_cast<size_t>(id) >= graph.layers.size()) {
      return bad_data(fmt::format("output {} is no layer of the graph", id));
    }
  }
  return {};
}

int64_t network_stride(const Graph& graph) {
  std::vector<int64_t> stride(graph.layers.size(), 1);
  int64_t coarsest = 1;
  for (size_t i = 1; i < graph.layers.size(); ++i) {
    const Layer& layer = graph.layers[i];
    const Step step = spatial_step(layer.operation);
    int64_t in = 1;
    for (const LayerId id : layer.inputs) in = std::max(in, stride[static_cast<size_t>(id)]);
    stride[i] = std::min(std::max<int64_t>(1, in * step.multiply / step.divide), kMaxDimension);
    if (std::holds_alternative<YoloHead>(layer.operation)) coarsest = std::max(coarsest, stride[i]);
  }
  return coarsest;
}

}  // namespace strobe::models
