// `strobe run --dry-run`: what a run would come to, from its input's first frames and the network's layers.
#pragma once

#include <atomic>
#include <string>

#include "run_flags.h"

namespace strobe::app {

struct RunDryOptions {
  std::string device;  // file of `strobe calibrate --engine`; empty: the engine is measured first
  double seconds = 3;  // for that
};

// Prints a row an engine: expected FPS, time of an inference, memory. The network is not run. Reads, prepares and
// encodes the first frames. Errors: those of the input, the network, the engine.
Result<int> dry_run(const RunFlags& flags, const RunDryOptions& dry, const std::atomic<bool>& stop);

}  // namespace strobe::app
