// One device beside a measurement: how much of it is free and what this process holds, who else works on it, and how
// fast it runs.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "gpu/nvml_reader.h"
#include "gpu/probe.h"

namespace strobe::gpu {

// Bytes of a device; -1: not told.
struct DeviceMoment {
  int64_t total = -1, used = -1, free = -1;  // used and free by everyone; without what the driver keeps for itself
  int64_t own = -1;                          // this process: contexts, code and all that was allocated in them
  // NVML does not tell this process from others (a pid namespace, an old driver): own is what `used` has grown by since
  // the watch was opened, whoever took it.
  bool own_is_growth = false;
};

// Over the samples of a measurement; below 0: not told.
struct DeviceUse {
  int samples = 0;
  double others_share = -1;                  // of the time in which other processes had kernels on it, 0..1
  double throttled_share = -1;               // of the samples with a clock that heat, power or a brake held down
  double clock_mhz = -1, clock_spread = -1;  // of the SMs: mean; (highest - lowest) / highest
};

class DeviceWatch {
 public:
  // The device "cuda:NUMBER" of this process, under MIG an instance: memory and processes are then the instance's,
  // clocks those of the whole device. Initialises the driver, but makes no context; to be opened before the process has
  // one. Errors: kUnsupported (no driver, no such device, no NVML, a device that NVML does not list).
  static Result<std::unique_ptr<DeviceWatch>> open(int number);

  // "name", "uuid", "memory_mib", "driver", "processors", "compute_capability", "sm_clock_mhz_max",
  // "memory_clock_mhz_max", "power_limit_w"; what is not told is left out.
  std::map<std::string, std::string> facts() const;
  DeviceMoment memory();

  // Samples are those since the last restart(). One takes a millisecond or so of the caller's thread.
  void restart();
  void sample();
  DeviceUse use() const;

 private:
  DeviceWatch(Nvml nvml, CudaDevice cuda, NvmlDevice device, std::optional<NvmlInstance> instance);
  bool list_processes();  // into processes_
  void find_own();

  const Nvml nvml_;
  const CudaDevice cuda_;
  const NvmlDevice device_;
  const std::optional<NvmlInstance> instance_;
  const nvml::Device of_program_;  // the instance, or the device
  std::vector<nvml::Process> processes_;
  std::vector<nvml::ProcessUse> process_use_;
  std::set<uint32_t> were_there_;    // when the watch was opened
  std::optional<uint32_t> own_pid_;  // as NVML numbers it
  bool numbers_are_ours_ = false;
  int64_t used_before_ = -1;

  uint64_t use_seen_us_ = 0;
  int samples_ = 0, told_reasons_ = 0, throttled_ = 0, told_use_ = 0;
  double others_ = 0;
  std::vector<double> clocks_;
};

}  // namespace strobe::gpu
