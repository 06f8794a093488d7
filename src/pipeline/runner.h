// Runner: joins stages by bounded queues, each with its own worker threads, and records every frame's way through them.
// What a stage does is its own business; order, back-pressure, drops, errors and the clean stop are the runner's.
#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "pipeline/batch.h"
#include "strobe/base/result.h"

namespace strobe::pipeline {

// What happens to frames of a live source that the pipeline cannot keep up with.
enum class DropPolicy : uint8_t {
  kNever,   // the source waits (files)
  kOldest,  // the frame that waited longest goes: lowest latency
  kNewest,  // the frame that just came goes: fewest gaps in what was begun
};

struct Stage {
  std::string name;
  int workers = 1;
  bool ordered = false;    // batches arrive in order of their sequence; needs workers == 1
  bool per_batch = false;  // one call and one range for the whole batch, instead of one a frame
  // Runs on each worker thread before the clock starts: what binds to a thread, warm-up.
  std::function<Result<void>(int worker)> start = {};
  // One frame (index into batch.frames) of a batch, or the whole batch (index 0) of a per_batch stage.
  std::function<Result<void>(Batch& batch, size_t index, int worker)> work = {};
};

struct RunnerOptions {
  size_t queue_capacity = 4;  // batches between two stages
  int64_t batch_size = 1;
  int64_t max_frames = 0;  // 0: until the source ends
  DropPolicy drop = DropPolicy::kNever;
  const std::atomic<bool>* stop = nullptr;                 // set: no new frame is read; what is under way is finished
  std::function<void(int64_t finished)> on_progress = {};  // called on the last stage's thread after each batch
};

struct RunnerResult {
  int64_t read = 0;      // frames that the source gave
  int64_t finished = 0;  // frames that left the last stage
  int64_t dropped = 0;
  bool stopped = false;  // by RunnerOptions::stop
  double seconds = 0;    // from the first read to the end of the last stage
  // Its error is the source's or a stage's failure. A source that breaks off is reported after everything it gave was
  // finished.
  Result<void> ended;
};

// Reads the next frame; nothing at the end.
using ReadFrame = std::function<Result<std::optional<media::Frame>>()>;
// Prepares a recycled or new batch's buffers.
using PrepareBatch = std::function<void(Batch&)>;

// Runs until the source ends, max_frames, stop or an error. Must be called with recording on or off; records as
// analyze/pipeline.h describes. first_stage is the name of the source's own stage ("read"). finish runs after the last
// batch, inside the measured time (flush of the encoder).
RunnerResult run_pipeline(const std::string& first_stage, const ReadFrame& read, const PrepareBatch& prepare,
                          const std::vector<Stage>& stages, const std::function<Result<void>()>& finish,
                          const RunnerOptions& options);

}  // namespace strobe::pipeline
