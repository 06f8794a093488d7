// Training as a pipeline: read, prep, train; what it does and needs is on the timeline like any run.
#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "pipeline/runner.h"
#include "pipeline/training_set.h"
#include "strobe/engines/engine.h"

namespace strobe::pipeline {

struct TrainRunOptions {
  TrainingSetOptions data;
  std::string prep_filter;  // media/filter.h; empty: none
  bool augment = true;      // mirrored at random, brightness and contrast varied
  engines::TrainOptions train;
  double learning_rate = 1e-3;  // the largest: it rises over the first twentieth of the steps, then falls as a cosine
  int64_t max_steps = 0;        // 0: as epochs say
  double epochs = 1;            // where max_steps is 0
  size_t queue_capacity = 4;
  std::filesystem::path checkpoint;  // written every checkpoint_every steps and at the end; empty: never
  int64_t checkpoint_every = 0;      // 0: at the end only
  std::filesystem::path resume;      // a checkpoint to go on from; empty: none
  const std::atomic<bool>* stop = nullptr;
  std::function<void()> on_start;                                          // everything is open, the run begins
  std::function<void(int64_t step, int64_t of, double loss)> on_progress;  // of: 0 when unknown
};

struct TrainRunResult {
  RunnerResult run;
  media::SourceInfo source;
  int64_t first_step = 0;    // of this run: those before it were done before the checkpoint
  std::vector<double> loss;  // by step of this run
  models::Graph graph;       // with the trained weights
  models::CocoDataset held_out;
  bool diverged = false;        // ended by a loss that is no number: the graph's weights mean nothing
  bool has_checkpoint = false;  // of the end
  int64_t damaged = 0;          // pictures that could not be read and were left out, each time counted
  std::vector<std::string> notes;
};

// Trains graph. Records ranges "forward", "backward" and "update" inside the stage "train", and the counters "loss",
// "learning_rate" and "rss_bytes" a step. Errors before the first step come as the Result's error; what fails later in
// result.run.ended, with the weights as they were before it.
Result<TrainRunResult> run_training(engines::Engine& engine, std::shared_ptr<const models::Graph> graph,
                                    const TrainRunOptions& options);

}  // namespace strobe::pipeline
