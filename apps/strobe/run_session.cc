#include "run_session.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <thread>

#include "analyze/pipeline.h"
#include "base/file.h"
#include "bench/environment.h"
#include "bench/run_benchmark.h"
#include "collect/machine.h"
#include "engines/loader.h"
#include "media/filter.h"
#include "models/cost.h"
#include "models/model.h"
#include "pipeline/video_run.h"
#include "progress_line.h"
#include "report/table_format.h"
#include "run_outputs.h"
#include "run_recording.h"
#include "run_words.h"
#include "strobe/record/annotate.h"

namespace strobe::app {

namespace fs = std::filesystem;

namespace {

constexpr int64_t kVerifiedFrames = 8;

// What --split-point says of this network; empty without it.
Result<std::string> split_layer(const RunFlags& flags, const engines::ModelSource& model) {
  if (flags.split_point.empty()) return std::string();
  const size_t colon = flags.split_point.find(':');
  if (colon == std::string::npos) return flags.split_point;
  const std::string of = flags.split_point.substr(0, colon);
  const auto* graph = std::get_if<std::shared_ptr<const models::Graph>>(&model);
  if (of != flags.model && !(graph && of == (*graph)->name))
    return usage_error(fmt::format("--split-point {}: the model is {}, not {}", flags.split_point, flags.model, of));
  if (colon + 1 == flags.split_point.size())
    return usage_error(
        fmt::format("--split-point {}: expected MODEL:LAYER, e.g. {}layer3", flags.split_point, flags.split_point));
  return flags.split_point.substr(colon + 1);
}

// What runs the first part of a split network, which is always on the CPU; null: the engine itself.
Result<std::shared_ptr<engines::Engine>> first_part(const RunFlags& flags, const engines::Engine& engine) {
  if (flags.split_point.empty()) return std::shared_ptr<engines::Engine>();
  if (!flags.split_engine.empty()) {
    STROBE_ASSIGN(auto opened, engines::open_engine(flags.split_engine));
    if (opened->precisions().empty())
      return usage_error("--split-engine " + flags.split_engine +
                         ": runs on GPUs only, and the first part of a split network runs on the CPU");
    return opened;
  }
  if (!engine.precisions().empty()) return std::shared_ptr<engines::Engine>();
  for (const auto& other : engines::list_engines()) {
    if (!other.built || other.name == engine.name()) continue;
    STROBE_ASSIGN(auto opened, engines::open_engine(other.name));
    if (!opened->precisions().empty()) return opened;
  }
  return unsupported("--split-point: engine " + engine.name() +
                     " runs on GPUs only, and no engine for the first part, on the CPU, is built");
}

Result<pipeline::VideoRunOptions> video_options(const RunFlags& flags, const Words& words, const fs::path& folder) {
  pipeline::VideoRunOptions options;
  options.input = flags.input;
  options.source = source_options(flags, words);
  options.no_video = flags.no_video;
  options.prep_on_device = flags.prep_on_gpu;
  if (flags.prep_on_gpu) {
    STROBE_ASSIGN(options.prep.smoothing_sigma, media::smoothing_of(words.prep_level));
  } else {
    options.prep_filter = prep_filter(flags, words);
  }
  options.video = folder / "annotated.mp4";
  options.picture = folder / "annotated.jpg";
  options.writer.codec = flags.codec;
  options.writer.threads = flags.encode_threads;
  options.detect.score_threshold = flags.score;
  options.detect.nms_threshold = flags.nms;
  options.load.batch = flags.batch;
  options.load.precision = words.precision;
  options.load.device = flags.device;
  options.load.hint = words.hint;
  set_threads(flags, options.load);
  options.queue_capacity = static_cast<size_t>(flags.queue);
  options.max_frames = flags.frames;
  options.warmup = flags.warmup;
  options.drop = words.drop;
  options.alone_seconds = flags.no_record ? 0 : flags.limit_seconds;
  options.profiled_runs = flags.no_record ? 0 : flags.profile_runs;
  options.kept_outputs = flags.dump_outputs.empty() ? 0 : kVerifiedFrames;
  return options;
}

void record_run_facts(const RunFlags& flags, const std::string& spec, const engines::Engine& engine) {
  record::fact("engine", spec);
  record::fact("engine.version", engine.version());
  record::fact("model", flags.model);
  record::fact("model.weights", flags.weights);
  record::fact("input", flags.input);
  record::fact("precision", flags.precision);
  if (!flags.core_bind.empty()) record::fact("cores.bound", flags.core_bind);
}

// What is not in the recording because no thread of ours did it: the network's layers and the engine's kernels.
void add_network(const engines::ModelSource& model, const pipeline::LayerProfile& profile, trace::Timeline& timeline) {
  std::map<std::string, int32_t> index;
  const auto add = [&](const std::string& name, trace::NetworkLayer layer) {
    layer.name = timeline.strings.intern(name);
    index.emplace(name, static_cast<int32_t>(timeline.layers.size()));
    timeline.layers.push_back(layer);
  };
  if (const auto* graph = std::get_if<std::shared_ptr<const models::Graph>>(&model)) {
    for (size_t i = 0; i < (*graph)->layers.size(); ++i) {
      const models::Layer& layer = (*graph)->layers[i];
      const models::Cost cost = models::layer_cost(**graph, static_cast<models::LayerId>(i));
      add(layer.name, {.type = timeline.strings.intern(models::type_name(layer.operation)),
                       .shape = timeline.strings.intern(layer.output.to_string()),
                       .parameters = cost.parameters,
                       .flop = cost.flop,
                       .bytes = cost.bytes});
    }
  }
  for (size_t i = 0; i < profile.kernels.size(); ++i) {
    const engines::Kernel& kernel = profile.kernels[i];
    trace::NetworkKernel row{.name = timeline.strings.intern(kernel.name),
                             .type = timeline.strings.intern(kernel.type),
                             .implementation = timeline.strings.intern(kernel.implementation),
                             .layers = {},
                             .duration_ns = profile.duration_ns[i]};
    for (const std::string& layer : kernel.layers) {
      // Layers of a file that only the engine reads are known by the names that it gives.
      if (!index.contains(layer)) add(layer, {.type = row.type});
      row.layers.push_back(index.at(layer));
    }
    timeline.kernels.push_back(std::move(row));
  }
}

// What `strobe bench -- strobe run ...` collects.
Result<void> write_benchmark(const RunFlags& flags, const std::string& spec, const trace::Timeline& timeline,
                             const fs::path& folder) {
  STROBE_ASSIGN(const bench::Warmup warmup, bench::warmup_of_environment());
  return bench::write_run_benchmark(timeline, warmup, folder,
                                    {{"args",
                                      {{"input", flags.input},
                                       {"model", flags.model},
                                       {"engine", spec},
                                       {"batch_size", flags.batch},
                                       {"device_id", flags.device_id},
                                       {"output_dir", folder.string()}}}});
}

}  // namespace

Result<void> check_run_flags(const RunFlags& flags) {
  const auto at_least = [](const char* flag, double value, double least) -> Result<void> {
    if (value < least) return usage_error(fmt::format("{} {:g}: must be at least {:g}", flag, value, least));
    return {};
  };
  STROBE_TRY(at_least("--batch", static_cast<double>(flags.batch), 1));
  STROBE_TRY(at_least("--frames", static_cast<double>(flags.frames), 0));
  STROBE_TRY(at_least("--warmup", flags.warmup, 0));
  STROBE_TRY(at_least("--threads", flags.threads, 0));
  STROBE_TRY(at_least("--sessions", flags.sessions, 0));
  STROBE_TRY(at_least("--queue", flags.queue, 1));
  STROBE_TRY(at_least("--decode-threads", flags.decode_threads, 0));
  STROBE_TRY(at_least("--encode-threads", flags.encode_threads, 0));
  STROBE_TRY(at_least("--limit-seconds", flags.limit_seconds, 0));
  STROBE_TRY(at_least("--profile-runs", flags.profile_runs, 0));
  STROBE_TRY(at_least("--timeout", flags.timeout_s, 0.001));
  STROBE_TRY(at_least("--reconnects", flags.reconnects, 0));
  if (flags.batch > 4096) return usage_error(fmt::format("--batch {}: at most 4096", flags.batch));
  if (flags.sessions > 1024 || flags.threads > 1024) return usage_error("--sessions and --threads: at most 1024");
  if (!(flags.score >= 0 && flags.score <= 1))
    return usage_error(fmt::format("--score {:g}: expected 0..1", flags.score));
  if (!(flags.nms >= 0 && flags.nms <= 1)) return usage_error(fmt::format("--nms {:g}: expected 0..1", flags.nms));
  if (flags.verify && flags.engines.size() < 2)
    return usage_error("--verify compares engines: name at least two, e.g. --engine torch,openvino");
  for (size_t i = 0; i < flags.engines.size(); ++i)
    if (std::count(flags.engines.begin(), flags.engines.end(), flags.engines[i]) > 1)
      return usage_error(fmt::format("--engine: {} is named twice", flags.engines[i]));
  for (const std::string& engine : flags.engines) STROBE_TRY(engines::check_engine(engine));
  if (!flags.split_engine.empty())
    if (auto known = engines::check_engine(flags.split_engine); !known)
      return std::move(known).error().at("--split-engine");
  STROBE_TRY(parse_words(flags));
  STROBE_TRY(report::parse_format(flags.format));
  return {};
}

Result<RunOutcome> run_session(const RunFlags& flags, const std::string& spec, const std::string& folder_name,
                               const std::atomic<bool>& stop) {
  const fs::path folder = folder_name;
  STROBE_ASSIGN(const Words words, parse_words(flags));
  STROBE_ASSIGN(const auto engine, engines::open_engine(spec));
  STROBE_TRY(check_device(flags, *engine));
  STROBE_ASSIGN(const auto first, first_part(flags, *engine));
  STROBE_ASSIGN(const engines::ModelSource model, open_model(flags, words, *engine));
  STROBE_ASSIGN(const OutputFolder output_folder, OutputFolder::make(folder));
  STROBE_ASSIGN(const FolderLock lock, FolderLock::take(folder));

  STROBE_ASSIGN(pipeline::VideoRunOptions options, video_options(flags, words, folder));
  STROBE_ASSIGN(options.split_layer, split_layer(flags, model));
  options.first_part = first;
  std::unique_ptr<RunRecording> recording;
  if (!flags.no_record) {
    STROBE_ASSIGN(recording, RunRecording::start(folder, !flags.no_gpu_trace, flags.gpu_metrics_us));
    record_run_facts(flags, spec, *engine);
  }
  if (std::holds_alternative<fs::path>(model)) {
    if (words.width > 0) options.load.input_shape = {3, words.height, words.width};
    if (!flags.labels.empty()) {
      STROBE_ASSIGN(options.labels, models::read_labels(flags.labels));
    }
  }
  options.stop = &stop;
  options.source.stop = &stop;
  ProgressLine progress(!flags.quiet);
  options.on_progress = [&](int64_t finished, int64_t total) {
    progress.show([&] {
      return fmt::format("{}  {}{} frames  {:.1f} FPS", spec, finished, total > 0 ? fmt::format("/{}", total) : "",
                         static_cast<double>(finished) / progress.seconds());
    });
  };

  if (!flags.quiet && flags.format == "text")
    options.on_start = [&] {
      print_start({{"run", fmt::format("{} on {} {}, {}, batch {}, {} sessions x {} threads{}", flags.model, spec,
                                       engine->version(), flags.precision, options.load.batch, options.load.sessions,
                                       options.load.threads_per_session,
                                       flags.core_bind.empty() ? "" : ", bound to cores " + flags.core_bind)}});
    };
  auto done = pipeline::run_video(*engine, model, options);
  if (!done) return std::move(done).error();
  pipeline::VideoRunResult& result = *done;
  Result<trace::Timeline> recorded = trace::Timeline{};
  if (recording) recorded = recording->stop();

  RunOutcome outcome;
  outcome.ended = std::move(result.run.ended);
  if (outcome.ended && result.run.stopped) outcome.ended = Error(ErrorKind::kInterrupted, "interrupted");
  const auto keep = [&](Result<void> written) {
    if (!written && outcome.ended) outcome.ended = std::move(written).error();
  };
  keep(write_detections(result.detections, result.labels, folder / "detections.json"));
  if (!flags.dump_outputs.empty()) keep(write_outputs(result.outputs, fs::path(flags.dump_outputs)));
  outcome.summary = {{"engine", spec}, {"frames", result.run.finished}, {"dropped", result.run.dropped}};
  if (flags.no_record) {
    outcome.summary["seconds"] = result.run.seconds;
    outcome.summary["end_to_end_fps"] = static_cast<double>(result.run.finished) / result.run.seconds;
  } else {
    STROBE_ASSIGN(trace::Timeline timeline, std::move(recorded));
    add_network(model, result.layers, timeline);
    if (auto stored = recording->store(timeline)) {
      outcome.summary["trace"] = stored->string();
    } else {
      keep(std::move(stored).error());
    }
    keep(write_step_metrics(timeline, flags.model, folder, outcome.summary));
    keep(write_file(folder / "frames.csv",
                    report::format_table(analyze::frame_latency(timeline), report::Format::kCsv)));
    add_measures(timeline, outcome.summary);
    note_gpu_off(timeline, outcome.summary);
    if (bench::wanted_by_environment()) keep(write_benchmark(flags, spec, timeline, folder));
  }
  if (!flags.no_video && fs::exists(options.video)) outcome.summary["video"] = options.video.string();
  if (result.source.kind == "picture" && fs::exists(options.picture))
    outcome.summary["picture"] = options.picture.string();
  outcome.summary["frames_csv"] = (folder / "frames.csv").string();
  outcome.summary["detections"] = (folder / "detections.json").string();
  if (result.damaged > 0)
    result.notes.push_back(fmt::format("{} damaged packets or frames of the input were skipped", result.damaged));
  if (result.reconnected > 0)
    result.notes.push_back(fmt::format("the live source was reopened {} times", result.reconnected));
  for (const std::string& note : result.notes) outcome.summary["notes"].push_back(note);
  return outcome;
}

}  // namespace strobe::app
