#include "run_flags.h"

#include <algorithm>

namespace strobe::app {

void declare_run_flags(CLI::App& app, RunFlags& f) {
  app.add_option("-i,--input", f.input, "Video file, picture, folder of pictures, rtsp://..., or /dev/videoN")
      ->required();
  app.add_option("-m,--model", f.model, "Built-in network, Darknet .cfg, or a file the engine reads (.onnx .xml .pt)")
      ->capture_default_str();
  app.add_option("--weights", f.weights, "Darknet .weights of the network");
  app.add_option("--labels", f.labels, "Class names, one a line");
  app.add_option("-e,--engine", f.engines, "Engines, run in turn: torch, torch:script, openvino, opencv")
      ->delimiter(',')
      ->capture_default_str();
  app.add_option("-o,--output", f.output, "Folder for the trace, tables and videos")->capture_default_str();
  app.add_option("--format", f.format, "Of the result on stdout: text, csv, json")->capture_default_str();
  app.add_flag("-q,--quiet", f.quiet, "No progress and no remarks on stderr");

  const std::string work = "Work";
  app.add_option("-n,--frames", f.frames, "Stop after so many frames (0: all)")->capture_default_str()->group(work);
  app.add_option("-b,--batch", f.batch, "Frames in one inference")->capture_default_str()->group(work);
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
  app.add_option("--encode-threads", f.encode_threads, "Of the video encoder")->capture_default_str()->group(flow);
  app.add_option("--codec", f.codec, "Of the annotated video: h264, mpeg4, mjpeg")->capture_default_str()->group(flow);
  app.add_flag("--no-video", f.no_video, "Draw and write no annotated video")->group(flow);
  app.add_option("--rtsp-transport", f.rtsp_transport, "tcp or udp")->capture_default_str()->group(flow);
  app.add_option("--timeout", f.timeout_s, "Seconds to wait for a live source")->capture_default_str()->group(flow);
  app.add_option("--reconnects", f.reconnects, "Tries in a row when a live source breaks")
      ->capture_default_str()
      ->group(flow);

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
  app.add_option("--dump-outputs", f.dump_outputs, "Folder for the raw network outputs of the first frames")
      ->group(measuring);
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
