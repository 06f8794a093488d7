// Brings what the collectors found into the timeline that the recorders made.
#pragma once

#include <string_view>

#include "collect/collector.h"
#include "strobe/trace/timeline.h"

namespace strobe::app {

// `strobe record` itself marks the recording's start in the same folder: the mark's argument is CLOCK_MONOTONIC, which
// ties the collectors' times to the timeline's.
inline constexpr std::string_view kClockMark = "strobe.recording";
inline constexpr std::string_view kClockKey = "monotonic_ns";

// Marks that tell of intervals afterwards become ranges; names of threads told by others reach them; processes become
// ranges with their command line and exit, samples counters, sums two tables. To be called on a finished timeline,
// which is finished again. self: the process id of `strobe record`.
void merge_findings(trace::Timeline& timeline, const collect::Findings& findings, int32_t self);

}  // namespace strobe::app
