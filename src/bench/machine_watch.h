// Clocks and energy of the machine while a benchmark runs.
#pragma once

#include <condition_variable>
#include <filesystem>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "bench/gpu_watch.h"

namespace strobe::bench {

// From its construction to finish(). The processors twice a second, GPUs as GpuWatch does.
class MachineWatch {
 public:
  // root: "/" of the machine, or a copy of such a tree. gpus: as of GpuWatch.
  explicit MachineWatch(const std::vector<int>& gpus, std::filesystem::path root = "/");
  MachineWatch(const MachineWatch&) = delete;
  MachineWatch& operator=(const MachineWatch&) = delete;
  ~MachineWatch();

  // {"cpu_mhz": {"mean", "min", "max"} or null, "cpu_energy_joules": number or null, "gpus": those of
  // GpuWatch, "not_measured": {key: reason}}. Energy is the whole machine's.
  nlohmann::ordered_json finish();

 private:
  struct Domain {
    std::filesystem::path folder;
    uint64_t last = 0, wraps_at = 0;
  };
  void find_domains();
  void watch();
  void sample_cpu();
  void sample_energy();

  std::filesystem::path root_;
  std::vector<Domain> domains_;
  std::string no_clock_, no_energy_;  // reasons
  double mhz_sum_ = 0, mhz_min_ = 0, mhz_max_ = 0, joules_ = 0;
  int64_t mhz_samples_ = 0;
  bool finished_ = false;

  std::mutex mutex_;
  std::condition_variable wake_;
  bool stop_ = false;
  std::thread thread_;
  GpuWatch gpus_;
};

}  // namespace strobe::bench
