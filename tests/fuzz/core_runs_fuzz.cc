// Links: strobe_collect
// Logs of core runs: any bytes give runs in order or one clear error.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "collect/core_run_log.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto found = strobe::collect::parse_core_runs(std::string(reinterpret_cast<const char*>(data), size));
  if (!found) return 0;
  for (size_t i = 0; i < found->runs.size(); ++i) {
    const auto& run = found->runs[i];
    if (run.end_ns < run.start_ns || run.core < 0) std::abort();
    if (i > 0 && found->runs[i - 1].core > run.core) std::abort();
  }
  return 0;
}
