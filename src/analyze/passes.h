// What a pipeline's run consists of, read out of a timeline: frames' passes through stages, drops, and the passes of
// each stage alone. The base of every table of pipeline.h.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "strobe/trace/timeline.h"

namespace strobe::analyze {

// One frame in one stage. Of a batch, every frame has the whole batch's time.
struct Pass {
  int64_t frame;
  int32_t stage;  // index into PipelineRun::stages
  int64_t start_ns, end_ns;
};

// A stage run by itself after the run.
struct AlonePass {
  std::string stage;
  int64_t frames = 0;
  int64_t duration_ns = 0;
  int64_t cpu_ns = 0;                                  // 0: not recorded
  int64_t machine_busy_ns = 0, machine_stolen_ns = 0;  // as those of PipelineRun
};

struct Frame {
  int64_t id;
  size_t first_pass, pass_count;  // in PipelineRun::passes
  bool finished;                  // has its first and its last stage inside the run
  int64_t start_ns, end_ns;       // of a finished frame: start of the first stage, end of the last
};

struct PipelineRun {
  std::vector<std::string> stages;
  bool has_run = false;
  bool open = false;  // the recording ends inside the run
  int64_t start_ns = 0, end_ns = 0;
  int64_t cpu_ns = 0;             // CPU time of the process inside the run; 0: not recorded
  int64_t machine_busy_ns = 0;    // of everything on the CPUs that the process may use; 0: not recorded
  int64_t machine_stolen_ns = 0;  // time in which those CPUs were ready, but the hypervisor ran something else
  size_t further_runs = 0;        // ranges "run" after the first, which are left out
  std::vector<Pass> passes;       // by frame, stage, start
  std::vector<Frame> frames;      // by id
  std::vector<int64_t> busy_ns;   // by stage: time in which at least one of its ranges was open
  uint64_t finished = 0;
  uint64_t dropped = 0;
  uint64_t unfinished = 0;       // seen in the run, neither finished nor dropped
  std::vector<AlonePass> alone;  // one a stage, repeats added up; in the order of stages, then others
};

PipelineRun pipeline_run(const trace::Timeline& timeline);

}  // namespace strobe::analyze
