// A TensorRT engine on a GPU, and its sessions: an execution context and a stream each.
#pragma once

#include <memory>

#include "driver.h"
#include "plan.h"
#include "strobe/engines/engine.h"

namespace strobe::engines::tensorrt_plugin {

// graph: what the plan was built of; null for a file. name: of the network or file. Errors: kUsage (a batch or size
// that a compiled engine does not have), kUnsupported (ends that are no plain float32 tensors), kEngine.
Result<std::unique_ptr<Network>> make_network(Device device, const Tensorrt& tensorrt, Plan plan,
                                              const models::Graph* graph, const LoadOptions& options);

}  // namespace strobe::engines::tensorrt_plugin
