#include "train_session.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <filesystem>
#include <optional>

#include "base/file.h"
#include "engines/loader.h"
#include "models/coco.h"
#include "models/safetensors.h"
#include "pipeline/train_run.h"
#include "progress_line.h"
#include "run_recording.h"
#include "run_words.h"
#include "strobe/record/annotate.h"

namespace strobe::app {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

namespace {

Result<engines::Optimizer> optimizer_of(const RunFlags& flags) {
  if (flags.optimizer == "adamw") return engines::Optimizer::kAdamW;
  if (flags.optimizer == "sgd") return engines::Optimizer::kSgd;
  return usage_error(fmt::format("--optimizer {}: expected one of adamw, sgd", flags.optimizer));
}

Result<void> check(const RunFlags& flags) {
  if (!(flags.epochs > 0)) return usage_error(fmt::format("--epochs {:g}: must be above 0", flags.epochs));
  if (!(flags.learning_rate > 0))
    return usage_error(fmt::format("--learning-rate {:g}: must be above 0", flags.learning_rate));
  if (!(flags.weight_decay >= 0))
    return usage_error(fmt::format("--weight-decay {:g}: must be at least 0", flags.weight_decay));
  if (!(flags.hold_out >= 0 && flags.hold_out < 1))
    return usage_error(fmt::format("--hold-out {:g}: expected 0 to below 1", flags.hold_out));
  if (flags.shuffle < 1 || flags.shuffle > 4096)
    return usage_error(fmt::format("--shuffle {}: expected 1 to 4096", flags.shuffle));
  if (flags.epochs > 1e6) return usage_error(fmt::format("--epochs {:g}: at most 1e6", flags.epochs));
  if (flags.checkpoint_every < 0) return usage_error("--checkpoint-every: must be at least 0");
  return {};
}

Result<pipeline::TrainRunOptions> train_options(const RunFlags& flags, const Words& words, const fs::path& folder) {
  pipeline::TrainRunOptions options;
  options.data.input = flags.input;
  options.data.source = source_options(flags, words);
  // What waits to be drawn is held in the decoder's pictures.
  options.data.source.pictures_in_flight = 0;
  options.data.targets = flags.targets;
  options.data.hold_out = flags.hold_out;
  options.data.shuffle = static_cast<size_t>(flags.shuffle);
  options.data.seed = flags.seed;
  options.prep_filter = prep_filter(flags, words);
  options.augment = !flags.no_augment;
  options.train.batch = flags.batch;
  options.train.threads = flags.threads;
  options.train.device = flags.device;
  options.train.mixed_precision = flags.use_amp;
  STROBE_ASSIGN(options.train.optimizer, optimizer_of(flags));
  options.train.weight_decay = flags.weight_decay;
  options.train.seed = flags.seed;
  options.learning_rate = flags.learning_rate;
  options.max_steps = flags.max_steps;
  options.epochs = flags.epochs;
  options.queue_capacity = static_cast<size_t>(flags.queue);
  options.checkpoint = folder / "checkpoint.safetensors";
  options.checkpoint_every = flags.checkpoint_every;
  options.resume = flags.resume;
  return options;
}

// Mean of so many values at one end; a single step says little.
double mean_of_end(const std::vector<double>& values, bool last) {
  const size_t count = std::min<size_t>(values.size(), std::max<size_t>(1, values.size() / 10));
  double sum = 0;
  for (size_t i = 0; i < count; ++i) sum += values[last ? values.size() - 1 - i : i];
  return sum / static_cast<double>(count);
}

double peak_memory_mib() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

Result<void> write_weights(const models::Graph& graph, int64_t steps, const fs::path& path) {
  models::Safetensors content = models::weights_of(graph);
  content.metadata = {{"network", graph.name}, {"steps", std::to_string(steps)}};
  std::string labels;
  for (const std::string& label : graph.labels) labels += label + "\n";
  if (!labels.empty()) content.metadata["labels"] = labels;
  return write_file(path, models::write_safetensors(content));
}

void record_facts(const RunFlags& flags, const engines::Engine& engine) {
  record::fact("engine", engine.name());
  record::fact("engine.version", engine.version());
  record::fact("model", flags.model);
  record::fact("model.weights", flags.weights);
  record::fact("input", flags.input);
  record::fact("mode", "retrain");
  if (!flags.core_bind.empty()) record::fact("cores.bound", flags.core_bind);
}

}  // namespace

Result<RunOutcome> train_session(const RunFlags& flags, const std::atomic<bool>& stop) {
  STROBE_TRY(check(flags));
  const fs::path folder = flags.output;
  STROBE_ASSIGN(const Words words, parse_words(flags));
  STROBE_ASSIGN(const auto engine, engines::open_engine(flags.engines.front()));
  STROBE_TRY(check_device(flags, *engine));
  STROBE_ASSIGN(const engines::ModelSource model, open_model(flags, words, *engine));
  const auto* graph = std::get_if<std::shared_ptr<const models::Graph>>(&model);
  if (!graph)
    return unsupported(flags.model +
                       ": only built-in networks and Darknet's can be trained, not a file of an engine's own");
  STROBE_ASSIGN(const OutputFolder output_folder, OutputFolder::make(folder));
  STROBE_ASSIGN(const FolderLock lock, FolderLock::take(folder));
  STROBE_ASSIGN(pipeline::TrainRunOptions options, train_options(flags, words, folder));
  options.stop = &stop;
  options.data.source.stop = &stop;
  ProgressLine progress(!flags.quiet);
  options.on_progress = [&](int64_t step, int64_t of, double loss) {
    progress.show([&] {
      return fmt::format("{}  step {}{}  loss {:.4f}", flags.model, step, of > 0 ? fmt::format("/{}", of) : "", loss);
    });
  };
  STROBE_ASSIGN(const auto recording, RunRecording::start(folder, !flags.no_gpu_trace, flags.gpu_metrics_us));
  record_facts(flags, *engine);
  if (!flags.quiet && flags.format == "text")
    options.on_start = [&] {
      print_start({{"retrain", fmt::format("{} on {} {}{}, {}, batch {}{}", flags.model, engine->name(),
                                           engine->version(), flags.device == "cpu" ? "" : " on " + flags.device,
                                           flags.use_amp ? "bf16 mixed precision" : "f32", flags.batch,
                                           flags.core_bind.empty() ? "" : ", bound to cores " + flags.core_bind)}});
    };
  STROBE_ASSIGN(pipeline::TrainRunResult result, pipeline::run_training(*engine, *graph, options));
  RunOutcome outcome;
  outcome.ended = std::move(result.run.ended);
  if (outcome.ended && result.run.stopped) outcome.ended = Error(ErrorKind::kInterrupted, "interrupted");
  const auto keep = [&](Result<void> done) {
    if (!done && outcome.ended) outcome.ended = std::move(done).error();
  };
  const auto steps = static_cast<int64_t>(result.loss.size());
  Json& summary = outcome.summary;
  summary = {{"mode", "retrain"},
             {"engine", engine->name()},
             {"device", flags.device},
             {"model", flags.model},
             {"steps", steps},
             {"first_step", result.first_step},
             {"items", result.run.finished},
             {"seconds", result.run.seconds},
             {"items_per_second", static_cast<double>(result.run.finished) / std::max(result.run.seconds, 1e-9)},
             {"loss_first", nullptr},
             {"loss_last", nullptr},
             {"peak_memory_mib", peak_memory_mib()}};
  if (steps > 0) {
    summary["loss_first"] = mean_of_end(result.loss, false);
    summary["loss_last"] = mean_of_end(result.loss, true);
  }
  // After a loss that is no number the weights are good for nothing, and a device that is gone does not give them: what
  // an earlier run left stays.
  if (steps > 0 && !result.diverged && !result.graph.layers.empty()) {
    const fs::path weights = folder / "weights.safetensors";
    if (auto written = write_weights(result.graph, result.first_step + steps, weights)) {
      summary["weights"] = weights.string();
    } else {
      keep(std::move(written));
    }
    if (result.has_checkpoint) summary["checkpoint"] = options.checkpoint.string();
  }
  if (result.diverged)
    result.notes.push_back("the training diverged: neither weights nor a last checkpoint were written");
  if (result.damaged > 0)
    result.notes.push_back(fmt::format("{} pictures could not be read and were left out", result.damaged));
  if (!result.held_out.images.empty()) {
    const fs::path held_out = folder / "held_out.json";
    keep(write_file(held_out, models::format_coco(result.held_out)));
    summary["held_out"] = held_out.string();
  }
  STROBE_ASSIGN(const trace::Timeline timeline, recording->stop());
  if (auto stored = recording->store(timeline)) {
    summary["trace"] = stored->string();
  } else {
    keep(std::move(stored).error());
  }
  keep(write_step_metrics(timeline, flags.model, folder, summary));
  note_gpu_off(timeline, summary);
  for (const std::string& note : result.notes) summary["notes"].push_back(note);
  return outcome;
}

Table training_table(const Json& summary) {
  Table table("Training", {{"model", "", 0},
                           {"steps", "", 0},
                           {"items", "pictures trained on, each as often as it was shown", 0},
                           {"seconds", "", 2},
                           {"items_per_second", "", 2},
                           {"loss_first", "mean over the first tenth of the steps", 4},
                           {"loss_last", "mean over the last tenth", 4},
                           {"peak_memory_mib", "of the process", 0}});
  std::vector<Cell> row;
  for (const Column& column : table.columns()) {
    const Json& value = summary.at(column.name);
    row.push_back(value.is_null()             ? Cell()
                  : value.is_number_integer() ? Cell(value.get<int64_t>())
                  : value.is_number()         ? Cell(value.get<double>())
                                              : Cell(value.get<std::string>()));
  }
  table.add_row(std::move(row));
  return table;
}

}  // namespace strobe::app
