// What a run of several tenants came to, frame by frame and tenant by tenant.
#pragma once

#include <string>
#include <vector>

#include "analyze/tenant_trace.h"
#include "base/table.h"
#include "strobe/trace/timeline.h"

namespace strobe::analyze {

// Where a finished frame's time went; the parts sum to the latency (done - stamp) exactly.
struct FrameParts {
  int64_t comm_ns = 0;    // stamp to arrival
  int64_t queue_ns = 0;   // all the time in which no stage worked on it
  int64_t decode_ns = 0;  // the stages named "decode"
  int64_t work_ns = 0;    // all other stages: preparation, inference with its wait for the device, post-processing
};
FrameParts frame_parts(const TenantTrace& trace, const trace::Timeline& timeline, size_t frame);

// One row a finished frame of the window, by completion, in the columns and units (seconds) of pPerf's delays_<i>.csv:
// time_stamp (of the sensor; where it has none, wall clock of the stamp), input_token, comm_delay, decode_delay,
// inference_delay, e2e_delay, model_name, model_type; then queue_delay, tenant, frame, deadline_met.
// e2e_delay = comm + queue + decode + inference; the original leaves the queue out.
Table tenant_delays(const TenantTrace& trace, const trace::Timeline& timeline);

// One row a tenant: tenant, model, frames (due), finished, late, dropped, overwritten, lost, not_sent, fps, p50_ms,
// p99_ms, max_ms, deadline_ms, miss_share (of all frames due: late, dropped, overwritten, lost, failed, not sent).
Table tenant_summary(const TenantTrace& trace);

// Of which tenants a sensor gave in frames of the window the same input as in the one before, though it has others.
std::vector<std::string> repeated_input_notes(const TenantTrace& trace);

// One row an operation of the window in the columns of pPerf's layer_timings_<i>.csv (times in ns and ms): Input,
// Model, Layer, Start Timestamp, End Timestamp, Elapsed Time, GPU Turnaround Time, GPU Computation Time, GPU Wait Time,
// Internal Memcpy Size (on the device), External Memcpy Size (from and to the host), then Depth (1: a stage, 2: an
// operation of one, 3: inside of that); stages stand before their operations. Columns of the GPU are 0 where the trace
// has no work of a device for the row.
Table tenant_layer_timings(const TenantTrace& trace, const trace::Timeline& timeline);

}  // namespace strobe::analyze
