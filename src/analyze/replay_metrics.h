// Counters of replayed kernels brought to the kernels of a timeline.
#pragma once

#include "analyze/kernels.h"
#include "base/table.h"
#include "strobe/base/result.h"
#include "strobe/trace/timeline.h"

namespace strobe::analyze {

// One row a kernel's name (or layer, range, frame, stage, tenant), most time first: name|layer|..., count, device_ns,
// matched (kernels of which the replay has counters), and a column for each figure of the replay: percentages are means
// by the kernels' time in the timeline, the others means a kernel.
//
// The two are different runs of a program that does the same in both: a kernel is the n-th of its name and grid in the
// order of launches (of each process, in the order of their first kernels). Coverage: share of the kernels' time that
// is matched. Errors: kBadData (`replayed` has no such table).
Result<Table> replay_metrics(const trace::Timeline& timeline, const trace::Timeline& replayed,
                             const KernelsOptions& options);

}  // namespace strobe::analyze
