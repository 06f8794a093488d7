#include "run_flags.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "gpu/collector.h"
#include "gpu_samplers.h"
#include "run_words.h"

namespace strobe::app {

void declare_run_flags(CLI::App& app, RunFlags& f) {
  app.add_option("-i,--input", f.input,
                 "Video file, picture, folder of pictures, rtsp://..., /dev/videoN, or synthetic://WxH[@FPS][/FRAMES]")
      ->required();
  app.add_option(
         "-m,--model,--model-name", f.model,
         "Built-in network, .json, Darknet .cfg, or a file the engine reads (.onnx .xml .pt .pt2 .engine .plan)")
      ->capture_default_str();
  app.add_option("--weights", f.weights, "Darknet .weights or .safetensors; none: made up from --seed");
  app.add_option("--labels", f.labels, "Class names, one a line");
  app.add_option("-e,--engine", f.engines, "Engines, run in turn: torch, torch:script, openvino, opencv, tensorrt")
      ->delimiter(',')
      ->capture_default_str();
  app.add_option("-o,--output,--output-dir,--output_dir", f.output, "Folder for the trace, tables and videos")
      ->capture_default_str();
  app.add_option("--format", f.format, "Of the result on stdout: text, csv, json")->capture_default_str();
  app.add_flag("-q,--quiet", f.quiet, "No progress and no remarks on stderr");

  const std::string work = "Work";
  app.add_option("-n,--frames", f.frames, "Stop after so many frames (0: all)")->capture_default_str()->group(work);
  app.add_option("-b,--batch,--batch-size", f.batch, "Frames in one inference")->capture_default_str()->group(work);
  app.add_option("--warmup", f.warmup, "Inferences of each session before the clock starts")
      ->capture_default_str()
      ->group(work);
  app.add_option("--threads", f.threads, "Inference threads in all (0: the allowed cores)")
      ->capture_default_str()
      ->group(work);
  app.add_option("--sessions", f.sessions,
                 "Inferences at the same time (0: one a thread with --hint throughput, else 1)")
      ->capture_default_str()
      ->group(work);
  app.add_option("--hint", f.hint, "throughput (default for files) or latency (default for live sources)")->group(work);
  app.add_option("--precision", f.precision, "f32, bf16, f16 or i8, where engine and CPU have it")
      ->capture_default_str()
      ->group(work);
  app.add_option("--size", f.size, "Network input as WIDTHxHEIGHT (default: its own)")->group(work);
  app.add_option("--score", f.score, "Lowest score of a box")->capture_default_str()->group(work);
  app.add_option("--nms", f.nms, "Overlap (IoU) above which the weaker box goes")->capture_default_str()->group(work);
  app.add_option("--seed", f.seed, "Of weights that are made up")->capture_default_str()->group(work);
  app.add_flag("--verify", f.verify,
               "Compare the engines' outputs and boxes with the first engine's; exit 1 if they differ")
      ->group(work);

  const std::string flow = "Sources and sinks";
  app.add_option("--queue", f.queue, "Batches that may wait between two stages")->capture_default_str()->group(flow);
  app.add_option("--drop", f.drop, "never (default for files), oldest (default for live sources) or newest")
      ->group(flow);
  app.add_option("--decode-threads", f.decode_threads, "Of the video decoder (0: its choice)")
      ->capture_default_str()
      ->group(flow);
  app.add_option("--hwaccel", f.hwaccel, "Device that decodes videos and streams: cuda (NVDEC), cuda:1, vaapi, ...")
      ->group(flow);
  app.add_option("--encode-threads", f.encode_threads, "Of the video encoder")->capture_default_str()->group(flow);
  app.add_option("--codec", f.codec, "Of the annotated video: h264, mpeg4, mjpeg")->capture_default_str()->group(flow);
  app.add_flag("--no-video", f.no_video, "Draw and write no annotated video")->group(flow);
  app.add_option("--rtsp-transport", f.rtsp_transport, "tcp or udp")->capture_default_str()->group(flow);
  app.add_option("--timeout", f.timeout_s, "Seconds to wait for a live source")->capture_default_str()->group(flow);
  app.add_option("--reconnects", f.reconnects, "Tries in a row when a live source breaks")
      ->capture_default_str()
      ->group(flow);

  const std::string worker = "Worker";
  app.add_option("--mode", f.mode, "inference, or retrain: train the network on the input")
      ->capture_default_str()
      ->group(worker);
  app.add_option("--max-steps", f.max_steps, "Stop after so many batches (0: as --frames or --epochs say)")
      ->capture_default_str()
      ->group(worker);
  app.add_option("--prep-level", f.prep_level,
                 "simple (scale), medium (also smooth) or complex (denoise, sharpen, ...)")
      ->capture_default_str()
      ->group(worker);
  app.add_option("--prep-filter", f.prep_filter, "Instead of a level: FFmpeg's filters, e.g. gblur=sigma=1,hue=s=1.2")
      ->group(worker);
  app.add_option("--core-bind", f.core_bind, "Run on these cores alone: 0 or 0,2 or 0-3")->group(worker);
  app.add_option("--split-point", f.split_point, "MODEL:LAYER (or LAYER): run the network in two parts, cut behind it")
      ->group(worker);
  app.add_option("--split-engine", f.split_engine,
                 "Of the first part, on the CPU; without: --engine, where it runs there")
      ->group(worker);
  app.add_flag("--enable-compile", f.enable_compile, "Let the engine optimise the whole network (torch: script)")
      ->group(worker);
  app.add_flag("--use-amp", f.use_amp, "bfloat16: in inference --precision bf16, in training mixed precision")
      ->group(worker);
  app.add_flag("--prep-on-gpu", f.prep_on_gpu,
               "Preprocess on the GPU, too: with --infer-on-gpu, --prep-level simple or medium")
      ->group(worker);
  app.add_flag("--infer-on-gpu", f.infer_on_gpu,
               "Run or train the network (of a split one: the second part) on the GPU")
      ->group(worker);
  app.add_option("--device-id,--device_id", f.device_id, "Of the GPU")->capture_default_str()->group(worker);

  const std::string training = "Training (--mode retrain)";
  app.add_option("--targets", f.targets, "Labels of the input as COCO JSON; without: a folder of class folders")
      ->group(training);
  app.add_option("--epochs", f.epochs, "Times through the input")->capture_default_str()->group(training);
  app.add_option("--learning-rate,--lr", f.learning_rate, "The largest; it rises first, then falls as a cosine")
      ->capture_default_str()
      ->group(training);
  app.add_option("--optimizer", f.optimizer, "adamw or sgd")->capture_default_str()->group(training);
  app.add_option("--weight-decay", f.weight_decay, "Of weights, not of biases and norms")
      ->capture_default_str()
      ->group(training);
  app.add_option("--hold-out", f.hold_out, "Part of the labelled pictures, the last ones, that is not trained on")
      ->capture_default_str()
      ->group(training);
  app.add_option("--shuffle", f.shuffle, "Frames of a stream of which the next one is drawn at random")
      ->capture_default_str()
      ->group(training);
  app.add_flag("--no-augment", f.no_augment, "Show the pictures as they are, not mirrored or in other light")
      ->group(training);
  app.add_option("--checkpoint-every", f.checkpoint_every, "Steps between checkpoints (0: one at the end)")
      ->capture_default_str()
      ->group(training);
  app.add_option("--resume", f.resume, "Go on from this checkpoint.safetensors")->group(training);

  const std::string measuring = "Measuring";
  app.add_option("--limit-seconds", f.limit_seconds,
                 "How long each stage runs by itself afterwards, for limit_fps (0: not at all)")
      ->capture_default_str()
      ->group(measuring);
  app.add_option("--profile-runs", f.profile_runs, "Inferences with per-layer times afterwards (0: none)")
      ->capture_default_str()
      ->group(measuring);
  app.add_flag("--no-record", f.no_record, "Record nothing: only frames, seconds and end-to-end FPS are known then")
      ->group(measuring);
  app.add_flag("--no-gpu-trace", f.no_gpu_trace,
               "Leave out what the run does on NVIDIA devices (kernels, copies, calls, samples of the devices)")
      ->group(measuring);
  app.add_flag("--gpu-graph-nodes", f.gpu_graph_nodes, kGraphNodesHelp)->group(measuring);
  app.add_flag("--gpu-metrics", f.gpu_metrics,
               "Sample the GPUs' hardware counters, too (use of SMs, tensor cores and memory); needs the right to them")
      ->group(measuring);
  app.add_option("--gpu-metrics-us", f.gpu_metrics_us, "Time between two samples of those, in microseconds")
      ->capture_default_str()
      ->group(measuring);
  app.add_option("--dump-outputs", f.dump_outputs, "Folder for the raw network outputs of the first frames")
      ->group(measuring);
}

Result<RunMode> run_mode(const RunFlags& flags) {
  if (flags.mode == "inference") return RunMode::kInference;
  if (flags.mode == "retrain") return RunMode::kRetrain;
  return usage_error("--mode " + flags.mode + ": expected one of inference, retrain");
}

Result<int> gpu_metrics_us(const CLI::App& app, const RunFlags& flags) {
  if (flags.gpu_metrics)
    for (const auto& [given, name] :
         {std::pair{flags.no_gpu_trace, "--no-gpu-trace"}, {flags.no_record, "--no-record"}})
      if (given) return usage_error(fmt::format("--gpu-metrics and {} exclude each other", name));
  return metrics_period_us(flags.gpu_metrics, flags.gpu_metrics_us, app.count("--gpu-metrics-us") > 0);
}

Result<void> ask_for_graph_nodes(const RunFlags& flags) {
  if (!flags.gpu_graph_nodes) return {};
  for (const auto& [given, name] : {std::pair{flags.no_gpu_trace, "--no-gpu-trace"}, {flags.no_record, "--no-record"}})
    if (given) return usage_error(fmt::format("--gpu-graph-nodes and {} exclude each other", name));
  ::setenv(gpu::kGraphNodesVariable, "1", 1);
  return {};
}

namespace {

// What preprocessing on a GPU goes with.
Result<void> check_prep_on_gpu(const RunFlags& flags, RunMode mode) {
  if (mode == RunMode::kRetrain)
    return unsupported("--prep-on-gpu is of --mode inference: what training does to pictures, it does on the CPU");
  if (!flags.infer_on_gpu)
    return usage_error("--prep-on-gpu goes with --infer-on-gpu: the network reads its input where that was made");
  if (!flags.split_point.empty())
    return unsupported("--prep-on-gpu and --split-point exclude each other: a split network begins on the CPU");
  if (!flags.prep_filter.empty())
    return unsupported(
        "--prep-filter with --prep-on-gpu: FFmpeg's filters run on the CPU; --prep-level medium does not");
  STROBE_ASSIGN(const Words words, parse_words(flags));
  STROBE_TRY(media::smoothing_of(words.prep_level));
  return {};
}

}  // namespace

Result<void> resolve_run_flags(const CLI::App& app, RunFlags& flags) {
  STROBE_ASSIGN(const RunMode mode, run_mode(flags));
  STROBE_ASSIGN(flags.gpu_metrics_us, gpu_metrics_us(app, flags));
  STROBE_TRY(ask_for_graph_nodes(flags));
  const bool chosen_engine = app.count("--engine") > 0;
  if (flags.max_steps < 0) return usage_error("--max-steps: must be at least 0");
  if (flags.max_steps > 0 && mode == RunMode::kInference && flags.batch > 0) {
    if (app.count("--frames") > 0) return usage_error("--max-steps and --frames say the same: give one of them");
    flags.frames = flags.max_steps * flags.batch;
  }
  for (const char* name : {"--split-point", "--split-engine", "--core-bind", "--prep-filter", "--targets", "--resume"})
    if (app.count(name) > 0 && app.get_option(name)->as<std::string>().empty())
      return usage_error(std::string(name) + " is empty");
  if (!flags.split_engine.empty() && flags.split_point.empty())
    return usage_error("--split-engine goes with --split-point: it runs the first part of a split network");
  if (flags.device_id < 0) return usage_error("--device-id: must be at least 0");
  if (flags.infer_on_gpu) {
    flags.device = "cuda:" + std::to_string(flags.device_id);
    if (!chosen_engine) flags.engines = {"torch"};  // the one that runs there
  }
  if (flags.prep_on_gpu) STROBE_TRY(check_prep_on_gpu(flags, mode));
  if (!flags.prep_filter.empty() && app.count("--prep-level") > 0)
    return usage_error("--prep-filter stands instead of --prep-level: give one of them");
  if (mode == RunMode::kRetrain) {
    if (!chosen_engine) flags.engines = {"torch"};
    if (flags.engines.size() != 1) return usage_error("--mode retrain: one engine at a time");
    for (const char* other :
         {"--frames", "--verify", "--split-point", "--precision", "--no-record", "--sessions", "--dump-outputs"})
      if (app.count(other) > 0) return usage_error(std::string(other) + " is of --mode inference");
    return {};
  }
  for (const char* other : {"--targets", "--epochs", "--learning-rate", "--optimizer", "--weight-decay", "--hold-out",
                            "--shuffle", "--no-augment", "--checkpoint-every", "--resume"})
    if (app.count(other) > 0) return usage_error(std::string(other) + " is of --mode retrain");
  if (flags.enable_compile) {
    if (!chosen_engine) flags.engines = {"torch:script"};
    for (std::string& engine : flags.engines)
      if (engine == "torch") engine = "torch:script";  // the others compile in any case
  }
  if (flags.use_amp && app.count("--precision") == 0) flags.precision = "bf16";
  return {};
}

std::vector<std::string> arguments_without(const CLI::App& app, const std::vector<std::string>& left_out) {
  std::vector<std::string> arguments;
  for (const CLI::Option* option : app.get_options()) {
    if (option->count() == 0 || option->get_lnames().empty()) continue;
    const std::string& name = option->get_lnames().front();
    if (std::find(left_out.begin(), left_out.end(), name) != left_out.end()) continue;
    if (option->get_items_expected_max() == 0) {
      arguments.push_back("--" + name);
      continue;
    }
    for (const std::string& value : option->results()) arguments.push_back("--" + name + "=" + value);
  }
  return arguments;
}

}  // namespace strobe::app
