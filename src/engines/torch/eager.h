// Variant "eager": the plain framework. One call of ATen a layer, nothing fused, as a PyTorch module runs in inference
// mode; a layer's output is released when its last reader is done. Variant "graph": the same calls on a GPU, captured
// once a session as a CUDA graph and launched as one piece from then on.
#pragma once

#include <memory>

#include "strobe/base/result.h"
#include "strobe/engines/engine.h"

namespace strobe::engines::torch_plugin {

Result<std::unique_ptr<Network>> load_eager(std::shared_ptr<const models::Graph> graph, const LoadOptions& options);

}  // namespace strobe::engines::torch_plugin
