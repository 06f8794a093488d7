// The CUDA driver loads the library that CUDA_INJECTION64_PATH names while it initialises itself, and calls
// InitializeInjection(). A program that records itself with record::Options::gpu, and has no collector of its own,
// opens the library and calls the other two.
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "gpu/collector.h"
#include "gpu/replay_choice.h"
#include "gpu/replay_profiler.h"
#include "inject/start.h"
#include "record/gpu_collection.h"

#define EXPORTED extern "C" __attribute__((visibility("default")))

EXPORTED int InitializeInjection() {
  using namespace strobe;
  // Kernels that are run again have no times that could stand beside ranges: nothing else is recorded then.
  if (const char* wanted = std::getenv(gpu::kReplayVariable); wanted != nullptr && *wanted != 0) {
    const char* folder = std::getenv(inject::kFolderVariable);
    auto figures = gpu::parse_replay_figures(wanted);
    if (folder == nullptr || !figures) return 0;
    return gpu::start_replay_or_say_why({.folder = folder, .figures = std::move(*figures)}) ? 1 : 0;
  }
  if (!inject::start_recording()) return 0;
  gpu::CollectOptions options;
  options.folder = std::getenv(inject::kFolderVariable);
  options.in_driver_start = true;
  if (!gpu::start_collecting_or_say_why(options)) return 0;
  record::mark_clock();
  return 1;
}

// 0: begun; else the reason goes into `why`, cut to `why_bytes`.
EXPORTED int strobe_gpu_start(const char* folder, char* why, size_t why_bytes) {
  const std::string reason = strobe::gpu::start_for_recorder(folder);
  if (reason.empty()) return 0;
  std::snprintf(why, why_bytes, "%s", reason.c_str());
  return 1;
}

EXPORTED void strobe_gpu_stop() {
  strobe::gpu::stop_collecting();
}
