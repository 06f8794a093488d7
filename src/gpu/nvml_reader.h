// One device's figures, read through NVML whenever asked.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <list>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "gpu/gpm.h"
#include "gpu/nvml.h"

namespace strobe::gpu {

// Which of NVML's process numbers are those of processes here. They are the machine's: in a pid namespace of its own
// (a container) they mean something else, unless the driver translates them.
class ProcessNumbers {
 public:
  // proc: /proc, or a folder like it.
  explicit ProcessNumbers(std::filesystem::path proc);
  // Whether they are the numbers of this process's own pid namespace.
  bool are_ours() const { return ours_; }
  // In another namespace: whether a process with that number is here and holds an NVIDIA device open.
  bool matches(uint32_t pid);

 private:
  std::filesystem::path proc_;
  bool ours_ = false;
  std::map<uint32_t, bool> known_;
};

class NvmlReader {
 public:
  // A figure (base/gpu_words.h) at a time of CLOCK_MONOTONIC; pid 0: of the whole device.
  using Put = std::function<void(int64_t monotonic_ns, const char* name, double value, uint32_t pid)>;

  // What outlives the reader. Of a device under MIG also those of its instances. From now on: rings of the driver are
  // read from this moment.
  NvmlReader(const Nvml& nvml, const NvmlDevice& device, ProcessNumbers& processes);

  // Asks for everything once. False: the device is lost, and is not asked again. What a device or library cannot tell
  // is asked for once.
  bool read(const Put& put);

  const NvmlDevice& device() const { return device_; }
  uint64_t memory_bytes() const { return memory_bytes_; }  // total; 0: not told
  // By figure: why there is none.
  const std::map<std::string, std::string>& not_measured() const { return off_; }
  const std::string& lost() const { return lost_; }  // why; empty: it is there
  uint64_t failed() const { return failed_; }        // single readings that failed otherwise
  // "instant", or "average" where the device tells only NVML's mean over up to a second.
  const char* power_source() const { return instant_power_ ? "instant" : "average"; }

 private:
  // A GPU instance of a device under MIG, with the names of its figures.
  struct Part {
    Part(const Nvml& nvml, nvml::Device device, const NvmlInstance& instance);
    nvml::Device handle;  // of a compute instance in it: any tells the memory of all
    std::string memory, gpm;
    std::vector<std::string> gpm_figures;  // as gpu::gpm_figures()
    Gpm counters;
  };
  struct ProcessList {
    nvml::Device handle;  // of the device, or of a compute instance
    std::string figure;
  };
  template <typename Function, typename... Arguments>
  bool ask(const char* figure, Function* function, Arguments... arguments);
  bool answered(const std::string& figure, nvml::Code code);
  template <typename Function, typename... Arguments>
  bool ask_of(nvml::Device handle, const std::string& figure, Function* function, Arguments... arguments);
  bool answered_of(nvml::Device handle, const std::string& figure, nvml::Code code);
  void read_use(const Put& put);
  bool read_ring(int kind, const char* figure, uint64_t& last_us, const Put& put);
  void read_memory(nvml::Device handle, const std::string& figure, const Put& put);
  void read_power(const Put& put);
  void read_processes(const Put& put);
  void read_process_use(const Put& put);
  void read_gpm(const Put& put);
  void read_parts(const Put& put);
  std::optional<int64_t> time_of(uint64_t realtime_us, uint64_t last_us) const;

  const Nvml& nvml_;
  const NvmlDevice device_;
  ProcessNumbers& processes_;
  std::map<std::string, std::string> off_;
  std::string lost_;
  uint64_t failed_ = 0, memory_bytes_ = 0;
  int64_t now_ns_ = 0, realtime_ahead_ns_ = 0;
  uint64_t use_seen_us_ = 0, memory_use_seen_us_ = 0, process_use_seen_us_ = 0;
  int64_t use_told_ns_, memory_use_told_ns_;  // when a ring last gave anything
  bool instant_power_ = false, has_energy_ = false;
  uint64_t first_energy_mj_ = 0;
  Gpm gpm_;
  std::list<Part> parts_;
  std::vector<ProcessList> lists_;
  std::vector<nvml::Sample> ring_;
  std::vector<nvml::Process> running_;
  std::vector<nvml::ProcessUse> use_;
};

}  // namespace strobe::gpu
