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

}  // namespace strobe::models
