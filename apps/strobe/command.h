// A subcommand: one file, one class. Its flags are declared once; parsing and --help come from that.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>

#include "strobe/base/result.h"

namespace strobe::app {

// The longest time that an option in nanoseconds takes: a quarter of an hour, and bounds that people can read.
inline constexpr int64_t kMostNs = 1'000'000'000'000;

class Command {
 public:
  virtual ~Command() = default;
  virtual const char* name() const = 0;
  virtual const char* summary() const = 0;  // one line, under 60 characters
  virtual const char* group() const = 0;    // of the help: "Run", "Record", "Ask", "Move", "Look", "Machine"
  virtual const char* example() const = 0;  // shown at the end of --help
  virtual void declare(CLI::App& app) = 0;
  // Exit code 0 or 1 (ran, but a check failed); an Error brings its own.
  virtual Result<int> run() = 0;
};

std::unique_ptr<Command> make_run_command();
std::unique_ptr<Command> make_bench_command();
std::unique_ptr<Command> make_frames_command();
std::unique_ptr<Command> make_sensors_command();
std::unique_ptr<Command> make_model_command();
std::unique_ptr<Command> make_record_command();
std::unique_ptr<Command> make_layers_command();
std::unique_ptr<Command> make_stats_command();
std::unique_ptr<Command> make_kernels_command();
std::unique_ptr<Command> make_memcpy_command();
std::unique_ptr<Command> make_explain_command();
std::unique_ptr<Command> make_idle_command();
std::unique_ptr<Command> make_launches_command();
std::unique_ptr<Command> make_advise_command();
std::unique_ptr<Command> make_compare_command();
std::unique_ptr<Command> make_query_command();
std::unique_ptr<Command> make_critical_path_command();
std::unique_ptr<Command> make_predictability_command();
std::unique_ptr<Command> make_deadline_command();
std::unique_ptr<Command> make_what_if_command();
std::unique_ptr<Command> make_report_command();
std::unique_ptr<Command> make_info_command();
std::unique_ptr<Command> make_doctor_command();
std::unique_ptr<Command> make_calibrate_command();
std::unique_ptr<Command> make_recover_command();
std::unique_ptr<Command> make_import_command();
std::unique_ptr<Command> make_export_command();
std::unique_ptr<Command> make_view_command();
std::unique_ptr<Command> make_simulate_command();
std::unique_ptr<Command> make_blame_command();
std::unique_ptr<Command> make_forecast_command();

}  // namespace strobe::app
