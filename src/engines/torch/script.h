// TorchScript: a Graph written out as TorchScript source, or a .pt file. Variant "script" freezes the module (weights
// become constants, batch norm is folded into its convolution) and runs it with channels innermost in memory.
#pragma once

#include <filesystem>
#include <memory>

#include "strobe/base/result.h"
#include "strobe/engines/engine.h"

namespace strobe::engines::torch_plugin {

Result<std::unique_ptr<Network>> load_script(std::shared_ptr<const models::Graph> graph, const LoadOptions& options);

// A TorchScript file takes one picture tensor, {batch, options.input_shape...}; what it returns is found by a run on
// zeros. optimised: frozen and optimised, else as it is. Errors as Engine::load.
Result<std::unique_ptr<Network>> load_file(const std::filesystem::path& path, bool optimised,
                                           const LoadOptions& options);

}  // namespace strobe::engines::torch_plugin
