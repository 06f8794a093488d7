// The timeline of a video run (analyze/pipeline.h) as a benchmark.json.
#pragma once

#include <filesystem>

#include "bench/figures.h"
#include "bench/ranges.h"
#include "strobe/trace/timeline.h"

namespace strobe::bench {

inline constexpr const char* kRunName = "strobe_run";

// strobe_run/run_sample/pipeline/batch_<i>/<stage>. A batch is what one inference took together, in the order of its
// first frame; its items are its finished frames. Batches overlap in a pipeline, so the time of a batch is that from
// the end of the one before it (the first: from the run's start) to its own end: they add up to the pipeline's time,
// and the time an item is the inverse of the throughput. A stage's time is the sum of its ranges in the batch; stages
// of different batches run at once, so they may add up to more than the batch. gpu_ms: from the start of the first to
// the end of the last device operation of the batch, or of the stage in it. Errors: kBadData (no run, no finished
// frame).
Result<RangeTimes> run_ranges(const trace::Timeline& timeline);

// Writes output_dir/benchmark.json of these; rules as the environment says. meta's members go into its "meta". Errors:
// as run_ranges(), kUsage, kIo.
Result<void> write_run_benchmark(const trace::Timeline& timeline, const Warmup& warmup,
                                 const std::filesystem::path& output_dir, Json meta);

}  // namespace strobe::bench
