#include "run_session.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <thread>

#include "analyze/pipeline.h"
#include "base/file.h"
#include "collect/machine.h"
#include "engines/loader.h"
#include "models/cost.h"
#include "models/model.h"
#include "pipeline/video_run.h"
#include "report/table_format.h"
#include "run_outputs.h"
#include "strobe/record/annotate.h"
#include "trace/spool_import.h"
#include "trace/store.h"

namespace strobe::app {

namespace fs = std::filesystem;

namespace {

constexpr int64_t kVerifiedFrames = 8;

struct Words {
  engines::Precision precision = engines::Precision::kF32;
  engines::Hint hint = engines::Hint::kThroughput;
  std::optional<pipeline::DropPolicy> drop;
  media::SourceOptions::RtspTransport transport = media::SourceOptions::RtspTransport::kTcp;
  int64_t width = 0, height = 0;
};

bool is_live(const std::string& input) {
  return input.rfind("rtsp", 0) == 0 || input.rfind("/dev/", 0) == 0;
}

template <typename T>
Result<T> one_of(const char* flag, const std::string& word, std::initializer_list<std::pair<const char*, T>> known) {
  std::string names;
  for (const auto& [name, value] : known) {
    if (word == name) return value;
    names += (names.empty() ? "" : ", ") + std::string(name);
  }
  return usage_error(fmt::format("{} {}: expected one of {}", flag, word, names));
}

Result<Words> parse_words(const RunFlags& flags) {
  using engines::Hint;
  using engines::Precision;
  using pipeline::DropPolicy;
  using Transport = media::SourceOptions::RtspTransport;
  Words words;
  STROBE_ASSIGN(words.precision, one_of<Precision>("--precision", flags.precision,
                                                   {{"f32", Precision::kF32},
                                                    {"bf16", Precision::kBf16},
                                                    {"f16", Precision::kF16},
                                                    {"i8", Precision::kInt8},
                                                    {"int8", Precision::kInt8}}));
  words.hint = is_live(flags.input) ? Hint::kLatency : Hint::kThroughput;
  if (!flags.hint.empty()) {
    STROBE_ASSIGN(words.hint,
                  one_of<Hint>("--hint", flags.hint, {{"throughput", Hint::kThroughput}, {"latency", Hint::kLatency}}));
  }
  if (!flags.drop.empty()) {
    STROBE_ASSIGN(words.drop, one_of<DropPolicy>("--drop", flags.drop,
                                                 {{"never", DropPolicy::kNever},
                                                  {"oldest", DropPolicy::kOldest},
                                                  {"newest", DropPolicy::kNewest}}));
  }
  STROBE_ASSIGN(words.transport, one_of<Transport>("--rtsp-transport", flags.rtsp_transport,
                                                   {{"tcp", Transport::kTcp}, {"udp", Transport::kUdp}}));
  if (!flags.size.empty()) {
    int end = 0;
    if (std::sscanf(flags.size.c_str(), "%ldx%ld%n", &words.width, &words.height, &end) != 2 ||
        static_cast<size_t>(end) != flags.size.size() || words.width <= 0 || words.height <= 0)
      return usage_error(fmt::format("--size {}: expected WIDTHxHEIGHT, e.g. 416x416", flags.size));
  }
  return words;
}

bool is_model_file(const std::string& model) {
  const std::string extension = fs::path(model).extension().string();
  return extension == ".onnx" || extension == ".xml" || extension == ".pt";
}

// The network as the engine takes it: a graph, or the path of a file that it reads itself.
Result<engines::ModelSource> open_model(const RunFlags& flags, const Words& words, const engines::Engine& engine) {
  if (is_model_file(flags.model)) {
    const auto formats = engine.file_formats();
    const std::string extension = fs::path(flags.model).extension().string();
    if (!fs::exists(flags.model)) return not_found(flags.model + ": no such file");
    if (std::find(formats.begin(), formats.end(), extension) == formats.end())
      return unsupported(fmt::format("{}: engine {} reads {} and Darknet .cfg, not {}", flags.model, engine.name(),
                                     fmt::join(formats, " "), extension));
    return engines::ModelSource(fs::path(flags.model));
  }
  models::OpenOptions options;
  options.weights = flags.weights;
  options.labels = flags.labels;
  options.width = words.width;
  options.height = words.height;
  options.seed = flags.seed;
  STROBE_ASSIGN(models::Graph graph, models::open_graph(flags.model, options));
  return engines::ModelSource(std::make_shared<const models::Graph>(std::move(graph)));
}

// How the inference threads are dealt out.
void set_threads(const RunFlags& flags, engines::LoadOptions& load) {
  const int threads = flags.threads > 0 ? flags.threads : std::max(1, static_cast<int>(collect::allowed_cores()));
  const int usual = load.hint == engines::Hint::kThroughput ? threads : 1;
  load.sessions = flags.sessions > 0 ? flags.sessions : usual;
  load.threads_per_session = std::max(1, threads / load.sessions);
}

pipeline::VideoRunOptions video_options(const RunFlags& flags, const Words& words, const fs::path& folder) {
  pipeline::VideoRunOptions options;
  options.input = flags.input;
  options.source.decode_threads = flags.decode_threads;
  options.source.rtsp_transport = words.transport;
  options.source.timeout_s = flags.timeout_s;
  options.source.reconnects = flags.reconnects;
  options.no_video = flags.no_video;
  options.video = folder / "annotated.mp4";
  options.picture = folder / "annotated.jpg";
  options.writer.codec = flags.codec;
  options.writer.threads = flags.encode_threads;
  options.detect.score_threshold = flags.score;
  options.detect.nms_threshold = flags.nms;
  options.load.batch = flags.batch;
  options.load.precision = words.precision;
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

// "openvino  123/795 frames" on the terminal, at most ten times a second.
class Progress {
 public:
  explicit Progress(std::string label, bool wanted) : label_(std::move(label)), on_(wanted && isatty(STDERR_FILENO)) {}
  ~Progress() {
    if (shown_) std::fputs("\r\033[K", stderr);
  }
  void show(int64_t finished, int64_t total) {
    const auto now = std::chrono::steady_clock::now();
    if (!on_ || now - last_ < std::chrono::milliseconds(100)) return;
    last_ = now;
    shown_ = true;
    const double seconds = std::chrono::duration<double>(now - begin_).count();
    const std::string of = total > 0 ? fmt::format("/{}", total) : "";
    fmt::print(stderr, "\r\033[K{}  {}{} frames  {:.1f} FPS", label_, finished, of,
               static_cast<double>(finished) / seconds);
    std::fflush(stderr);
  }

 private:
  std::string label_;
  bool on_, shown_ = false;
  const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  std::chrono::steady_clock::time_point last_{};
};

void record_run_facts(const RunFlags& flags, const std::string& spec, const engines::Engine& engine) {
  for (const auto& [key, value] : collect::machine_facts()) record::fact(key, value);
  record::fact("engine", spec);
  record::fact("engine.version", engine.version());
  record::fact("model", flags.model);
  record::fact("model.weights", flags.weights);
  record::fact("input", flags.input);
  record::fact("precision", flags.precision);
  record::fact("cores", fmt::format("{:g}", collect::allowed_cores()));
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
  STROBE_TRY(parse_words(flags));
  STROBE_TRY(report::parse_format(flags.format));
  return {};
}

Result<RunOutcome> run_session(const RunFlags& flags, const std::string& spec, const std::string& folder_name,
                               const std::atomic<bool>& stop) {
  const fs::path folder = folder_name;
  STROBE_ASSIGN(const Words words, parse_words(flags));
  STROBE_ASSIGN(const auto engine, engines::open_engine(spec));
  STROBE_ASSIGN(const engines::ModelSource model, open_model(flags, words, *engine));
  STROBE_TRY(make_writable_folder(folder));

  const fs::path spool = folder / "spool";
  std::error_code ignored;
  fs::remove_all(spool, ignored);  // of a run that was killed here before
  if (!flags.no_record) {
    STROBE_TRY(record::start({.folder = spool, .process_name = "strobe run"}));
    record::name_thread("main");
    record_run_facts(flags, spec, *engine);
  }
  pipeline::VideoRunOptions options = video_options(flags, words, folder);
  if (std::holds_alternative<fs::path>(model)) {
    if (words.width > 0) options.load.input_shape = {3, words.height, words.width};
    if (!flags.labels.empty()) {
      STROBE_ASSIGN(options.labels, models::read_labels(flags.labels));
    }
  }
  options.stop = &stop;
  options.source.stop = &stop;
  Progress progress(spec, !flags.quiet);
  options.on_progress = [&](int64_t finished, int64_t total) { progress.show(finished, total); };

  auto done = pipeline::run_video(*engine, model, options);
  Result<record::Totals> totals = record::Totals{};
  if (!flags.no_record) totals = record::stop();
  if (!done) {
    fs::remove_all(spool, ignored);
    return std::move(done).error();
  }
  pipeline::VideoRunResult& result = *done;

  RunOutcome outcome;
  outcome.ended = std::move(result.run.ended);
  if (outcome.ended && result.run.stopped) outcome.ended = Error(ErrorKind::kInterrupted, "interrupted");
  if (outcome.ended && !totals) outcome.ended = std::move(totals).error();
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
    STROBE_ASSIGN(trace::Timeline timeline, trace::import_spool(spool));
    add_network(model, result.layers, timeline);
    const fs::path trace = folder / "trace.sqlite";
    auto stored = trace::write_store(timeline, trace);
    if (stored) {
      fs::remove_all(spool, ignored);
      outcome.summary["trace"] = trace.string();
    } else {
      keep(std::move(stored).error().at(
          fmt::format("the recording is kept, `strobe recover {}` reads it", spool.string())));
    }
    keep(write_file(folder / "frames.csv",
                    report::format_table(analyze::frame_latency(timeline), report::Format::kCsv)));
    add_measures(timeline, outcome.summary);
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
