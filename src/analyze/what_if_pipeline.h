// A pipeline's run as a discrete-event simulation: the runner's rules (src/pipeline/runner.h) over the recorded service
// times, on cores that are shared fairly.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "analyze/passes.h"
#include "strobe/base/result.h"
#include "strobe/trace/timeline.h"

namespace strobe::analyze {

struct StageModel {
  std::string name;
  int64_t workers = 1;
  bool ordered = false;         // takes batches in the order of the source
  bool per_batch = false;       // one piece of work a batch
  double cores = 1;             // that one worker keeps busy
  std::vector<double> work_ns;  // by frame (of a per_batch stage: by batch): time alone on free cores
  // Parallel to work_ns, or empty: from when it was ready until it started, as a scheduler holds up a ready thread.
  std::vector<double> delay_ns;
};

struct PipelineModel {
  double cores = 1;
  double slowdown = 0;  // of everything while all cores are busy: shared caches and memory
  int64_t queue_capacity = 4;
  int64_t batch = 1;
  double around_ns = 0;  // of the run, before the first piece of work and after the last
  std::vector<StageModel> stages;
  std::vector<int64_t> frames;     // ids, in the order of the source
  std::vector<double> arrival_ns;  // of a live source: when each frame came; else empty
};

// What a run, recorded or simulated, came to.
struct PipelineOutcome {
  std::vector<double> latency_ns;   // by frame
  std::vector<double> finished_ns;  // by frame, since the start
  double duration_ns = 0;
  std::vector<double> path_ns;  // by stage: time on the critical path; of a recorded run: empty
  double throughput() const { return static_cast<double>(latency_ns.size()) / duration_ns * 1e9; }
};

// Work is the recorded time less what it was stretched by: where more threads worked than cores are there, each had its
// share. Errors: kNotFound where the trace has no run with finished frames.
Result<PipelineModel> pipeline_model(const trace::Timeline& timeline, const PipelineRun& run);
PipelineOutcome recorded_outcome(const PipelineRun& run);
PipelineOutcome simulate(const PipelineModel& model);
// How fast each piece of work goes while so many cores are asked for; 1 alone.
double work_rate(const PipelineModel& model, double demand);

}  // namespace strobe::analyze
