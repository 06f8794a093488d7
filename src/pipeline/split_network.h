// A network that runs in two parts, with the hand-over between them on the timeline.
#pragma once

#include <memory>

#include "models/split.h"
#include "strobe/base/result.h"
#include "strobe/engines/engine.h"

namespace strobe::pipeline {

// Both parts on `engine`, the first on the CPU, the second on options.device; facts are of the second. A session runs
// the first part, copies what crosses over into the second one's own buffer, and runs that; it records them as the
// ranges "first part", "hand-over" (argument bytes) and "second part". Kernels and their times are those of both.
// Errors: those of Engine::load.
Result<std::unique_ptr<engines::Network>> load_split(engines::Engine& engine, const models::SplitGraph& split,
                                                     const engines::LoadOptions& options);

}  // namespace strobe::pipeline
