// Names of a device's figures on the timeline, where each is a counter "gpu.N.NAME": what samples a GPU writes them,
// analyses read them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace strobe::gpu_words {

inline constexpr const char* kBusy = "busy_percent";               // of the time some kernel ran
inline constexpr const char* kMemoryBusy = "memory_busy_percent";  // of the time memory was read or written
inline constexpr const char* kMemoryUsed = "memory_used_bytes";    // of the whole device
inline constexpr const char* kSmClock = "sm_clock_mhz";
inline constexpr const char* kMemoryClock = "memory_clock_mhz";
inline constexpr const char* kClockReasons = "clock_event_reasons";  // bits, see clock_reasons_text()
inline constexpr const char* kTemperature = "temperature_c";
inline constexpr const char* kPower = "power_w";
inline constexpr const char* kEnergy = "energy_j";  // since the first sample
inline constexpr const char* kEncoder = "encoder_percent";
inline constexpr const char* kDecoder = "decoder_percent";
// Of one process, whose number the counter has.
inline constexpr const char* kProcessMemory = "process_memory_bytes";
inline constexpr const char* kProcessSm = "process_sm_percent";
inline constexpr const char* kProcessMemoryBusy = "process_memory_busy_percent";
inline constexpr const char* kProcessEncoder = "process_encoder_percent";
inline constexpr const char* kProcessDecoder = "process_decoder_percent";
// GPM's figures, each over the time since the one before it; percent as of the hardware counters below.
inline constexpr const char* kGpmSmBusy = "gpm_sm_busy_percent";
inline constexpr const char* kGpmOccupancy = "gpm_occupancy_percent";
inline constexpr const char* kGpmTensor = "gpm_tensor_percent";
inline constexpr const char* kGpmDram = "gpm_dram_percent";
inline constexpr const char* kGpmFp64 = "gpm_fp64_percent";  // outside the tensor pipe, as the next two
inline constexpr const char* kGpmFp32 = "gpm_fp32_percent";
inline constexpr const char* kGpmFp16 = "gpm_fp16_percent";
inline constexpr const char* kGpmInteger = "gpm_integer_percent";
inline constexpr const char* kPcieSent = "pcie_sent_bytes_per_s";  // by the device
inline constexpr const char* kPcieReceived = "pcie_received_bytes_per_s";
// Hardware counters, each over the time from its value to the next one; percent of the most that is possible, over all
// SMs (channels, slices) and all of the time.
inline constexpr const char* kSmBusy = "sm_busy_percent";       // cycles in which an SM had a warp
inline constexpr const char* kOccupancy = "occupancy_percent";  // warps in flight
inline constexpr const char* kIssue = "issue_percent";          // instructions executed
inline constexpr const char* kTensor = "tensor_percent";        // cycles in which the tensor pipe worked
inline constexpr const char* kFma = "fma_percent";              // the same of FP32's pipes, or their instructions
inline constexpr const char* kFp64 = "fp64_percent";
inline constexpr const char* kDramRead = "dram_read_percent";  // of the memory's bandwidth
inline constexpr const char* kDramWrite = "dram_write_percent";
inline constexpr const char* kL2Hit = "l2_hit_percent";         // of the lookups; none without lookups
inline constexpr const char* kL2ToSm = "l2_to_sm_bytes_per_s";  // what SMs read that their L1 did not have
inline constexpr const char* kMetrics[] = {kSmBusy, kOccupancy, kIssue,     kTensor, kFma,
                                           kFp64,   kDramRead,  kDramWrite, kL2Hit,  kL2ToSm};

// The table of replayed kernels in a trace, and its first columns; the others are figures.
inline constexpr const char* kReplayTitle = "GPU replay";
inline constexpr const char* kReplayPid = "pid";
inline constexpr const char* kReplayDevice = "device";
inline constexpr const char* kReplayLaunch = "launch";
inline constexpr const char* kReplayKernel = "kernel";
inline constexpr const char* kReplayGrid = "grid";
inline constexpr const char* kReplayBlock = "block";

// Of all processes together whose numbers could not be matched with processes here.
inline constexpr const char* kUnmatchedMemory = "unmatched_processes_memory_bytes";
inline constexpr const char* kUnmatchedSm = "unmatched_processes_sm_percent";

// The name of a figure of a part of a device under MIG: "mig.GI.NAME" of a GPU instance, "mig.GI.CI.NAME" of a compute
// instance in it. NAME: one of the above.
std::string of_instance(unsigned gpu_instance, std::string_view name);
std::string of_instance(unsigned gpu_instance, unsigned compute_instance, std::string_view name);

// Why the clocks are what they are, in the bits of NVML and CUPTI.
enum ClockReason : uint64_t {
  kIdle = 0x1,
  kApplicationClocks = 0x2,
  kPowerCap = 0x4,
  kHardwareSlowdown = 0x8,
  kSyncBoost = 0x10,
  kThermal = 0x20,
  kHardwareThermal = 0x40,
  kPowerBrake = 0x80,
  kDisplayClocks = 0x100,
};
// Those by which a device that works is slower than it could be.
inline constexpr uint64_t kThrottled = kPowerCap | kHardwareSlowdown | kThermal | kHardwareThermal | kPowerBrake;
// "power cap, thermal slowdown"; "" for none.
std::string clock_reasons_text(uint64_t reasons);

// {0, "power_w"} of "gpu.0.power_w"; nothing where it is no figure of a device.
std::optional<std::pair<int, std::string_view>> parse_counter(std::string_view name);

}  // namespace strobe::gpu_words
