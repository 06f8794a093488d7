// Times of ranges out of a recorded timeline, where the program could not tell them itself.
#pragma once

#include "bench/ranges.h"
#include "strobe/trace/timeline.h"

namespace strobe::bench {

struct Filled {
  size_t found = 0;     // ranges that the timeline has, too
  bool device = false;  // the timeline has work of a device, so that gpu_ms is measured
};

// Annotations of the timeline are matched by their path below obj_name; of several with one path on a thread the last
// counts, those of several threads are averaged. gpu_ms: from the start of the first to the end of the last device
// operation that was launched inside the range; 0 without one. cpu: whether cpu_ms is filled, too.
Filled fill_times(RangeTimes& ranges, const trace::Timeline& timeline, bool cpu);

}  // namespace strobe::bench
