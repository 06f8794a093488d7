// The binary interface of CUPTI's hardware counters (cupti_pmsampling.h, cupti_profiler_host.h, of CUDA 12.6 and newer)
// as far as this library uses it, declared by ourselves as cupti_abi.h is; tests/gpu/metrics_abi_test.cc holds it
// against NVIDIA's headers.
//
// Every call takes one structure, which begins with its size: that of its fields, without what the compiler adds at the
// end. Fields marked "out" are the library's answer.
#pragma once

#include <cstddef>
#include <cstdint>

#include "gpu/cupti_abi.h"

namespace strobe::gpu::cupti {

inline constexpr Code kInvalidOperation = 7;
inline constexpr Code kOutOfMemory = 8;

enum ProfilerType : int { kRangeProfiler = 0, kPmSampling = 1 };
enum SupportLevel : int { kLevelUnknown = 0, kLevelUnsupported = 1, kLevelDisabled = 2, kLevelSupported = 3 };
inline constexpr int kApiPmSampling = 3;
enum Trigger : int { kEverySystemCycles = 0, kEveryNanoseconds = 1 };
enum AppendMode : int { kKeepOldest = 0, kKeepLatest = 1 };
enum DecodeStop : int { kStoppedOtherwise = 0, kImageIsFull = 1, kEndOfRecords = 2 };

struct ProfilerInitialize {
  size_t struct_size;
  void* priv;
};
struct ChipName {
  size_t struct_size;
  void* priv;
  size_t device;
  const char* name;  // out
};
struct DeviceSupported {
  size_t struct_size;
  void* priv;
  int device;                                                        // CUdevice
  int supported;                                                     // out, all of these: SupportLevel
  int architecture, sli, vgpu, confidential, mining_card, wsl, api;  // the last is in: kApiPmSampling
};

struct HostInitialize {
  size_t struct_size;
  void* priv;
  int type;
  const char* chip;
  const uint8_t* availability;
  void* host;  // out
};
struct HostObject {
  size_t struct_size;
  void* priv;
  void* host;
};
struct HostAddMetrics {
  size_t struct_size;
  void* priv;
  void* host;
  const char** names;
  size_t count;
};
struct HostImageSize {
  size_t struct_size;
  void* priv;
  void* host;
  size_t size;  // out
};
struct HostImage {
  size_t struct_size;
  void* priv;
  void* host;
  size_t size;
  uint8_t* image;
};
struct HostPasses {
  size_t struct_size;
  void* priv;
  size_t size;
  uint8_t* image;
  size_t passes;  // out
};
struct HostEvaluate {
  size_t struct_size;
  void* priv;
  void* host;
  const uint8_t* image;
  size_t image_size;
  size_t index;
  const char** names;
  size_t count;
  double* values;
};

struct PmAvailability {
  size_t struct_size;
  void* priv;
  size_t device;
  size_t size;  // in and out
  uint8_t* image;
};
struct PmEnable {
  size_t struct_size;
  void* priv;
  size_t device;
  void* sampling;  // out
};
struct PmObject {  // of Start, Stop and Disable
  size_t struct_size;
  void* priv;
  void* sampling;
};
struct PmConfig {
  size_t struct_size;
  void* priv;
  void* sampling;
  size_t size;
  const uint8_t* image;
  size_t hardware_bytes;
  uint64_t interval;  // by the trigger: cycles or ns
  int trigger;
  int append;
};
struct PmDataSize {
  size_t struct_size;
  void* priv;
  void* sampling;
  const char** names;
  size_t count;
  uint32_t samples;
  size_t size;  // out
};
struct PmDataInitialize {
  size_t struct_size;
  void* priv;
  void* sampling;
  size_t size;
  uint8_t* image;
};
struct PmDecode {
  size_t struct_size;
  void* priv;
  void* sampling;
  uint8_t* image;
  size_t size;
  int stop;          // out: DecodeStop
  uint8_t overflow;  // out: the hardware's buffer was full
};
struct PmDataInfo {
  size_t struct_size;
  void* priv;
  const uint8_t* image;
  size_t size;
  size_t total, populated, completed;  // out
};
struct PmSampleInfo {
  size_t struct_size;
  void* priv;
  void* sampling;
  const uint8_t* image;
  size_t size;
  size_t index;
  uint64_t start, end;  // out
};

// What struct_size is to be.
template <typename Struct>
inline constexpr size_t kStructSize = sizeof(Struct);
template <>
inline constexpr size_t kStructSize<DeviceSupported> = offsetof(DeviceSupported, api) + sizeof(int);
template <>
inline constexpr size_t kStructSize<PmDecode> = offsetof(PmDecode, overflow) + sizeof(uint8_t);

// All zero but for its size.
template <typename Struct>
Struct sized() {
  Struct made{};
  made.struct_size = kStructSize<Struct>;
  return made;
}

}  // namespace strobe::gpu::cupti
