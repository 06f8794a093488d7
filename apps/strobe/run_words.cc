#include "run_words.h"

#include <algorithm>

#include "collect/machine.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <initializer_list>
#include <utility>

#include "engines/request.h"
#include "models/model.h"

namespace strobe::app {

namespace fs = std::filesystem;

namespace {

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

bool is_model_file(const std::string& model) {
  const std::string extension = fs::path(model).extension().string();
  return extension == ".onnx" || extension == ".xml" || extension == ".pt" || extension == ".pt2" ||
         extension == ".engine" || extension == ".plan";
}

}  // namespace

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
  STROBE_ASSIGN(words.prep_level, one_of<media::PrepLevel>("--prep-level", flags.prep_level,
                                                           {{"simple", media::PrepLevel::kSimple},
                                                            {"medium", media::PrepLevel::kMedium},
                                                            {"complex", media::PrepLevel::kComplex}}));
  if (!flags.size.empty()) {
    int end = 0;
    if (std::sscanf(flags.size.c_str(), "%ldx%ld%n", &words.width, &words.height, &end) != 2 ||
        static_cast<size_t>(end) != flags.size.size() || words.width <= 0 || words.height <= 0)
      return usage_error(fmt::format("--size {}: expected WIDTHxHEIGHT, e.g. 416x416", flags.size));
  }
  return words;
}

media::SourceOptions source_options(const RunFlags& flags, const Words& words) {
  media::SourceOptions options;
  options.decode_threads = flags.decode_threads;
  options.hwaccel = flags.hwaccel;
  options.rtsp_transport = words.transport;
  options.timeout_s = flags.timeout_s;
  options.reconnects = flags.reconnects;
  return options;
}

std::string prep_filter(const RunFlags& flags, const Words& words) {
  return flags.prep_filter.empty() ? std::string(media::filter_of(words.prep_level)) : flags.prep_filter;
}

Result<void> check_device(const RunFlags& flags, const engines::Engine& engine) {
  STROBE_TRY(engines::check_device_word(flags.device));
  STROBE_TRY(engines::check_runs_on(engine, flags.device));
  if (flags.prep_on_gpu && engine.name() != "torch" && engine.name() != "tensorrt")
    return unsupported("--prep-on-gpu: engine " + engine.name() +
                       " does not preprocess pictures on a GPU; torch and tensorrt do");
  return {};
}

void set_threads(const RunFlags& flags, engines::LoadOptions& load) {
  const int threads = flags.threads > 0 ? flags.threads : std::max(1, static_cast<int>(collect::allowed_cores()));
  const int usual = load.hint == engines::Hint::kThroughput ? threads : 1;
  load.sessions = flags.sessions > 0 ? flags.sessions : usual;
  load.threads_per_session = std::max(1, threads / load.sessions);
}

Result<engines::ModelSource> open_model(const RunFlags& flags, const Words& words, const engines::Engine& engine) {
  if (is_model_file(flags.model)) {
    const auto formats = engine.file_formats();
    const std::string extension = fs::path(flags.model).extension().string();
    if (!fs::exists(flags.model)) return not_found(flags.model + ": no such file");
    if (std::find(formats.begin(), formats.end(), extension) == formats.end())
      return unsupported(fmt::format("{}: engine {} reads {}, .json and Darknet .cfg, not {}", flags.model,
                                     engine.name(), fmt::join(formats, " "), extension));
    return engines::ModelSource(fs::path(flags.model));
  }
  models::OpenOptions options;
  options.seeded = flags.weights == "none";
  if (!options.seeded) options.weights = flags.weights;
  options.labels = flags.labels;
  options.width = words.width;
  options.height = words.height;
  options.seed = flags.seed;
  STROBE_ASSIGN(models::Graph graph, models::open_graph(flags.model, options));
  return engines::ModelSource(std::make_shared<const models::Graph>(std::move(graph)));
}

}  // namespace strobe::app
