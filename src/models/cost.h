// What a layer costs by its shapes alone, for one item.
#pragma once

#include <cstdint>

#include "strobe/models/graph.h"

namespace strobe::models {

struct Cost {
  int64_t parameters = 0;
  int64_t flop = 0;   // a multiply-add counts 2
  int64_t bytes = 0;  // inputs, weights and outputs moved once, float32
  Cost& operator+=(const Cost& other);
};

Cost layer_cost(const Graph& graph, LayerId id);
Cost graph_cost(const Graph& graph);

// The most bytes of tensors of one item that are alive at once while layers run one after the other: a layer's inputs
// and output, and what later layers still read. A tensor goes after its last reader, the network's outputs stay.
// Flatten, Dropout and heads share their input's tensor; nothing else is in place. Engines reuse and pad memory in ways
// of their own: a lower bound for those that keep every layer's output apart.
struct ActivationPeak {
  int64_t bytes = 0;
  LayerId layer = 0;  // while it runs
};
ActivationPeak activation_peak(const Graph& graph);

}  // namespace strobe::models
