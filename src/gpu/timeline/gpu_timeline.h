// Logs of GPU collectors become part of a timeline: the representation is the one that an imported Nsight Systems file
// gets, so that every analysis works on both.
#pragma once

#include <cstdint>
#include <filesystem>

#include "strobe/base/result.h"
#include "strobe/trace/timeline.h"

namespace strobe::gpu {

struct GpuSummary {
  uint64_t logs = 0, calls = 0, operations = 0, samples = 0;
  // Operations that began before the call that asked for them, which cannot be: how many, and the worst.
  uint64_t before_call = 0;
  int64_t worst_before_call_ns = 0;
};

// Adds what the *.gpu logs of a recorder's folder hold to the timeline of that folder (trace::import_spool), which is
// finished before and after. Threads, processes and clocks come together by the marks of record::mark_clock(). Facts
// gpu.collection ("on", or why not), gpu.N.* of devices, gpu.of.PID.DEVICE, gpu.causality.*, gpu.clock.*; losses and
// faults are counted in the timeline's. Errors: kIo; kBadData (a log that is none).
Result<GpuSummary> add_gpu_logs(trace::Timeline& timeline, const std::filesystem::path& folder);

}  // namespace strobe::gpu
