// The CUDA driver loads the library that CUDA_INJECTION64_PATH names while it initialises itself, and calls this.
#include <cstdlib>

#include "gpu/collector.h"
#include "inject/start.h"

extern "C" __attribute__((visibility("default"))) int InitializeInjection() {
  using namespace strobe;
  if (!inject::start_recording()) return 0;
  gpu::CollectOptions options;
  options.folder = std::getenv(inject::kFolderVariable);
  options.in_driver_start = true;
  return gpu::start_collecting_or_say_why(options) ? 1 : 0;
}
