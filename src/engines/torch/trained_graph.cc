#include "trained_graph.h"

#include <ATen/ATen.h>

namespace strobe::engines::torch_plugin {
namespace {

using models::LayerId;

constexpr double kNormMomentum = 0.1;  // of the running means of batch norm, as PyTorch has it

}  // namespace

models::Weights copy_of(const at::Tensor& tensor) {
  if (!tensor.defined()) return nullptr;
  const at::Tensor values = tensor.detach().to(at::kCPU, at::kFloat).contiguous();
  const auto* begin = values.const_data_ptr<float>();
  return std::make_shared<const models::Tensor>(
      models::Tensor{values.sizes().vec(), std::vector<float>(begin, begin + values.numel())});
}

TrainedGraph::TrainedGraph(std::shared_ptr<const models::Graph> graph, bool keeps_square, c10::Device device,
                           std::vector<Parameter>& parameters)
    : graph_(std::move(graph)) {
  // A private copy that gradients are kept for: the graph's own memory is shared and constant, and on the CPU the
  // tensors are that memory.
  const auto own_copy = [&](const at::Tensor& tensor) { return device.is_cpu() ? tensor.clone() : tensor; };
  const auto add = [&](std::string name, at::Tensor& tensor, bool decays) {
    if (!tensor.defined()) return;
    tensor = own_copy(tensor);
    tensor.set_requires_grad(true);
    Parameter parameter{std::move(name), tensor, decays, at::zeros_like(tensor.detach()), {}};
    if (keeps_square) parameter.square = at::zeros_like(tensor.detach());
    parameters.push_back(std::move(parameter));
  };
  weights_ = tensors_of(*graph_, at::kFloat, device);
  for (size_t id = 0; id < weights_.size(); ++id) {
    const std::string& layer = graph_->layers[id].name;
    LayerWeights& own = weights_[id];
    add(layer + ".weight", own.weight, true);
    add(layer + ".bias", own.bias, false);
    add(layer + ".weight", own.scale, false);
    add(layer + ".bias", own.shift, false);
    if (own.mean.defined()) own.mean = own_copy(own.mean);
    if (own.variance.defined()) own.variance = own_copy(own.variance);
  }
}

std::vector<at::Tensor> TrainedGraph::run(const at::Tensor& input, at::Generator& generator) {
  std::vector<at::Tensor> values(graph_->layers.size());
  std::vector<at::Tensor> arguments;
  for (size_t id = 0; id < values.size(); ++id) {
    const models::Layer& layer = graph_->layers[id];
    arguments.clear();
    if (id == 0) arguments.push_back(input);
    for (const LayerId source : layer.inputs) arguments.push_back(values[static_cast<size_t>(source)]);
    values[id] = run_layer(id, layer, arguments, generator);
  }
  return values;
}

at::Tensor TrainedGraph::run_layer(size_t id, const models::Layer& layer, std::span<const at::Tensor> inputs,
                                   at::Generator& generator) {
  LayerWeights& own = weights_[id];
  if (const auto* norm = std::get_if<models::BatchNorm>(&layer.operation)) {
    // One value a channel has no variance: PyTorch refuses it, and so would the statistics be meaningless.
    const at::Tensor& x = inputs.front();
    const bool several = x.size(0) * x.size(2) * x.size(3) > 1;
    return at::batch_norm(x, own.scale, own.shift, own.mean, own.variance, /*training=*/several, kNormMomentum,
                          norm->epsilon, /*cudnn_enabled=*/!x.is_cpu());
  }
  if (const auto* dropout = std::get_if<models::Dropout>(&layer.operation)) {
    const at::Tensor& x = inputs.front();
    const double kept = 1 - dropout->probability;
    return x * at::empty(x.sizes(), x.options()).bernoulli_(kept, generator) / kept;
  }
  return apply(layer, own, inputs);
}

models::Graph TrainedGraph::with_weights() const {
  models::Graph trained = *graph_;
  trained.trained = true;
  for (size_t id = 0; id < weights_.size(); ++id) {
    const LayerWeights& own = weights_[id];
    models::Operation& operation = trained.layers[id].operation;
    if (auto* convolution = std::get_if<models::Convolution>(&operation)) {
      convolution->weight = copy_of(own.weight);
      convolution->bias = copy_of(own.bias);
    } else if (auto* up = std::get_if<models::TransposedConvolution>(&operation)) {
      up->weight = copy_of(own.weight);
      up->bias = copy_of(own.bias);
    } else if (auto* linear = std::get_if<models::Linear>(&operation)) {
      linear->weight = copy_of(own.weight);
      linear->bias = copy_of(own.bias);
    } else if (auto* norm = std::get_if<models::BatchNorm>(&operation)) {
      norm->scale = copy_of(own.scale);
      norm->shift = copy_of(own.shift);
      norm->mean = copy_of(own.mean);
      norm->variance = copy_of(own.variance);
    }
  }
  return trained;
}

}  // namespace strobe::engines::torch_plugin
