// GPM, counters of how SMs, memory and the bus are used, which NVML has on Hopper and newer without the profiler and
// without its rights: means between two samples.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "gpu/nvml.h"

namespace strobe::gpu {

struct GpmFigure {
  uint32_t id;       // NVML's
  const char* name;  // of the counter (base/gpu_words.h)
  double scale;      // to the counter's unit
};
const std::vector<GpmFigure>& gpm_figures();

class Gpm {
 public:
  // gpu_instance: under MIG, the part of the device whose counters are meant.
  Gpm(const Nvml& nvml, nvml::Device device, std::optional<unsigned> gpu_instance = {})
      : nvml_(nvml), device_(device), gpu_instance_(gpu_instance) {}
  Gpm(const Gpm&) = delete;
  Gpm& operator=(const Gpm&) = delete;
  ~Gpm();

  // Once, before the rest. kFunctionNotFound: an older library; kNotSupported: a device without; others as NVML says.
  nvml::Code start();
  // Takes a sample and tells each figure since the one before: its code and, where that is kSuccess, the value. The
  // first sample tells nothing, nor does one that is too soon: counters are refreshed ten times a second.
  nvml::Code read(int64_t now_ns, const std::function<void(const GpmFigure&, nvml::Code, double)>& put);

 private:
  const Nvml& nvml_;
  const nvml::Device device_;
  const std::optional<unsigned> gpu_instance_;
  nvml::GpmSample samples_[2] = {};  // the newest one is the first
  int64_t sampled_ns_ = 0;
  std::vector<std::byte> request_;  // an nvml::GpmRequest and its figures
};

}  // namespace strobe::gpu
