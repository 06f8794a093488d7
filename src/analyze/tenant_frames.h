// Every frame of a tenants' run with the parts of its time, and how long its layers took.
#pragma once

#include <array>

#include "analyze/tenant_trace.h"
#include "base/table.h"
#include "strobe/trace/timeline.h"

namespace strobe::analyze {

// What a finished frame's latency is made of; the parts sum to it. In ms.
inline constexpr std::array kFrameParts = {"comm_ms",        "queue_ms",    "decode_ms",
                                           "device_wait_ms", "cpu_wait_ms", "work_ms"};
inline constexpr std::array kFramePartsHelp = {
    "stamp to arrival", "waited in its queue", "", "waited for its turn on the device", "ready, but no core was free",
    "the rest"};
using FramePartTimes = std::array<double, kFrameParts.size()>;
FramePartTimes frame_part_times(const TenantTrace& trace, const trace::Timeline& timeline, size_t frame);

// One row a frame that was due in the window, by stamp: tenant, frame, stamp_s (since the window began), outcome
// (finished, dropped, overwritten, failed, lost), latency_ms, then kFrameParts (of finished frames), deadline_ms.
Table tenant_frames(const TenantTrace& trace, const trace::Timeline& timeline);

// One row a tenant and stage or operation (a layer, a kernel) of finished frames of the window: tenant, layer, depth
// (1: a stage; 2: an operation of one; 3: an operation inside of that), frames, mean_ms, std_ms, min_ms, p25_ms,
// p50_ms, p75_ms, p99_ms, max_ms (elapsed time; p99 from 100 frames on), wait_ms (mean, before it could start),
// correlation (Pearson, of a frame's time in it and the frame's latency; missing where either does not vary). Where a
// frame passes a layer several times its times are summed. Most time first within a tenant.
Table layer_spread(const TenantTrace& trace, const trace::Timeline& timeline);

}  // namespace strobe::analyze
