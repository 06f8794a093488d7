// The GPU that something is measured on.
#pragma once

#include <atomic>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "strobe/base/result.h"

namespace strobe::measure {

// N of "cuda:N"; nothing for "cpu". Errors: kUsage (another word).
Result<std::optional<int>> gpu_number(const std::string& device);

struct GpuLook {
  std::map<std::string, std::string> facts;  // "cuda:0.name", ... as gpu::DeviceWatch::facts() says them
  int64_t free_bytes = -1;                   // -1: not told
};
// Whether these engines run on the device, and what it is; in a process of its own, since one that has touched a GPU
// may not fork workers that use it. Without NVML there are no facts. log: what frameworks say; may be empty. Errors:
// kUnsupported (no driver, no such device, an engine for CPUs alone), kEngine, kInterrupted.
Result<GpuLook> look_at_gpu(const std::vector<std::string>& engines, const std::string& device,
                            const std::filesystem::path& log, const std::atomic<bool>* stop);

}  // namespace strobe::measure
