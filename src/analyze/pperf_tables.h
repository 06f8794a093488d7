// What a device executed, in the tables of pPerf (docs/experiments.md says where ours differ).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/table.h"
#include "strobe/trace/timeline.h"

namespace strobe::analyze {

enum class WorkKind : uint8_t { kKernel, kHostToDevice, kDeviceToHost, kDeviceToDevice, kOtherCopy };

// One thing that the device did for a frame of a model.
struct ModelWork {
  std::string model, model_type, input;  // input: the frame's token, or its number where it has none
  std::string layer;                     // the innermost annotation or operator that asked for it
  std::string name;                      // the kernel's, or host2device, device2host, device2device, memcpy, memset
  WorkKind kind = WorkKind::kKernel;
  int64_t frame = trace::kNoFrame;
  int64_t start_ns = 0, end_ns = 0;
  int64_t bytes = 0;
};

// Kernels, copies and sets by start. model: of the tenant (or its name, where several have one model), the fact `model`
// or the process. A trace of tenants without a device that recorded itself (a CPU) gives the tenants' operations: there
// they are what held the device.
std::vector<ModelWork> model_work(const trace::Timeline& timeline);

// One row a piece of work: Input, Model, Layer, Kernel Name, Start Timestamp, End Timestamp (ns), Elapsed Time (ms).
Table kernel_timings(const std::vector<ModelWork>& work);

// One row a model that copies: model_name, total_host2device, total_device2host (how many), mean_interval_host2device,
// mean_interval_device2host, mean_interval_all_memcpy (ms from one start to the next; the mean of the middle half of
// four or more, between the quartiles), total_memcpy_operations, model_type. All frames count.
Table memcpy_intervals(const std::vector<ModelWork>& work);

// Copies of another model count for e2e_kernels() when they start so near to one of the frame's own.
inline constexpr int64_t kNearCopy_ns = 5'000'000;

// One row a frame of `primary`, over its window from the first start to the last end of its work: model (the other
// one), kernels_in_range (its kernels and copies that overlap the window), sum_e2e_time_in_range (ms, of those),
// memcpy_kernels_in_range (its copies within 5 ms of one of the frame's), unique_kernel_types, kernel_types (joined by
// ";"), error (empty), input_token, primary_e2e_time (ms), primary_start_timestamp, primary_end_timestamp (ns).
Table e2e_kernels(const std::vector<ModelWork>& work, const std::string& primary, const std::string& contention);

// Models in the order in which they first had the device.
std::vector<std::string> models_of(const std::vector<ModelWork>& work);

// What the device did for a range and everything inside of it, by range of the timeline; ranges without are absent.
struct RangeDeviceTimes {
  double turnaround_ms = 0;                        // last end - first start of kernels
  double computation_ms = 0;                       // length of their union
  double wait_ms = 0;                              // max(0, turnaround - computation)
  int64_t internal_bytes = 0, external_bytes = 0;  // copies on the device; copies from or to the host
};
std::map<int32_t, RangeDeviceTimes> range_device_times(const trace::Timeline& timeline);

}  // namespace strobe::analyze
