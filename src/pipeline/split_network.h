// A network that runs in two parts, with the hand-over between them on the timeline.
#pragma once

#include <memory>

#include "models/split.h"
#include "strobe/base/result.h"
#include "strobe/engines/engine.h"

namespace strobe::pipeline {

// The first part on the CPU by `first`, the second on options.device by `second` (the same engine where that runs on
// both); facts are of the second, and of the first its engine and precision: options.precision, or f32 where the second
// part is on a GPU and no CPU engine has that. A session runs the first part, copies what crosses over into the second
// one's own buffer, and runs that; it records them as the ranges "first part", "hand-over" (argument bytes) and "second
// part". Kernels and their times are those of both. Errors: those of Engine::load.
Result<std::unique_ptr<engines::Network>> load_split(engines::Engine& first, engines::Engine& second,
                                                     const models::SplitGraph& split,
                                                     const engines::LoadOptions& options);

}  // namespace strobe::pipeline
