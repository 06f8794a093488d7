// Deadline misses: which frames were late or never came, for what reason, and how the time should be shared out among
// the stages (docs/analysis-definitions.md, section 7).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analyze/blame.h"
#include "base/table.h"
#include "strobe/base/result.h"
#include "strobe/trace/timeline.h"

namespace strobe::analyze {

struct DeadlineOptions {
  std::optional<double> deadline_ms;  // for all tenants, from the stamp; nothing: each tenant's own
  size_t window = 10;                 // k of (m, k): the most misses in any k frames in a row
};

struct DeadlineAnswer {
  // One row a tenant with a deadline: tenant, deadline_ms, frames (due), met, late, dropped, overwritten, failed, lost,
  // not_sent, miss_share, tardiness_mean_ms, tardiness_p99_ms, tardiness_max_ms (of late frames), longest_run (of
  // misses), most_in_window, recovery_frames (median, from the last miss of a run to the first frame of usual latency).
  Table tenants;
  // One row a late frame: tenant, frame, token, latency_ms, over_ms, then by how much more than a typical frame (one
  // near the median) it had of own_work_ms, others_ms, backlog_ms, arrival_ms, system_ms, unknown_ms; they sum to
  // latency less median within the averaging error. by, resource: the tenant and resource that took most of others_ms;
  // verdict: the largest reason; necessary: the reasons without any one of which the frame would have met its deadline;
  // sufficient: whether the largest alone makes a typical frame late.
  Table late;
  // One row a verdict: tenant, verdict, by, resource, frames, share.
  Table reasons;
  // One row a tenant and stage: tenant, stage, need_ms (quantile 1 - miss share / stages), budget_ms (in proportion,
  // they sum to the deadline), use (need / budget), broken_first (late frames in which this stage was the first to
  // overrun).
  Table budget;
};

// Errors: those of tenant_trace(); kUsage (no tenant has a deadline).
Result<DeadlineAnswer> deadlines(const trace::Timeline& timeline, const DeadlineOptions& options);

}  // namespace strobe::analyze
