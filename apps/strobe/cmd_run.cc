#include <fmt/format.h>

#include <atomic>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <optional>
#include <vector>

#include "base/file.h"
#include "bench/held_clocks.h"
#include "collect/core_set.h"
#include "command.h"
#include "experiment_dry_run.h"
#include "gpu_use_text.h"
#include "interrupt.h"
#include "report/table_format.h"
#include "run_compare.h"
#include "run_dry.h"
#include "run_experiment.h"
#include "run_outputs.h"
#include "run_session.h"
#include "run_workers.h"
#include "train_session.h"

namespace strobe::app {

namespace {

using Json = nlohmann::ordered_json;

class RunCommand : public Command {
 public:
  const char* name() const override { return "run"; }
  const char* summary() const override { return "Run a video through a network, or train one on it, and record it"; }
  const char* group() const override { return "Run"; }
  const char* example() const override {
    return "strobe run --input street.mp4 --model person-tiny --engine torch,openvino -o out";
  }
  void declare(CLI::App& app) override {
    app_ = &app;
    declare_run_flags(app, flags_);
    app.get_option("--input")->required(false);
    app.add_option("experiment", experiment_,
                   "Instead: an experiment's YAML file: several tenants on one device, over a grid of settings");
    app.add_flag("--again", again_, "Of an experiment: run the cells that are done, too");
    app.add_option("--set", changes_, "Of an experiment: KEY=VALUE instead of what its file says, e.g. duration=2s")
        ->allow_extra_args(false);
    app.add_flag("--dry-run", dry_run_, "Say what to expect (latency or FPS, memory, what fits) instead of running");
    app.add_option("--device-speed", run_dry_.device,
                   "Of a dry run: file of `strobe calibrate --engine`; without it the engine is measured for 3 s");
    app.add_option("--calibration", dry_.calibration, "Of an experiment's dry run: file of `strobe calibrate`");
    app.add_option("--probe-seconds", dry_.seconds, "Of an experiment's dry run: each tenant alone for so long")
        ->check(CLI::Range(0.2, 600.0))
        ->capture_default_str();
    app.add_flag("--maximize_clocks", maximize_clocks_,
                 "GPU clocks and power limit at their maximum while it runs; put back whatever happens");
    app.add_option("--config", config_, "Instead: several runs at the same time, as this YAML file says");
  }

  Result<int> run() override {
    // When everything is checked and there is one thread yet; until the run has ended, in whatever way.
    std::optional<bench::HeldClocks> clocks;
    const auto hold_clocks = [this, &clocks] {
      if (maximize_clocks_ && !dry_run_) clocks.emplace(std::vector<int>(), clock_log());
    };
    if (!experiment_.empty()) return run_grid(hold_clocks);
    if (!changes_.empty()) return usage_error("--set: changes an experiment's .yaml file, and none is given");
    if (!config_.empty()) return run_config(hold_clocks);
    if (flags_.input.empty()) return usage_error("--input is required");
    STROBE_TRY(resolve_run_flags(*app_, flags_));
    STROBE_TRY(check_run_flags(flags_));
    if (dry_run_) return strobe::app::dry_run(flags_, run_dry_, stop_on_interrupt());
    if (std::error_code ignored;
        flags_.input.find("://") == std::string::npos && !std::filesystem::exists(flags_.input, ignored))
      return not_found("no such file").at(flags_.input);
    if (!flags_.core_bind.empty()) STROBE_TRY(collect::bind_to_cores(flags_.core_bind));
    // One engine's session makes it itself, when the device is known to be there.
    std::optional<OutputFolder> output_folder;
    if (flags_.engines.size() > 1) {
      STROBE_ASSIGN(OutputFolder made, OutputFolder::make(flags_.output));
      output_folder.emplace(std::move(made));
    }
    const std::atomic<bool>& stop_requested = stop_on_interrupt();
    Json result = {{"runs", Json::array()}};
    Result<void> ended;
    int exit_code = 0;
    STROBE_ASSIGN(const RunMode mode, run_mode(flags_));
    hold_clocks();
    if (mode == RunMode::kRetrain) return retrain(stop_requested);
    if (flags_.engines.size() == 1) {
      STROBE_ASSIGN(RunOutcome outcome, run_session(flags_, flags_.engines[0], flags_.output, stop_requested));
      result["runs"].push_back(std::move(outcome.summary));
      ended = std::move(outcome.ended);
    } else {
      const auto arguments =
          arguments_without(*app_, {"engine", "output", "format", "verify", "dump-outputs", "maximize_clocks"});
      CompareOutcome outcome = run_each_engine(flags_, arguments, stop_requested);
      result["runs"] = std::move(outcome.runs);
      ended = std::move(outcome.ended);
      exit_code = outcome.exit_code;
    }
    bool agree = true;
    if (flags_.verify && ended && exit_code == 0) {
      STROBE_ASSIGN(result["verify"], verify_runs(flags_, result["runs"]));
      agree = result["verify"]["agree"].get<bool>();
    }
    // A run that could not begin has nothing to show beside its error.
    if (!(result["runs"].empty() && exit_code != 0)) STROBE_TRY(print(result));
    if (exit_code != 0) return exit_code;
    if (!ended) return std::move(ended).error();
    if (!agree) return Error(ErrorKind::kCheckFailed, "the engines' outputs do not agree");
    return 0;
  }

 private:
  bench::Log clock_log() const {
    return [quiet = flags_.quiet](bench::LogLevel level, std::string_view text) {
      if (level > bench::LogLevel::kInfo || (level == bench::LogLevel::kInfo && !quiet))
        fmt::print(stderr, "strobe: clocks: {}\n", text);
    };
  }

  Result<int> run_config(const std::function<void()>& hold_clocks) {
    const auto others = arguments_without(*app_, {"config", "maximize_clocks", "output", "format", "quiet"});
    if (!others.empty())
      return usage_error(others.front() + ": with --config, the flags of runs stand in the file, e.g. under defaults");
    const std::atomic<bool>& stop_requested = stop_on_interrupt();
    return run_workers({.config = config_,
                        .output = app_->count("--output") > 0 ? flags_.output : "",
                        .format = flags_.format,
                        .quiet = flags_.quiet,
                        .run_flags = app_,
                        .on_begin = hold_clocks},
                       stop_requested);
  }

  Result<int> run_grid(const std::function<void()>& hold_clocks) {
    if (!is_experiment_file(experiment_))
      return usage_error(
          fmt::format("{}: expected an experiment's .yaml file (a video goes behind --input)", experiment_));
    const auto others = arguments_without(
        *app_, {"experiment", "maximize_clocks", "again", "set", "dry-run", "calibration", "probe-seconds", "output",
                "format", "quiet", "no-gpu-trace", "gpu-graph-nodes", "gpu-metrics", "gpu-metrics-us"});
    if (!others.empty())
      return usage_error(others.front() + ": with an experiment, what tenants do stands in the file");
    STROBE_ASSIGN(const int metrics_us, gpu_metrics_us(*app_, flags_));
    STROBE_TRY(ask_for_graph_nodes(flags_));
    const ExperimentOptions options{.file = experiment_,
                                    .output = flags_.output,
                                    .format = flags_.format,
                                    .quiet = flags_.quiet,
                                    .again = again_,
                                    .gpu = !flags_.no_gpu_trace,
                                    .gpu_metrics_us = metrics_us,
                                    .changes = changes_,
                                    .on_begin = hold_clocks};
    if (dry_run_) return dry_run_experiment(options, dry_, stop_on_interrupt());
    return run_experiment(options, stop_on_interrupt());
  }

  Result<int> retrain(const std::atomic<bool>& stop_requested) const {
    STROBE_ASSIGN(RunOutcome outcome, train_session(flags_, stop_requested));
    STROBE_ASSIGN(const report::Format format, report::parse_format(flags_.format));
    if (format == report::Format::kJson) {
      fmt::print("{}\n", outcome.summary.dump(2));
    } else {
      fmt::print("{}", report::format_table(training_table(outcome.summary), format));
      if (format == report::Format::kText) {
        for (const Json& note : outcome.summary.value("notes", Json::array()))
          fmt::print("note: {}\n", note.get<std::string>());
        for (const char* file : {"weights", "checkpoint", "metrics_csv", "trace"})
          if (outcome.summary.contains(file)) fmt::print("{}: {}\n", file, outcome.summary[file].get<std::string>());
      }
    }
    if (!outcome.ended) return std::move(outcome.ended).error();
    return 0;
  }

  Result<void> print(const Json& result) const {
    STROBE_ASSIGN(const report::Format format, report::parse_format(flags_.format));
    const Json& runs = result["runs"];
    if (format == report::Format::kJson) {
      fmt::print("{}\n", result.dump(2));
      return {};
    }
    if (runs.empty()) return {};
    fmt::print("{}", report::format_table(comparison_table(runs), format));
    if (format == report::Format::kCsv) return {};
    fmt::print("\n{}\n", report::format_table(stages_table(runs), format));
    if (result.contains("verify"))
      for (const Json& row : result["verify"]["engines"])
        fmt::print(
            "verify: {} against {}: largest difference {:.3g} ({:.2g} of the scale), {:.1f} % of {} boxes agree: {}\n",
            row["engine"].get<std::string>(), result["verify"]["reference"].get<std::string>(),
            row["max_abs"].get<double>(), row["max_rel"].get<double>(), 100 * row["boxes_agree"].get<double>(),
            row["boxes"].get<int64_t>(), row["agree"].get<bool>() ? "agree" : "DIFFER");
    for (const Json& run : runs) {
      const std::string engine = run["engine"].get<std::string>();
      for (const Json& gpu : run.value("gpus", Json::array())) fmt::print("{}: {}\n", engine, gpu_use_line(gpu));
      for (const Json& note : run.value("notes", Json::array()))
        fmt::print("note ({}): {}\n", engine, note.get<std::string>());
    }
    std::string traces;
    for (const Json& run : runs) {
      if (run.contains("video"))
        fmt::print("video ({}): {}\n", run["engine"].get<std::string>(), run["video"].get<std::string>());
      if (run.contains("trace")) traces += " " + run["trace"].get<std::string>();
    }
    if (!traces.empty()) fmt::print("report: strobe report{} -o {}/report.html\n", traces, flags_.output);
    return {};
  }

  CLI::App* app_ = nullptr;
  RunFlags flags_;
  std::string config_, experiment_;
  std::vector<std::string> changes_;
  DryRunOptions dry_;
  RunDryOptions run_dry_;
  bool dry_run_ = false;
  bool again_ = false, maximize_clocks_ = false;
};

}  // namespace

std::unique_ptr<Command> make_run_command() {
  return std::make_unique<RunCommand>();
}

}  // namespace strobe::app
