// The flags of `strobe run`, as typed; what they mean is run_session.h's business.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "gpu/metrics_sampler.h"
#include "strobe/base/result.h"

namespace strobe::app {

struct RunFlags {
  std::string input, model = "person-tiny", weights, labels;
  std::vector<std::string> engines{"openvino"};
  std::string output = "strobe-out";
  std::string format = "text";
  bool quiet = false, verify = false, no_record = false, no_gpu_trace = false, no_video = false, gpu_metrics = false,
       gpu_graph_nodes = false;
  int gpu_metrics_us = gpu::kMetricsPeriodUs;  // after resolve_run_flags 0 without gpu_metrics
  int64_t frames = 0, batch = 1;
  int warmup = 3, threads = 0, sessions = 0, queue = 4;
  std::string hint, precision = "f32", size, drop;
  uint64_t seed = 1;
  float score = 0.3F, nms = 0.45F;
  std::string codec = "h264";
  int decode_threads = 1, encode_threads = 1;
  std::string rtsp_transport = "tcp", hwaccel;
  double timeout_s = 10, limit_seconds = 1;
  int reconnects = 5, profile_runs = 10;
  std::string dump_outputs;  // folder for the raw outputs of the first frames, for --verify

  // Of a worker.
  std::string mode = "inference", prep_level = "simple", prep_filter, core_bind, split_point, split_engine;
  bool prep_on_gpu = false, infer_on_gpu = false, enable_compile = false, use_amp = false;
  int64_t max_steps = 0;
  int device_id = 0;
  std::string device = "cpu";  // of --infer-on-gpu and --device-id: LoadOptions::device

  // Of training.
  std::string targets, optimizer = "adamw", resume;
  double epochs = 1, learning_rate = 1e-3, weight_decay = 5e-4, hold_out = 0;
  int64_t checkpoint_every = 0, shuffle = 128;
  bool no_augment = false;
};

enum class RunMode : uint8_t { kInference, kRetrain };

void declare_run_flags(CLI::App& app, RunFlags& flags);

// Fills in what one flag says about another: --max-steps gives --frames, --mode retrain and --enable-compile an engine,
// --use-amp a precision. Errors: kUsage, kUnsupported (a GPU that is not there).
Result<void> resolve_run_flags(const CLI::App& app, RunFlags& flags);
Result<RunMode> run_mode(const RunFlags& flags);
// Between two samples of hardware counters; 0: none are wanted. Errors: kUsage.
Result<int> gpu_metrics_us(const CLI::App& app, const RunFlags& flags);
// Tells the collectors of this process and its children. Errors: kUsage (nothing is collected).
Result<void> ask_for_graph_nodes(const RunFlags& flags);

// The command line that would set the same flags, less those named: what a child process is started with.
std::vector<std::string> arguments_without(const CLI::App& app, const std::vector<std::string>& left_out);

}  // namespace strobe::app
