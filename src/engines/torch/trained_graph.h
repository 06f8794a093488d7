// A Graph whose weights change: the tensors that gradients are kept for, the layers that training runs in their own
// way, and the graph with the weights as they have become.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <string>
#include <vector>

#include "operations.h"
#include "strobe/models/graph.h"

namespace strobe::engines::torch_plugin {

struct Parameter {
  std::string name;  // "layer1.0.conv1.weight"
  at::Tensor value;
  bool decays = false;
  at::Tensor mean, square;  // the optimizer's: momentum buffer or first moment; second moment
};

class TrainedGraph {
 public:
  // keeps_square: the optimizer has a second moment. Parameters are added to `parameters`.
  TrainedGraph(std::shared_ptr<const models::Graph> graph, bool keeps_square, c10::Device device,
               std::vector<Parameter>& parameters);

  const models::Graph& graph() const { return *graph_; }
  // Every layer's output; those that the backward pass does not need are freed by the automatic differentiation.
  std::vector<at::Tensor> run(const at::Tensor& input, at::Generator& generator);
  models::Graph with_weights() const;

 private:
  at::Tensor run_layer(size_t id, const models::Layer& layer, std::span<const at::Tensor> inputs,
                       at::Generator& generator);
  std::shared_ptr<const models::Graph> graph_;
  std::vector<LayerWeights> weights_;
};

// In host memory; waits for the current stream of a GPU.
models::Weights copy_of(const at::Tensor& tensor);

}  // namespace strobe::engines::torch_plugin
