// What a training step (forward, backward, update) holds of a device's memory, by following every tensor from its
// allocation to its release in the order in which an eager framework with reverse-mode differentiation runs it.
//
// Kept from forward until its own backward: the input of conv, bn, linear, maxpool and avgpool, the output of
// activations and softmax; 8 bytes an element of a maxpool's output (indices), 8 bytes a channel of a bn. Operations in
// place share their input's tensor. Backward allocates the gradient of each input (two of one tensor are added into a
// third) and of the parameters. Parameters, their gradients and the update's state are not in it: see parameter_bytes.
#pragma once

#include <cstdint>

#include "predict/layer_list.h"

namespace strobe::predict {

// Bytes of workspace that a library takes for the gradient of a convolution's input, as a multiple of the bytes of
// input and output, where the kernel is larger than 1 x 1 and the convolution is not depthwise. In the non-fused
// Winograd F(4x4, 3x3) a tile of 4 x 4 numbers becomes one of 6 x 6 on both sides: 36 / 16.
inline constexpr double kWinogradWorkspace = 2.25;

struct StepMemory {
  double peak_live = 0;  // bytes, of activations, gradients of activations, temporaries and workspace
  double reserved = 0;   // bytes that the caching allocator asks of the device for them
};

// batch >= 1. A list without rows needs nothing.
StepMemory training_step_memory(const LayerList& layers, int64_t batch, double workspace = kWinogradWorkspace);

// What a forward pass holds when nobody asks for gradients: each tensor lives from its row to the last row that reads
// it, the result and the input to the end; no workspace. reserved is 0 for a list without rows, as above.
StepMemory inference_memory(const LayerList& layers, int64_t batch);

double parameter_bytes(const LayerList& layers);  // of 4 bytes each, once
// Bytes of an item of the distinct tensors that live from forward to backward.
double saved_bytes(const LayerList& layers);

}  // namespace strobe::predict
