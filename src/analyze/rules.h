// Findings: what a trace shows that usually can be had faster, with where, how much and a next step.
#pragma once

#include "base/table.h"
#include "strobe/trace/timeline.h"

namespace strobe::analyze {

struct RulesOptions {
  int64_t gap_ns = 500'000;          // idle time of a device from which on it is a finding
  int64_t small_kernel_ns = 10'000;  // kernels that take less are small
};

// One row a finding, most time at stake first: rule, where (name, or what the host did in a gap), count, ns, share (of
// the trace's duration), why, next_step. The rules:
//   sync_copy        calls that copy and wait; ns: time in them
//   pageable_async   asynchronous copies from or to pageable memory; ns: time of the copies
//   device_gap       a device idles longer than gap_ns, by what the thread that asked for the next operation was in
//   half
//                    way through the gap; ns: the gaps
//   small_kernels    at least 100 kernels and half of all are small; ns: idle time of the device directly before them
//   host_sync        calls that wait for the device; ns: time in them
//   starved_stage    no thread of stage "infer" works for at least a fifth of the run, and another stage is busier; ns:
//                    that time
//   oversubscribed   more stage threads at work than the run may use cores; ns: time of the threads beyond
// Sums of different rules may be of the same time.
Table rules(const trace::Timeline& timeline, const RulesOptions& options);

}  // namespace strobe::analyze
