// Networks in files that OpenVINO reads itself: ONNX and its own IR.
#pragma once

#include <filesystem>
#include <memory>
#include <openvino/runtime/core.hpp>

#include "strobe/base/result.h"
#include "strobe/engines/engine.h"

namespace strobe::engines::openvino_plugin {

// Reads the model, sets the batch and open extents, and makes its inputs and outputs float32. Errors: kBadData,
// kUnsupported (int8 asked of a model that holds no quantised layers).
Result<std::shared_ptr<ov::Model>> read_file(ov::Core& core, const std::filesystem::path& path,
                                             const LoadOptions& options);

}  // namespace strobe::engines::openvino_plugin
