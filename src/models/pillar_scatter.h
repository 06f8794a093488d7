// Pillars back to their places: the map seen from above that a 2-D network reads.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace strobe::models {

// canvas: channels x cells, zero but for what the last call drew (`drawn`, the cells of that call; empty at first).
// features: channels x max_pillars; cells: one a pillar, each at most once. Only what was drawn before is cleared.
void scatter_pillars(std::span<const float> features, int64_t max_pillars, std::span<const int32_t> cells,
                     int64_t channels, std::span<float> canvas, std::vector<int32_t>& drawn, int threads = 1);

}  // namespace strobe::models
