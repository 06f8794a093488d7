// Runs a Graph on plain loops in double precision: slow, obvious, and independent of every engine. What engines compute
// is checked against it.
#pragma once

#include <span>
#include <vector>

#include "strobe/models/graph.h"

namespace strobe::test {

// Values of one item after each layer, indexed by layer id. input: channels, height, width of the graph's input.
std::vector<std::vector<float>> run_reference(const models::Graph& graph, std::span<const float> input);

}  // namespace strobe::test
