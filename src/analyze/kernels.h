// Kernels: what the device executed, from where it was asked for, and how long each waited to start.
#pragma once

#include <cstddef>

#include "analyze/kernel_groups.h"
#include "analyze/name_filter.h"
#include "base/table.h"
#include "strobe/trace/timeline.h"

namespace strobe::analyze {

struct KernelsOptions {
  KernelsBy by = KernelsBy::kName;
  size_t top = 0;  // rows; 0: all
  NameFilter filter;
};

// One row a kernel's name (and layer, range, frame, stage or tenant), most time first: [layer|range|...,] name, count,
// total_ns, mean_ns, std_ns, min_ns, p50_ns, p90_ns, p95_ns, p99_ns, max_ns, jitter_ns, share, and means over those
// whose launch call is in the trace: launched (how many), launch_latency_ns = call_ns + stream_wait_ns + queue_delay_ns
// with
//   launch_latency_ns  start of the kernel - start of its launch call (0 where clocks make it negative)
//   call_ns            of that, in which the call itself ran
//   stream_wait_ns     after it, in which an earlier operation of its stream still ran
//   queue_delay_ns     max(0, start - max(end of the call, end of the earlier operations of its stream)): the rest
// Whole graphs count as kernels. Without any: the kernels that an engine profiled of itself; without those: the table
// of the log that the trace was made from.
Table kernels(const trace::Timeline& timeline, const KernelsOptions& options);

}  // namespace strobe::analyze
