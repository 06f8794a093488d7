// What a layer takes in inference on a device of known speed: the longer of its operations and its bytes (Williams et
// al. 2009, "Roofline"), and what a layer costs that has nothing to do.
#pragma once

#include <cstdint>
#include <vector>

#include "predict/network_features.h"
#include "strobe/models/graph.h"

namespace strobe::predict {

struct InferenceDevice {
  DeviceLimits limits;  // of a session's threads
  // Batch norm and activation behind a convolution, and Add with the activation behind it, are done by its kernel.
  bool fuses = false;
};

// Of each layer of the graph, for a whole batch, ms; 0 where a layer ends in another's kernel or does nothing.
// Convolutions count channels rounded up to 8, as vector units see them, but for the few of a picture.
std::vector<double> layer_times_ms(const models::Graph& graph, int64_t batch, const InferenceDevice& device);

// Sum of those.
double inference_time_ms(const models::Graph& graph, int64_t batch, const InferenceDevice& device);

// Bytes that a session needs besides its engine: parameters once, and the most activations that are alive at a time.
int64_t inference_bytes(const models::Graph& graph, int64_t batch);

}  // namespace strobe::predict
