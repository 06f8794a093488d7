// The fusion map by the logic of the graph, for what an engine's own report leaves out.
#pragma once

#include <string>
#include <vector>

#include "strobe/engines/engine.h"
#include "strobe/models/graph.h"

namespace strobe::engines {

// Whether the layer computes nothing at inference: input, dropout, YOLO head, linear activation. Engines emit no kernel
// for such a layer.
bool is_identity(const models::Layer& layer);

// Completes the fusion map. A convolution or linear layer that no kernel names goes to the kernel of the batch norm,
// activation or addition behind it, when that kernel has no such layer yet: folding weights makes a new operation,
// under the name of the last one. A batch norm, activation or addition goes to the kernel that makes its input, where
// nothing else reads that input and the network does not return it (of several such kernels to the last, since a sum
// cannot be ready before), else to the one that reads its output. Other layers without a kernel (a slice or flatten
// that became a view of memory) stay out. Names keep the order of the graph within a kernel; kernels stand in the order
// in which they run.
void complete_fusion(const models::Graph& graph, std::vector<Kernel>& kernels);

}  // namespace strobe::engines
