// A run as a worker's steps: one row a batch, in the columns that video-stream workers log.
#pragma once

#include "base/table.h"
#include "strobe/trace/timeline.h"

namespace strobe::analyze {

// A step is one batch through the stage "infer" or "train" of a pipeline's run (analyze/pipeline.h), in the order in
// which they began there. Columns: step (from 0), read_latency_ms and prep_latency_ms (time in those stages, summed
// over the batch's frames), exec_latency_ms (of the network), total_step_latency_ms (from the start of the first
// frame's read to the end of the network, waiting in queues included: stages overlap, so that it is no sum); of
// training also loss.
Table steps(const trace::Timeline& timeline);

}  // namespace strobe::analyze
