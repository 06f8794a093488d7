// A model compiled by OpenVINO for the CPU.
#pragma once

#include <memory>
#include <openvino/runtime/core.hpp>

#include "strobe/base/result.h"
#include "strobe/engines/engine.h"

namespace strobe::engines::openvino_plugin {

// graph: the model's source, kept alive with it; null when it was read from a file.
Result<std::unique_ptr<Network>> compile(ov::Core& core, const std::shared_ptr<ov::Model>& model,
                                         std::shared_ptr<const models::Graph> graph, const LoadOptions& options);

}  // namespace strobe::engines::openvino_plugin
