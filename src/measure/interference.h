// What other programs took from a measurement, as far as the kernel counts it.
#pragma once

#include <cstdint>
#include <optional>

#include "collect/cpu_time.h"
#include "gpu/device_watch.h"

namespace strobe::measure {

// Counters at one moment.
struct UseCounters {
  int64_t time_ns = 0;                  // monotonic
  int64_t own_cpu_ns = 0;               // of this process
  int64_t wait_ns = 0;                  // its threads ready to run, but without a CPU (/proc/self/task/*/schedstat)
  int64_t involuntary_switches = 0;     // its threads were taken off a CPU
  std::optional<collect::CpuUse> cpus;  // of all that runs on the CPUs that it may use
};
UseCounters count_use();

struct Interference {
  double others_share = 0;  // CPU time of others / (time x CPUs); 0 where it cannot be known (part of a CPU by quota)
  double stolen_share = 0;  // CPU time that the hypervisor took / (time x CPUs)
  double wait_share = 0;    // time in which our threads waited for a CPU / (time x threads)
  int64_t involuntary_switches = 0;
  gpu::DeviceUse gpu = {};  // of the device, where the measurement was on one
  // The largest of the shares over its limit; above 1 the measurement counts as disturbed.
  double degree() const;
  bool disturbed() const { return degree() > 1; }
};
// Limits on the shares. Others on a CPU that we leave idle still take memory bandwidth and clock frequency, but less.
inline constexpr double kMostOthers = 0.05, kMostStolen = 0.02, kMostWait = 0.02;
// Of a GPU: a step that lasted is as long as the device's time that others had; clocks that moved made steps that are
// not of one device.
inline constexpr double kMostGpuOthers = 0.02, kMostThrottled = 0.05, kMostClockSpread = 0.02;

// Between two moments, on that many CPUs, with that many threads at work. /proc/stat counts in ticks of 10 ms a CPU, so
// two ticks a CPU are no sign of others.
Interference interference_between(const UseCounters& begin, const UseCounters& end, int cpus, int threads);

}  // namespace strobe::measure
