// Clocks and energy of the machine while a benchmark runs.
#pragma once

#include <condition_variable>
#include <filesystem>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace strobe::bench {

// From its construction to finish(). The processors twice a second, GPUs (nvidia-smi) every two seconds.
class MachineWatch {
 public:
  // root: "/" of the machine, or a copy of such a tree. gpus: nvidia-smi's numbers.
  explicit MachineWatch(std::vector<int> gpus, std::filesystem::path root = "/");
  MachineWatch(const MachineWatch&) = delete;
  MachineWatch& operator=(const MachineWatch&) = delete;
  ~MachineWatch();

  // {"cpu_mhz": {"mean", "min", "max"} or null, "cpu_energy_joules": number or null, "gpus": [{"id", "name",
  // "graphics_mhz", "memory_mhz", "watts" (means), "energy_joules"}], "not_measured": {key: reason}}. Energy is the
  // whole machine's.
  nlohmann::ordered_json finish();

 private:
  struct Gpu {
    int id = 0;
    std::string name;
    double graphics = 0, memory = 0, watts = 0, joules = 0;
    int64_t samples = 0, last_ms = 0;
    double last_watts = 0;
  };
  struct Domain {
    std::filesystem::path folder;
    uint64_t last = 0, wraps_at = 0;
  };
  void find_domains();
  void watch();
  void sample_cpu();
  void sample_energy();
  void sample_gpus();

  std::filesystem::path root_;
  std::vector<Gpu> gpus_;
  std::vector<Domain> domains_;
  std::string no_clock_, no_energy_, no_gpu_;  // reasons
  double mhz_sum_ = 0, mhz_min_ = 0, mhz_max_ = 0, joules_ = 0;
  int64_t mhz_samples_ = 0;
  bool gpu_answers_ = true, finished_ = false;

  std::mutex mutex_;
  std::condition_variable wake_;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace strobe::bench
