// Darknet .weights: a header and float32 numbers, layer after layer, into the declared weights of a Graph.
#pragma once

#include <string_view>

#include "strobe/base/result.h"
#include "strobe/models/graph.h"

namespace strobe::models {

// Every weight of the graph gets its values; nothing is allocated before the file is known to have exactly as many
// numbers as the graph needs. Errors: kBadData naming the layer at which the file ends, or how many numbers are left.
Result<void> load_darknet_weights(Graph& graph, std::string_view bytes);

}  // namespace strobe::models
