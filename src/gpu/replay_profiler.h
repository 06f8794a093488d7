// Replays the kernels of this process for their hardware counters (replay_context.h), into a log (log_file.h): the
// launches' names and sizes come from CUPTI's callbacks, the figures from its range profiler.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "strobe/base/result.h"

namespace strobe::gpu {

// By this variable `strobe record` asks for it: figures with commas between, or "all".
inline constexpr const char* kReplayVariable = "STROBE_GPU_REPLAY_METRICS";

struct ReplayOptions {
  std::filesystem::path folder;      // of the log
  std::vector<std::string> figures;  // names of replay_figures()
};

// Begins; one at a time in a process, never beside a collector. To be called before the program makes its contexts, and
// while the driver initialises itself at the earliest; ends when the process exits. Errors: kUnsupported (another
// client, CUPTI too old), kIo, kUsage (already begun). What a context refuses is told in the log (fact "gpu.replay").
Result<void> start_replay(const ReplayOptions& options);
// Reads what is left and completes the log; does nothing where nothing was begun.
void stop_replay();
// start_replay(), but a reason against it goes into a log of its own, so that the trace tells it. False: off.
bool start_replay_or_say_why(const ReplayOptions& options);

}  // namespace strobe::gpu
