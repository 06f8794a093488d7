// Samples what NVML tells of the devices into a log (log_file.h), from a thread of its own: a call of the driver can
// take milliseconds, and one of a device that is in trouble much longer.
#pragma once

#include <chrono>
#include <filesystem>
#include <memory>
#include <thread>

#include "strobe/base/result.h"

namespace strobe::gpu {

struct SamplerOptions {
  std::filesystem::path folder;  // of the log; the recorder's, so that both are found together
  std::chrono::milliseconds period{100};
  std::filesystem::path proc = "/proc";
  std::chrono::milliseconds stop_timeout{5000};
};

// From start() until it is destroyed, when it takes a last sample. It takes at most a tenth of a core, and rests at
// least as long as it looked: where that takes longer than the period, it looks less often. A killed process loses at
// most a second of samples. A driver that hangs is not waited for longer than the timeout: the thread is left behind,
// and the log ends with what was written.
class Sampler {
 public:
  // The devices that this process's environment leaves to programs. Errors: those of Nvml (why there is nothing
  // to sample, in one line), kIo.
  static Result<std::unique_ptr<Sampler>> start(const SamplerOptions& options);
  Sampler(const Sampler&) = delete;
  Sampler& operator=(const Sampler&) = delete;
  ~Sampler();

 private:
  class Work;
  explicit Sampler(std::shared_ptr<Work> work);
  std::shared_ptr<Work> work_;  // the thread's, too
  std::thread thread_;
};

// Sampler::start() while a recorder runs, whose clock is tied to that of the samples (record::mark_clock()).
// Null where it cannot be; where there is a driver the recording then says why (fact "gpu.sampling").
std::unique_ptr<Sampler> start_sampling_or_say_why(const SamplerOptions& options);

}  // namespace strobe::gpu
