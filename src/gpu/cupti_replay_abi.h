// The binary interface of CUPTI's range profiler (cupti_range_profiler.h, of CUDA 12.6 and newer) and of what its
// callbacks tell of launches, as far as this library uses them; declared by ourselves as cupti_metrics_abi.h is.
// tests/gpu/replay_abi_test.cc holds it against NVIDIA's headers.
#pragma once

#include <cstddef>
#include <cstdint>

#include "gpu/cupti_metrics_abi.h"

namespace strobe::gpu::cupti {

inline constexpr int kApiRangeProfiling = 0;
inline constexpr int kAutoRange = 1;     // one range a kernel
inline constexpr int kKernelReplay = 2;  // the library runs each kernel once a pass

struct ContextAvailability {
  size_t struct_size;
  void* priv;
  void* context;
  size_t size;  // in and out
  uint8_t* image;
};
struct RangeEnable {
  size_t struct_size;
  void* priv;
  void* context;
  void* profiler;  // out
};
struct RangeObject {  // of Start and Disable
  size_t struct_size;
  void* priv;
  void* profiler;
};
struct RangeStop {
  size_t struct_size;
  void* priv;
  void* profiler;
  size_t pass, nesting;   // out
  uint8_t all_submitted;  // out
};
struct RangeConfig {
  size_t struct_size;
  void* priv;
  void* profiler;
  size_t size;
  const uint8_t* configuration;
  size_t image_size;
  uint8_t* image;
  int range, replay;
  size_t most_ranges;
  uint16_t nesting_levels, least_nesting;
  size_t pass;
  uint16_t target_nesting;
};
struct RangeDecode {
  size_t struct_size;
  void* priv;
  void* profiler;
  size_t dropped;  // out: ranges
};
struct RangeDataSize {
  size_t struct_size;
  void* priv;
  void* profiler;
  const char** names;
  size_t count;
  size_t most_ranges;
  uint32_t most_nodes;
  size_t size;  // out
};
struct RangeDataInitialize {
  size_t struct_size;
  void* priv;
  void* profiler;
  size_t size;
  uint8_t* image;
};
struct RangeDataInfo {
  size_t struct_size;
  void* priv;
  const uint8_t* image;
  size_t size;
  size_t ranges;  // out
};
template <>
inline constexpr size_t kStructSize<RangeStop> = offsetof(RangeStop, all_submitted) + sizeof(uint8_t);
template <>
inline constexpr size_t kStructSize<RangeConfig> = offsetof(RangeConfig, target_nesting) + sizeof(uint16_t);

// What a callback of the driver's or the runtime's domain comes with.
enum CallSite : int { kCallEnter = 0, kCallExit = 1 };
struct CallbackData {
  int site;
  const char* function;
  const void* params;
  void* return_value;  // at the exit: of an int, 0 for success
  const char* symbol;  // of launches: the kernel's name
  void* context;
  uint32_t context_number;
  uint64_t* user;
  uint32_t correlation;
};
// Arguments of launches, by the beginning that is alike in cuLaunchKernel, cudaLaunchKernel and the cooperative ones;
// the others (Ex, ExC) begin with a pointer to a configuration that begins with the sizes.
struct LaunchSizes {
  uint32_t grid[3], block[3];
};
struct DirectLaunch {
  const void* function;
  LaunchSizes sizes;
};
struct ConfiguredLaunch {
  const LaunchSizes* sizes;
};
inline constexpr uint32_t kContextCreated = 1, kContextDestroyed = 2;

}  // namespace strobe::gpu::cupti
