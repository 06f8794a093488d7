// AOTInductor packages (.pt2): a network that PyTorch compiled ahead of time to machine code.
#pragma once

#include <filesystem>
#include <memory>

#include "strobe/base/result.h"
#include "strobe/engines/engine.h"

namespace strobe::engines::torch_plugin {

// The package takes one picture tensor, {batch, options.input_shape...}; what it returns is found by a run on zeros. It
// runs code that stands in the file: open only packages that you trust. Errors as Engine::load.
Result<std::unique_ptr<Network>> load_package(const std::filesystem::path& path, const LoadOptions& options);

}  // namespace strobe::engines::torch_plugin
