// The comparison that comes first: several runs, usually one an engine, row by row.
#pragma once

#include <span>

#include "base/table.h"
#include "report/html_report.h"

namespace strobe::report {

// One row a run: engine (the label), frames, dropped, inference_fps, end_to_end_fps, limit_fps, limit_share,
// limited_by (a stage or "cores"), cores_busy (CPU time of the run over its duration and cores), waiting_share (of the
// latency, in queues), p50_ms, p90_ms, p99_ms, max_ms (latency of a whole frame), speedup (end_to_end_fps over that of
// the first run). What a trace cannot say is missing. The notes of the runs' own tables stand below, each with its
// run's label.
Table compare_runs(std::span<const ReportInput> runs);

}  // namespace strobe::report
