// GPU clocks at their maximum for the time of a benchmark, by NVML or, where that is not there, by the program
// nvidia-smi (found through PATH). Needs their rights; what could not be done is logged, with the reason.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace strobe::bench {

enum class LogLevel : uint8_t { kDebug, kInfo, kWarning, kError };
using Log = std::function<void(LogLevel, std::string_view)>;

inline constexpr int kAllGpus = -1;

// What reset_clocks() needs to know. done: graphics and memory clock are locked (or the memory has
// one clock) and the GPU is in state P0, where it tells that. An earlier lock cannot be read: it is not put back.
struct GpuClocks {
  bool done = false;
  bool persistence_was_on = false;
  std::optional<double> power_limit_w;  // before; nothing where it was not changed
  bool touched = false;                 // anything was changed
};

// Persistence mode, automatic boost off, power limit and clocks to their maximum. Without a GPU: a warning, and nothing
// done. gpu: its number among NVML's and nvidia-smi's, or all of them (the figures are then those of the first).
GpuClocks maximize_clocks(int gpu, const Log& log);
void reset_clocks(int gpu, const GpuClocks& before, const Log& log);

}  // namespace strobe::bench
