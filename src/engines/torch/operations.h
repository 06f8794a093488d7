// Layers of a Graph as calls of ATen, one call a layer.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <span>
#include <vector>

#include "strobe/models/graph.h"

namespace strobe::engines::torch_plugin {

// The weights of a graph as tensors, in the precision and on the device in which it runs. In float32 on the CPU they
// share the graph's memory.
struct LayerWeights {
  at::Tensor weight, bias;                  // of convolution and linear
  at::Tensor scale, shift, mean, variance;  // of batch norm
};
std::vector<LayerWeights> tensors_of(const models::Graph& graph, at::ScalarType type,
                                     c10::Device device = c10::Device(c10::DeviceType::CPU));

// The name of the call that runs a layer, e.g. "aten::conv2d"; empty for an identity.
const char* call_name(const models::Operation& operation);

// Runs a layer. All tensors are 4-D. An identity returns its input.
at::Tensor apply(const models::Layer& layer, const LayerWeights& weights, std::span<const at::Tensor> inputs);

// Whether max-pool padding must be written out: ATen pads both sides alike and by at most half a kernel.
bool needs_explicit_padding(const models::Pool& pool);

}  // namespace strobe::engines::torch_plugin
