// Where a device's time goes: computing, moving data, idle; and why its streams wait.
#pragma once

#include <string>

#include "analyze/work_owners.h"
#include "base/table.h"
#include "strobe/base/result.h"
#include "strobe/trace/timeline.h"

namespace strobe::analyze {

enum class IdleRules : uint8_t {
  kStrobe,
  kHta,  // as HolisticTraceAnalysis, to compare with its figures
};
// Errors: kUsage naming both.
Result<IdleRules> parse_idle_rules(const std::string& name);

struct IdleOptions {
  IdleRules rules = IdleRules::kStrobe;
  int64_t threshold_ns = 30'000;  // gaps below it are kernel wait
};

// One row a device, followed by one for each of its streams: device, process, stream (missing: the whole device),
// operations, span_ns (first start to last end), compute_ns (at least one computing kernel runs), non_compute_ns (none,
// but something else: copies, sets, communication), idle_ns, three shares of the span, and idle_ns by the operation
// that ended each gap: host_wait_ns (its launch call began after the gap did), kernel_wait_ns (not so, and the gap is
// below the threshold), other_ns, unknown_ns (its launch call is not in the trace; in HTA's rules those are one of the
// former).
Table idle(const trace::Timeline& timeline, const IdleOptions& options);

// One row a device and stage or tenant, most time first: device, stage|tenant, operations, compute_ns and
// non_compute_ns (of its own operations, as above), share (of the device's span, in which at least one of them ran),
// and of the device's idle time what ended with one of its operations: idle_ns, idle_share (of the span), host_wait_ns,
// kernel_wait_ns, other_ns, unknown_ns. Strobe's rules.
Table idle_by(const trace::Timeline& timeline, const IdleOptions& options, WorkBy by);

// One row a device and combination of computation, communication and memory: device, work ("computation",
// "computation + memory", ...), time_ns, share (of the time in which any of the three ran).
Table work_types(const trace::Timeline& timeline, const IdleOptions& options);

}  // namespace strobe::analyze
