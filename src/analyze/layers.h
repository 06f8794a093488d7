// Analyses of the network's layers and of the kernels in which the engine executed them.
#pragma once

#include "base/table.h"
#include "strobe/trace/timeline.h"

namespace strobe::analyze {

// One row a source layer: layer, type, shape, parameters, mflop, kbytes, mean_us, p50_us, p99_us, share, gflops (per
// second), kernel. A kernel that fused several layers gives its time to them in proportion to their FLOP (bytes where
// no layer has FLOP); the note says that such a split is an estimate. Layers that vanished (folded away) have no time.
Table layers(const trace::Timeline& timeline);

// One row an executed kernel: kernel, type, implementation, layers (names joined by "+"), layer_count, mean_us, p50_us,
// p99_us, share. Last: coverage = share of the source layers that are found in some kernel.
Table fusion(const trace::Timeline& timeline);

}  // namespace strobe::analyze
