// What a GPU draws and how fast it runs at a moment, behind the two ways to ask.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "strobe/base/result.h"

namespace strobe::bench {

// What is not told is absent.
struct GpuReading {
  std::string name;
  std::optional<double> graphics_mhz, memory_mhz, watts;
  std::optional<double> joules;   // a counter's, since whenever
  std::optional<bool> throttled;  // heat, power or a brake hold the clocks down
};

class GpuMeter {
 public:
  virtual ~GpuMeter() = default;
  // gpu: the number among NVML's and nvidia-smi's. Nothing: it does not answer.
  virtual std::optional<GpuReading> read(int gpu) = 0;
  virtual std::chrono::milliseconds period() const = 0;  // how often that is cheap
};

// By NVML, or where it is not there by the program nvidia-smi. Errors: kUnsupported (neither, or NVML refuses; why).
Result<std::unique_ptr<GpuMeter>> gpu_meter();

}  // namespace strobe::bench
