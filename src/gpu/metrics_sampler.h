// Samples the hardware counters of the devices (metrics_device.h) into a log (log_file.h), from a thread of its own.
#pragma once

#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>

#include "strobe/base/result.h"

namespace strobe::gpu {

// Between two samples of the hardware. Shorter ones cost more than they tell, longer ones tell less than NVML.
inline constexpr int kLeastMetricsPeriodUs = 50, kMostMetricsPeriodUs = 1'000'000, kMetricsPeriodUs = 200;

struct MetricsOptions {
  std::filesystem::path folder;  // of the log; the recorder's
  std::chrono::microseconds period{kMetricsPeriodUs};
  std::chrono::milliseconds read_period{20};  // of what the hardware has sampled: its buffer must not be full before
  std::chrono::milliseconds stop_timeout{5000};
};

// From start() until it is destroyed. A killed process loses at most a second of samples. A driver that hangs is left
// behind after the timeout.
class MetricsSampler {
 public:
  // The devices that CUDA shows this process, which it initialises. Errors: kUnsupported, kNotFound: why no device can
  // be sampled, in one line; kIo.
  static Result<std::unique_ptr<MetricsSampler>> start(const MetricsOptions& options);
  MetricsSampler(const MetricsSampler&) = delete;
  MetricsSampler& operator=(const MetricsSampler&) = delete;
  ~MetricsSampler();

 private:
  class Work;
  explicit MetricsSampler(std::shared_ptr<Work> work);
  std::shared_ptr<Work> work_;  // the thread's, too
  std::thread thread_;
};

// MetricsSampler::start() while a recorder runs. Null where it cannot be: the recording says why (fact "gpu.metrics").
std::unique_ptr<MetricsSampler> start_metrics_or_say_why(const MetricsOptions& options);

// For people: what could be sampled here, or why nothing can. Gets the counters and gives them back.
struct MetricsProbe {
  bool works = false, has_driver = false;
  std::string line;
};
MetricsProbe probe_metrics();

}  // namespace strobe::gpu
