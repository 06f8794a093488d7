// The main job: a video through a detector, stage by stage: read, prep, infer, post, draw, write.
#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "media/sink.h"
#include "media/source.h"
#include "models/box_decoder.h"
#include "pipeline/runner.h"
#include "strobe/base/result.h"
#include "strobe/engines/engine.h"
#include "strobe/models/graph.h"

namespace strobe::pipeline {

struct VideoRunOptions {
  std::string input;
  media::SourceOptions source;
  std::filesystem::path video;  // annotated video; empty: none is written, but frames are still encoded unless no_video
  std::filesystem::path picture;  // where the annotated picture goes when the input is a single picture; may be empty
  bool no_video = false;          // leaves out draw and write
  media::WriterOptions writer;
  std::string prep_filter;      // of the pictures that the network sees (media/filter.h); empty: none
  bool prep_on_device = false;  // pictures are sampled on load.device; takes no prep_filter and no split_layer
  engines::PrepOptions prep;    // of that
  std::string split_layer;      // the network is cut behind it (models/split.h); empty: it is whole
  std::shared_ptr<engines::Engine> first_part;  // its engine, on the CPU; null: the same as of the second
  models::DetectOptions detect;
  std::vector<std::string> labels;  // class names of a model file; a graph has its own
  engines::LoadOptions load;
  size_t queue_capacity = 4;
  int64_t max_frames = 0;          // 0: all
  int warmup = 3;                  // inferences of each session before the clock starts
  std::optional<DropPolicy> drop;  // nothing: kOldest for live sources, kNever for files
  double alone_seconds = 1;        // how long each stage is run by itself afterwards, for the limit; 0: not at all
  int profiled_runs = 10;          // inferences with per-layer times afterwards; 0: none
  int64_t kept_outputs = 0;        // raw network outputs of so many first frames are returned
  const std::atomic<bool>* stop = nullptr;
  std::function<void()> on_start;                                 // everything is open, the run begins
  std::function<void(int64_t finished, int64_t of)> on_progress;  // of: 0 when unknown
};

// A class and its probability.
struct ClassScore {
  int class_id = 0;
  float score = 0;
};

// What the network said of a frame: a detector's boxes, or a classifier's five best classes, the best first.
struct FrameDetections {
  int64_t frame = 0;
  double time_s = 0;
  std::vector<models::Detection> boxes;
  std::vector<ClassScore> classes = {};
};

// What the engine executes, with times by run where it was profiled.
struct LayerProfile {
  std::vector<engines::Kernel> kernels;
  std::vector<std::vector<int64_t>> duration_ns;  // by kernel
};

struct VideoRunResult {
  RunnerResult run;
  media::SourceInfo source;
  int64_t damaged = 0;                      // packets or frames that could not be decoded
  int64_t reconnected = 0;                  // times a live source was opened again
  std::vector<FrameDetections> detections;  // in frame order
  std::vector<std::string> labels;          // class names, by class_id
  LayerProfile layers;
  std::vector<std::string> notes;  // what the user must know to read the figures
  // [output][frame]: the first kept_outputs frames, one item each.
  std::vector<std::vector<std::vector<float>>> outputs;
};

// Runs the job; everything that happens is recorded by whoever called record::start. Errors before the first frame
// (input, network, output) come as the Result's error; what fails later comes in result.run.ended, with what was done.
// Of a file that only the engine reads, boxes are decoded where the shape of its output is known (exported_yolo.h).
Result<VideoRunResult> run_video(engines::Engine& engine, const engines::ModelSource& model,
                                 const VideoRunOptions& options);

}  // namespace strobe::pipeline
