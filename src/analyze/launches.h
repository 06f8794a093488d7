// Calls that gave work to a device, and whether frames wait for the host or for the device.
#pragma once

#include "analyze/idle.h"
#include "analyze/name_filter.h"
#include "analyze/work_owners.h"
#include "base/table.h"
#include "strobe/trace/timeline.h"

namespace strobe::analyze {

// One row a call's name (and stage or tenant), most delay first: [stage|tenant,] call, calls, operations, call_total_ns
// (each call once), call_mean_ns, device_total_ns, delay_total_ns and delay_mean_ns, delay_max_ns (max(0, start of the
// operation - end of its call)), short_share (operations that took less time than their call). In HTA's rules: without
// what the last of several ProfilerSteps launched, and a call counts once for each of its operations; `by` is of
// Strobe's rules.
Table launches(const trace::Timeline& timeline, IdleRules rules, WorkBy by = WorkBy::kNobody);

struct FrameBoundOptions {
  NameFilter frames;  // not set: ranges "ProfilerStep#...", or else frames by their number
};

// One row a frame: frame (its range's name, or its number), start_ns, duration_ns, operations (of the devices of its
// process that start in it), device_busy_ns, idle_ns, idle_share, host_ns (of idle_ns: before an operation whose launch
// call began after the gap did, up to that call's end; or after which nothing came), host_share (of the duration),
// verdict: "device-bound" (busy for at least 90 % of it), "host-bound" (at least half of the idle time is host_ns),
// else "waits" (for other streams, copies, or reasons that the trace does not tell).
Table frame_bound(const trace::Timeline& timeline, const FrameBoundOptions& options);

}  // namespace strobe::analyze
