// Clocks, power and energy of GPUs over a time.
#pragma once

#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

namespace strobe::bench {

// From its construction to finish(), from a thread of its own.
class GpuWatch {
 public:
  // gpus: numbers of NVML and nvidia-smi. timeout: a driver that does not answer at the end is not waited for longer;
  // the thread is then left behind.
  explicit GpuWatch(const std::vector<int>& gpus, std::chrono::milliseconds timeout = std::chrono::seconds(20));
  GpuWatch(const GpuWatch&) = delete;
  GpuWatch& operator=(const GpuWatch&) = delete;
  ~GpuWatch();

  struct Seen {
    // One a GPU that answered: {"id", "name", "graphics_mhz", "memory_mhz", "watts" (means of the samples),
    // "energy_joules", "energy_from" ("counter" or "power"), "throttled_share" (of the samples)}; null: not told.
    nlohmann::ordered_json gpus;
    std::string missing;  // why some are not there; empty: all are
  };
  Seen finish();

 private:
  class Work;
  std::shared_ptr<Work> work_;  // the thread's, too
  const std::chrono::milliseconds timeout_;
  std::thread thread_;
};

}  // namespace strobe::bench
