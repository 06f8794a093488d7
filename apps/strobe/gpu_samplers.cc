#include "gpu_samplers.h"

#include <fmt/format.h>

#include "base/gpu_words.h"

namespace strobe::app {

Result<int> metrics_period_us(bool wanted, int period_us, bool period_given) {
  if (period_given && !wanted) return usage_error("--gpu-metrics-us is of --gpu-metrics, which is not given");
  if (!wanted) return 0;
  if (period_us < gpu::kLeastMetricsPeriodUs || period_us > gpu::kMostMetricsPeriodUs)
    return usage_error(fmt::format("--gpu-metrics-us {}: expected {} to {}", period_us, gpu::kLeastMetricsPeriodUs,
                                   gpu::kMostMetricsPeriodUs));
  return period_us;
}

GpuSamplers::GpuSamplers(const gpu::SamplerOptions& figures, int metrics_us)
    : figures_(gpu::start_sampling_or_say_why(figures)) {
  if (metrics_us > 0)
    counters_ =
        gpu::start_metrics_or_say_why({.folder = figures.folder, .period = std::chrono::microseconds(metrics_us)});
}

std::vector<std::string> metrics_notes(const trace::Timeline& timeline) {
  std::vector<std::string> notes;
  for (const auto& [key, value] : timeline.facts) {
    if (key == "gpu.metrics" && value.starts_with("off: "))
      notes.push_back("GPU counters are " + value);
    else if (const auto parsed = gpu_words::parse_counter(key); !parsed)
      continue;
    else if (parsed->second == "metrics" && value.starts_with("off: "))
      notes.push_back(fmt::format("GPU counters of GPU {} are {}", parsed->first, value));
    else if (parsed->second == "metrics.broken")
      notes.push_back(fmt::format("GPU counters of GPU {} broke off: {}", parsed->first, value));
    else if (parsed->second == "metrics.clock")
      notes.push_back(fmt::format("GPU counters of GPU {} have {}", parsed->first, value));
  }
  return notes;
}

}  // namespace strobe::app
