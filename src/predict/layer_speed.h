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
  // A GPU: layers are launched one after the other while it works, and it waits for what is not launched yet.
  bool queued = false;
  double copy_gb_s = 0;  // of inputs and outputs, which are elsewhere; 0: they are where they are used
};

// Of each layer of the graph, for a whole batch, ms; 0 where a layer ends in another's kernel or does nothing.
// Convolutions count channels rounded up to 8, as vector units see them, but for the few of a picture.
std::vector<double> layer_times_ms(const models::Graph& graph, int64_t batch, const InferenceDevice& device);

// Sum of those, and what copying inputs and outputs takes.
double inference_time_ms(const models::Graph& graph, int64_t batch, const InferenceDevice& device);

// Of that, what the device itself works: no launches, no copies. Batches of several sessions cannot share it.
double device_time_ms(const models::Graph& graph, int64_t batch, const InferenceDevice& device);

// Bytes that a session needs besides its engine: parameters once, and the most activations that are alive at a time.
int64_t inference_bytes(const models::Graph& graph, int64_t batch);

// The same of a GPU under a caching allocator, for several sessions, each with a stream of its own, whose memory the
// others cannot take: parameters once, and what the allocator reserves for each (predict/training_memory.h). Neither
// the process's context nor workspaces of libraries are in it.
int64_t reserved_inference_bytes(const models::Graph& graph, int64_t batch, int sessions);

}  // namespace strobe::predict
