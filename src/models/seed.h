// Seeded weights: a network without trained weights computes the same nonsense everywhere, at its real cost.
#pragma once

#include <cstdint>

#include "strobe/base/result.h"
#include "strobe/models/graph.h"

namespace strobe::models {

// Fills every declared weight and sets graph.trained = false. Convolutions and linear layers follow He et al. 2015
// (uniform, variance 2 / fan-in) so that activations neither vanish nor explode; batch norms are the identity; the
// layer before a YOLO head starts at an objectness near 0.01, so that post-processing sees few boxes, as with a trained
// network. Same seed, same bits, on every platform. Errors: kUnsupported when the weights would not fit in 1 GiB.
Result<void> seed_weights(Graph& graph, uint64_t seed);

}  // namespace strobe::models
