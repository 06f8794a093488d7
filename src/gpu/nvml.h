// NVML, the driver's library of management: devices, what they do and draw, their clocks.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/library.h"
#include "gpu/nvml_abi.h"
#include "strobe/base/result.h"

namespace strobe::gpu {

// A table of functions, each of which may be missing, as in older libraries.
struct NvmlFunctions {
  nvml::Code (*init)();
  nvml::Code (*shutdown)();
  nvml::Code (*driver_version)(char*, unsigned);
  nvml::Code (*count)(unsigned*);
  nvml::Code (*by_index)(unsigned, nvml::Device*);
  nvml::Code (*uuid)(nvml::Device, char*, unsigned);
  nvml::Code (*name)(nvml::Device, char*, unsigned);

  nvml::Code (*most_instances)(nvml::Device, unsigned*);  // 0: not under MIG
  nvml::Code (*instance_by_index)(nvml::Device, unsigned, nvml::Device*);
  nvml::Code (*gpu_instance)(nvml::Device, unsigned*);
  nvml::Code (*compute_instance)(nvml::Device, unsigned*);
  nvml::Code (*attributes)(nvml::Device, nvml::Attributes*);

  nvml::Code (*utilization)(nvml::Device, nvml::Utilization*);
  nvml::Code (*samples)(nvml::Device, int kind, unsigned long long last_us,  // NOLINT(google-runtime-int)
                        int* type, unsigned* count, nvml::Sample*);
  nvml::Code (*memory)(nvml::Device, nvml::Memory*);
  nvml::Code (*memory_v2)(nvml::Device, nvml::MemoryV2*);
  nvml::Code (*clock)(nvml::Device, int, unsigned*);
  nvml::Code (*max_clock)(nvml::Device, int, unsigned*);
  nvml::Code (*clock_reasons)(nvml::Device, unsigned long long*);  // NOLINT(google-runtime-int)
  nvml::Code (*temperature)(nvml::Device, int, unsigned*);
  nvml::Code (*power)(nvml::Device, unsigned*);
  nvml::Code (*energy)(nvml::Device, unsigned long long*);  // NOLINT(google-runtime-int)
  nvml::Code (*fields)(nvml::Device, int, nvml::FieldValue*);
  nvml::Code (*encoder)(nvml::Device, unsigned*, unsigned*);
  nvml::Code (*decoder)(nvml::Device, unsigned*, unsigned*);
  nvml::Code (*processes)(nvml::Device, unsigned*, nvml::Process*);
  nvml::Code (*process_use)(nvml::Device, nvml::ProcessUse*, unsigned*,
                            unsigned long long last_us);  // NOLINT(google-runtime-int)

  nvml::Code (*gpm_support)(nvml::Device, nvml::GpmSupport*);
  nvml::Code (*gpm_alloc)(nvml::GpmSample*);
  nvml::Code (*gpm_free)(nvml::GpmSample);
  nvml::Code (*gpm_sample)(nvml::Device, nvml::GpmSample);
  nvml::Code (*gpm_instance_sample)(nvml::Device, unsigned gpu_instance, nvml::GpmSample);
  nvml::Code (*gpm_metrics)(nvml::GpmRequest*);

  nvml::Code (*performance_state)(nvml::Device, int*);
  nvml::Code (*persistence)(nvml::Device, int*);
  nvml::Code (*set_persistence)(nvml::Device, int);
  nvml::Code (*power_limit)(nvml::Device, unsigned*);
  nvml::Code (*power_limits)(nvml::Device, unsigned* least, unsigned* most);
  nvml::Code (*set_power_limit)(nvml::Device, unsigned);
  nvml::Code (*lock_gpu_clocks)(nvml::Device, unsigned, unsigned);
  nvml::Code (*reset_gpu_clocks)(nvml::Device);
  nvml::Code (*lock_memory_clocks)(nvml::Device, unsigned, unsigned);
  nvml::Code (*reset_memory_clocks)(nvml::Device);
};

// What CUPTI and the driver give for "GPU-..." or "MIG-..."; nothing where the text is no such id.
std::optional<std::array<uint64_t, 2>> uuid_bytes(std::string_view uuid);

// A compute instance of a device under MIG, which is what a program gets. Memory and GPM's counters are those of the
// GPU instance that it is in, alone or with others.
struct NvmlInstance {
  nvml::Device handle = nullptr;  // taken by some of NVML's functions
  unsigned gpu_instance = 0, compute_instance = 0;
  std::string uuid;  // "MIG-..."
  std::string name;
  unsigned processors = 0;    // SMs; 0: not told
  uint64_t memory_bytes = 0;  // 0: not told
};

struct NvmlDevice {
  nvml::Device handle = nullptr;
  unsigned index = 0;  // NVML's, as nvidia-smi numbers them: by place on the bus
  std::string uuid;    // "GPU-...": empty where the library does not tell it
  std::string name;
  std::vector<NvmlInstance> instances;  // empty: not under MIG, or none was made
  // As CUPTI gives it, by which the devices of both meet; made up of the index where NVML does not tell it.
  std::array<uint64_t, 2> uuid_bytes() const;
};

class Nvml {
 public:
  // libnvidia-ml.so.1, or what STROBE_NVML_LIBRARY names, and initialises it. Errors, in one line: kNotFound (no
  // such library); kUnsupported (library and driver of different versions, no permission, ...).
  static Result<Nvml> open();
  Nvml(Nvml&& other) noexcept;
  Nvml& operator=(Nvml&&) = delete;
  ~Nvml();

  const NvmlFunctions* operator->() const { return &functions_; }
  const std::string& path() const { return path_; }
  std::string driver_version() const;  // "?" where it is not told

  struct Devices {
    std::vector<NvmlDevice> list;
    std::vector<std::string> notes;  // devices that do not answer or have no instance; that the choice was not followed
  };
  // Every device, or those that `visible` (the value of CUDA_VISIBLE_DEVICES; null: not set) leaves to programs; of one
  // under MIG with all instances, or those that are named there.
  // Numbers mean the order of the bus where `order` is PCI_BUS_ID or all devices have one name; otherwise CUDA orders
  // them by speed, which NVML does not tell: then all are given, with a note. Errors: kUnsupported (no device).
  Result<Devices> devices(const char* visible, const char* order) const;
  Result<Devices> visible_devices() const;  // by this process's environment

 private:
  std::vector<NvmlInstance> instances(nvml::Device device, unsigned most) const;
  Nvml(NvmlFunctions functions, std::string path) : functions_(functions), path_(std::move(path)) {}
  NvmlFunctions functions_;
  std::string path_;
  bool initialized_ = false;
};

}  // namespace strobe::gpu
