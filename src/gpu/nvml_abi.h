// The binary interface of NVML as far as this library uses it, declared by ourselves for the same reason as CUPTI's
// (cupti_abi.h). It is versioned by the names of its functions: these structures do not change.
#pragma once

#include <cstddef>
#include <cstdint>

namespace strobe::gpu::nvml {

using Code = int;  // 0: done; cupti_errors.h
inline constexpr Code kSuccess = 0;
inline constexpr Code kUninitialized = 1;
inline constexpr Code kInvalidArgument = 2;
inline constexpr Code kNotSupported = 3;
inline constexpr Code kNoPermission = 4;
inline constexpr Code kNotFound = 6;
inline constexpr Code kInsufficientSize = 7;
inline constexpr Code kDriverNotLoaded = 9;
inline constexpr Code kFunctionNotFound = 13;
inline constexpr Code kGpuIsLost = 15;
inline constexpr Code kResetRequired = 16;
inline constexpr Code kMismatch = 18;
inline constexpr Code kUnknownError = 999;

using Device = void*;

struct Utilization {
  uint32_t gpu, memory;  // percent of the last period in which any kernel ran; in which memory was read or written
};
struct Memory {
  uint64_t total, free, used;  // bytes; used with what the driver keeps for itself
};
struct MemoryV2 {
  uint32_t version;
  uint64_t total, reserved, free, used;
};
static_assert(sizeof(MemoryV2) == 40);
inline constexpr uint32_t kMemoryVersion = sizeof(MemoryV2) | (2U << 24);

struct Process {
  uint32_t pid;
  uint64_t memory;  // bytes; all ones: not told
  uint32_t gpu_instance, compute_instance;
};
static_assert(sizeof(Process) == 24);
inline constexpr uint64_t kNotAvailable = ~uint64_t{0};

// Of a compute instance under MIG.
struct Attributes {
  uint32_t processors, copy_engines, decoders, encoders, jpeg, optical_flow, gpu_slices, compute_slices;
  uint64_t memory_mib;
};
static_assert(sizeof(Attributes) == 40);

struct ProcessUse {
  uint32_t pid;
  uint64_t time_us;               // CLOCK_REALTIME
  uint32_t sm, memory, enc, dec;  // percent
  // The driver gives entries with numbers that cannot be among the others (Syllo/nvtop#110).
  bool possible() const { return sm <= 100 && memory <= 100 && enc <= 100 && dec <= 100; }
};
static_assert(sizeof(ProcessUse) == 32);

union Value {
  double real;
  int32_t signed32;
  uint32_t unsigned32;
  unsigned long unsigned_long;  // NOLINT(google-runtime-int)
  uint64_t unsigned64;
  int64_t signed64;
};
static_assert(sizeof(Value) == 8);
enum ValueType : int { kDouble, kUnsigned32, kUnsignedLong, kUnsigned64, kSigned64, kSigned32 };

struct Sample {
  uint64_t time_us;  // CLOCK_REALTIME
  Value value;
};
static_assert(sizeof(Sample) == 16);
enum SampleKind : int { kGpuUseSamples = 1, kMemoryUseSamples = 2 };

struct FieldValue {
  uint32_t field, scope;
  int64_t time_us, latency_us;
  int type;   // ValueType
  Code code;  // of this value
  Value value;
};
static_assert(sizeof(FieldValue) == 40 && offsetof(FieldValue, value) == 32);
inline constexpr uint32_t kInstantPower = 186;  // mW

enum Clock : int { kGraphicsClock = 0, kSmClock = 1, kMemoryClock = 2 };
inline constexpr int kTemperatureOfGpu = 0;

inline constexpr unsigned kNameBytes = 96;

// GPM: two samples are taken, and the library tells what happened between them.
using GpmSample = void*;
struct GpmSupport {
  uint32_t version, supported;
};
inline constexpr uint32_t kGpmVersion = 1;  // of the support and of the request
struct GpmMetric {
  uint32_t id;
  Code code;  // of this figure
  double value;
  const char *short_name, *long_name, *unit;
};
static_assert(sizeof(GpmMetric) == 40);
// Behind it stand the figures.
struct GpmRequest {
  uint32_t version, count;
  GpmSample from, to;
};
static_assert(sizeof(GpmRequest) == 24 && alignof(GpmMetric) == 8);
enum GpmId : uint32_t {
  kGpmSmUse = 2,
  kGpmOccupancy = 3,
  kGpmIntegerUse = 4,
  kGpmTensorUse = 5,
  kGpmDramUse = 10,
  kGpmFp64Use = 11,
  kGpmFp32Use = 12,
  kGpmFp16Use = 13,
  kGpmPcieSent = 20,  // MiB a second, by the device
  kGpmPcieReceived = 21,
};

}  // namespace strobe::gpu::nvml
