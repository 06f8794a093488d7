// What is sampled of the GPUs while something is recorded: NVML's figures, and where they are asked for, hardware
// counters.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "gpu/metrics_sampler.h"
#include "gpu/sampler.h"
#include "strobe/base/result.h"
#include "strobe/trace/timeline.h"

namespace strobe::app {

inline constexpr const char* kGraphNodesHelp =
    "Each kernel of a CUDA graph, under the layer in which it was captured, instead of one piece a launch; slows "
    "graphs "
    "down";

// --gpu-metrics and --gpu-metrics-us, as one number: 0 for none. Errors: kUsage.
Result<int> metrics_period_us(bool wanted, int period_us, bool period_given);

class GpuSamplers {
 public:
  // Into the recorder's folder, while it records. metrics_us: 0 for no counters.
  GpuSamplers(const gpu::SamplerOptions& figures, int metrics_us);

 private:
  std::unique_ptr<gpu::Sampler> figures_;
  std::unique_ptr<gpu::MetricsSampler> counters_;
};

// Why counters that were asked for are not in the trace, whole or in part; each a line.
std::vector<std::string> metrics_notes(const trace::Timeline& timeline);

}  // namespace strobe::app
