// Samples what NVML tells of the devices into a log (log_file.h), from a thread of its own: a call of the driver can
// take milliseconds, and one of a device that is in trouble much longer.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <list>
#include <memory>
#include <mutex>
#include <thread>

#include "gpu/log_file.h"
#include "gpu/nvml.h"
#include "gpu/nvml_reader.h"

namespace strobe::gpu {

struct SamplerOptions {
  std::filesystem::path folder;  // of the log; the recorder's, so that both are found together
  std::chrono::milliseconds period{100};
  std::filesystem::path proc = "/proc";
};

// From start() until it is destroyed, when it takes a last sample. It takes at most a tenth of a core: where looking
// takes longer, it looks less often. A killed process loses at most a second of samples.
class Sampler {
 public:
  // The devices that this process's environment leaves to programs. Errors: those of Nvml (why there is nothing
  // to sample, in one line), kIo.
  static Result<std::unique_ptr<Sampler>> start(const SamplerOptions& options);
  Sampler(const Sampler&) = delete;
  Sampler& operator=(const Sampler&) = delete;
  ~Sampler();

 private:
  Sampler(Nvml nvml, std::unique_ptr<LogWriter> log, const SamplerOptions& options);
  void describe(const Nvml::Devices& devices);
  void run();
  void look();
  void finish();

  const SamplerOptions options_;
  const Nvml nvml_;
  ProcessNumbers processes_;
  std::list<NvmlReader> readers_;
  std::unique_ptr<LogWriter> log_;
  uint64_t looks_ = 0;
  int64_t busy_ns_ = 0, first_ns_ = 0, last_ns_ = 0, flushed_ns_ = 0;

  std::mutex mutex_;
  std::condition_variable wake_;
  bool stop_ = false;
  std::thread thread_;
};

// Sampler::start() while a recorder runs, whose clock is tied to that of the samples (record::mark_clock()).
// Null where it cannot be; where there is a driver the recording then says why (fact "gpu.sampling").
std::unique_ptr<Sampler> start_sampling_or_say_why(const SamplerOptions& options);

}  // namespace strobe::gpu
