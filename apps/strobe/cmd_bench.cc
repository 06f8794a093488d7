#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "base/suggest.h"
#include "bench_session.h"
#include "command.h"
#include "strobe/bench/arrivals.h"

namespace strobe::app {
namespace {

using bench::LogLevel;

class BenchCommand : public Command {
 public:
  const char* name() const override { return "bench"; }
  const char* summary() const override { return "A program in N processes on G GPUs, its batches timed"; }
  const char* group() const override { return "Run"; }
  const char* example() const override {
    return "strobe bench -np 2 -o out -- python3 sample.py -b 4\n  strobe compare before out --fail-above 1.05";
  }

  void declare(CLI::App& app) override {
    app.add_option("command", options_.plan.command, "The program and its arguments")->required();
    app.add_option("--num_processes", options_.plan.processes, "-np: processes on each GPU")->capture_default_str();
    app.add_option("--num_gpus", options_.plan.gpus, "-ng: GPUs; without any, still so many processes")
        ->capture_default_str();
    app.add_option("--gpu_offset_id", options_.plan.gpu_offset, "-go: number of the first GPU")->capture_default_str();
    app.add_option("--log_level", options_.log_level, "-ll: debug, info, warning or error")->capture_default_str();
    app.add_option("--output_dir", output_, "-o: folder of the results")->capture_default_str();
    app.add_option("--warmup_batches", options_.plan.warmup,
                   "-w: batches at either end that do not count, or auto: found by MSER-5")
        ->capture_default_str();
    app.add_flag("--maximize_clocks", options_.maximize_clocks, "-m: GPU clocks and power limit at their maximum");
    app.add_option("--rules", options_.plan.rules, "strobe, or original: the numbers of CV-CUDA's benchmark.py")
        ->capture_default_str();
    app.add_option("--timeout", options_.timeout_s, "Seconds after which a process is ended; 0: never")
        ->capture_default_str();
    app.add_option("--arrivals", options_.plan.arrivals,
                   "Open-loop load for programs that ask for it: constant:RATE, poisson:RATE[:SEED], trace:FILE");
    app.add_flag("--record,!--no-record", options_.record, "A timeline of each process (default)");
    app.add_option("--format", options_.format, "table or json")->capture_default_str();
  }

  Result<int> run() override {
    static const std::vector<std::string> kLevels{"debug", "info", "warning", "error"};
    const auto level = std::find(kLevels.begin(), kLevels.end(), options_.log_level);
    if (level == kLevels.end())
      return usage_error("--log_level '" + options_.log_level + "'; " + suggest(options_.log_level, kLevels));
    if (options_.format != "table" && options_.format != "json")
      return usage_error("--format " + options_.format + ": expected table or json");
    if (!(options_.timeout_s >= 0) || !std::isfinite(options_.timeout_s))
      return usage_error(fmt::format("--timeout {}: expected seconds, 0 or more", options_.timeout_s));
    STROBE_ASSIGN(options_.warmup, bench::parse_warmup(options_.plan.warmup));
    STROBE_ASSIGN(options_.rules, bench::parse_rules(options_.plan.rules));
    if (!options_.plan.arrivals.empty()) STROBE_TRY(check_arrivals());
    // The programs may change their folder.
    if (output_.empty()) return usage_error("--output_dir: expected a folder");
    options_.plan.output_dir = std::filesystem::absolute(output_);
    const auto least = static_cast<LogLevel>(level - kLevels.begin());
    return run_bench(options_, [least](LogLevel at, std::string_view text) {
      if (at >= least) fmt::print(stderr, "strobe: {}{}\n", at == LogLevel::kWarning ? "warning: " : "", text);
    });
  }

 private:
  Result<void> check_arrivals() {
    STROBE_ASSIGN(const auto arrivals, bench::Arrivals::parse(options_.plan.arrivals));
    constexpr std::string_view kTrace = "trace:";
    if (arrivals.spec().starts_with(kTrace))
      options_.plan.arrivals =
          std::string(kTrace) + std::filesystem::absolute(options_.plan.arrivals.substr(kTrace.size())).string();
    return {};
  }

  std::string output_ = "/tmp";
  BenchOptions options_;
};

}  // namespace

std::unique_ptr<Command> make_bench_command() {
  return std::make_unique<BenchCommand>();
}

}  // namespace strobe::app
