// Running one stage by itself: what the machine can do at best, against which the whole pipeline is held.
#pragma once

#include <atomic>
#include <vector>

#include "pipeline/runner.h"

namespace strobe::pipeline {

// Runs the stage on its own workers over the samples, again and again, for about `seconds` (at least once over every
// sample of a worker, at most until stop is set), and records a range "alone" with the arguments stage, frames and
// cpu_ns. Samples must be ready for the stage and are split among the workers. Errors: the stage's own.
Result<void> run_stage_alone(const Stage& stage, std::vector<BatchPtr>& samples, double seconds,
                             const std::atomic<bool>* stop);

// The same for the source: reads until `seconds` have passed or it ends. Frames are thrown away.
Result<void> run_read_alone(const std::string& name, const ReadFrame& read, double seconds,
                            const std::atomic<bool>* stop);

}  // namespace strobe::pipeline
