#include "bench_session.h"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <set>

#include "ask.h"
#include "base/file.h"
#include "base/version.h"
#include "bench/children.h"
#include "bench/held_clocks.h"
#include "bench/machine_watch.h"
#include "bench/results.h"
#include "bench_ranks.h"
#include "collect/machine.h"
#include "report/table_format.h"

namespace strobe::app {
namespace {

namespace fs = std::filesystem;
using bench::Json;
using bench::LogLevel;

constexpr size_t kTailLines = 20;

fs::path own_program() {
  std::error_code failed;
  return fs::canonical("/proc/self/exe", failed);
}

// `strobe run` writes its own timeline.
bool records_itself(const std::vector<std::string>& command) {
  if (command.empty()) return false;
  const auto program = bench::find_program(command[0]);
  std::error_code failed;
  return program && fs::canonical(*program, failed) == own_program();
}

std::string tail_of(const fs::path& path) {
  const auto text = read_file(path);
  if (!text || text->empty()) return {};
  size_t at = text->size();
  if ((*text)[at - 1] == '\n') --at;
  for (size_t lines = 0; lines < kTailLines && at != std::string::npos && at > 0; ++lines)
    at = text->rfind('\n', at - 1);
  return text->substr(at == std::string::npos || at == 0 ? 0 : at + 1);
}

class Session {
 public:
  Session(BenchOptions options, const bench::Log& log) : options_(std::move(options)), log_(log) {}

  Result<int> run() {
    rank_ = bench::rank_of_environment();
    if (options_.record && !records_itself(options_.plan.command))
      options_.plan.recorder = {
          own_program().string(), "record", "-o", "{}/trace.sqlite", "--quiet", "--wait", "program", "--"};
    STROBE_ASSIGN(planned_, bench::plan_processes(options_.plan, rank_));
    STROBE_TRY(make_folders());
    const bench::HeldSignals signals;
    STROBE_ASSIGN(const bench::ChildrenEnd children, run_processes(signals));
    for (size_t i = 0; i < planned_.size(); ++i) ends_.push_back({planned_[i], children.processes[i]});
    if (rank_) {
      STROBE_TRY(tell_rank(options_.plan.output_dir, *rank_, ends_[0]));
      if (rank_->rank != 0)
        return children.interrupted != 0 ? interrupted() : Result<int>(ends_[0].end.finished ? 0 : 1);
    }
    if (children.interrupted != 0) return interrupted();
    if (rank_) ends_ = gather_ranks(options_.plan.output_dir, *rank_, ends_[0], options_.timeout_s, signals);
    return sum_up();
  }

 private:
  static Result<int> interrupted() { return Error(ErrorKind::kInterrupted, "interrupted; no results were written"); }

  Result<void> make_folders() {
    const fs::path& folder = options_.plan.output_dir;
    STROBE_TRY(make_writable_folder(folder));
    // What an earlier run left would pass for this one's.
    std::error_code ignored;
    if (!rank_ || rank_->rank == 0) fs::remove(folder / "benchmark_mean.json", ignored);
    if (rank_) forget_rank(folder, *rank_);
    for (const auto& one : planned_) {
      STROBE_TRY(make_writable_folder(one.folder));
      for (const char* name : {"benchmark.json", "trace.sqlite", "trace.sqlite.spool"})
        fs::remove_all(one.folder / name, ignored);
    }
    return {};
  }

  Result<bench::ChildrenEnd> run_processes(const bench::HeldSignals& signals) {
    std::set<int> gpus;
    for (const auto& one : planned_)
      if (const auto number = bench::gpu_number(one.visible)) gpus.insert(*number);
    std::optional<bench::HeldClocks> clocks;
    if (options_.maximize_clocks && gpus.empty())
      log_(LogLevel::kWarning, "CUDA_VISIBLE_DEVICES leaves no GPU that NVML knows: no clocks were maximized");
    if (options_.maximize_clocks && !gpus.empty()) {
      clocks.emplace(std::vector<int>(gpus.begin(), gpus.end()), log_);
      maximized_ = clocks->done();
    }
    bench::MachineWatch watch({gpus.begin(), gpus.end()});
    for (const auto& one : planned_) {
      std::string words;
      for (const auto& word : one.command) words += " " + word;
      log_(LogLevel::kDebug, one.name() + ":" + words);
    }
    log_(LogLevel::kInfo, fmt::format("{} process{} started; results go to {}", planned_.size(),
                                      planned_.size() == 1 ? "" : "es", options_.plan.output_dir.string()));
    const bench::ChildrenOptions how{.timeout_s = options_.timeout_s,
                                     .ended = [this](const auto& one, const auto& end) { tell_end(one, end); }};
    auto ended = bench::run_children(planned_, signals, how);
    watch_ = watch.finish();
    clocks.reset();
    if (!maximized_ && !watch_["gpus"].empty())
      log_(LogLevel::kWarning, "GPU clocks were not maximized during this run (-m)");
    return ended;
  }

  void tell_end(const bench::PlannedProcess& one, const bench::ProcessEnd& end) const {
    if (end.finished) {
      log_(LogLevel::kInfo, fmt::format("{}: done after {:.1f} s", one.name(), end.seconds));
      return;
    }
    log_(LogLevel::kError, one.name() + ": " + end.reason);
    const fs::path path = one.folder / "log.txt";
    if (const std::string tail = tail_of(path); !tail.empty())
      log_(LogLevel::kError, one.name() + ": the end of " + path.string() + ":\n" + tail);
  }

  Result<int> sum_up() {
    std::vector<bench::ProcessResult> results;
    for (auto& [process, end] : ends_) {
      if (!end.finished) continue;
      auto read = bench::read_process(process.folder);
      if (read) {
        results.push_back(std::move(*read));
        continue;
      }
      end.finished = false;
      end.reason = read.error().to_string();
      log_(LogLevel::kError, process.name() + ": " + end.reason);
    }
    if (results.empty()) {
      log_(LogLevel::kError, "no process finished: there are no results");
      return 1;
    }
    bool settled = true;
    STROBE_ASSIGN(const bench::Warmup warmup,
                  bench::finish_processes(results, options_.warmup, options_.rules, &settled));
    STROBE_ASSIGN(Json mean, bench::mean_of_processes(results, options_.rules));
    mean["meta"] = meta(warmup, settled);
    for (const std::string& line : bench::levels_left_empty(results, warmup)) log_(LogLevel::kWarning, line);
    const fs::path path = options_.plan.output_dir / "benchmark_mean.json";
    STROBE_TRY(write_file(path, mean.dump(4, ' ', false, Json::error_handler_t::replace) + "\n"));
    print(results, warmup, settled, path, mean["meta"]["missing"]);
    return mean["meta"]["missing"].empty() ? 0 : 1;
  }

  Json meta(const bench::Warmup& warmup, bool settled) const {
    const auto& plan = options_.plan;
    Json meta, missing = Json::array(), processes = Json::array();
    const bool automatic = options_.warmup.automatic;
    meta["args"] = {{"num_processes", plan.processes},
                    {"num_gpus", plan.gpus},
                    {"gpu_offset_id", plan.gpu_offset},
                    {"log_level", options_.log_level},
                    {"output_dir", plan.output_dir.string()},
                    {"warmup_batches", automatic ? Json("auto") : Json(options_.warmup.front)},
                    {"maximize_clocks", options_.maximize_clocks},
                    {"script", plan.command[0]},
                    {"args", std::vector<std::string>(plan.command.begin() + 1, plan.command.end())}};
    for (const auto& [process, end] : ends_) {
      Json one{{"name", process.name()}, {"process", process.process}, {"gpu", process.gpu}};
      if (!end.finished) {
        missing.push_back(one);
        missing.back()["reason"] = end.reason;
      }
      one["finished"] = end.finished;
      one["seconds"] = end.seconds;
      one["recorded"] = process.recorded;
      processes.push_back(std::move(one));
    }
    meta["missing"] = std::move(missing);
    Json& strobe = meta["strobe"];
    strobe["version"] = version();
    strobe["rules"] = plan.rules;
    strobe["warmup"] = {{"front", warmup.front},
                        {"back", warmup.back},
                        {"rule", automatic ? "MSER-5" : "count"},
                        {"settled", automatic ? Json(settled) : Json()}};
    strobe["arrivals"] = plan.arrivals.empty() ? Json() : Json(plan.arrivals);
    strobe["clocks_maximized"] = maximized_;
    strobe["processes"] = std::move(processes);
    strobe["watched"] = watch_;
    strobe["machine"] = collect::machine_facts();
    return meta;
  }

  void print(const std::vector<bench::ProcessResult>& results, const bench::Warmup& warmup, bool settled,
             const fs::path& path, const Json& missing) const {
    Table stages = bench::stage_table(results, warmup);
    std::string cut = fmt::format("warm-up: of each level the first {} and the last {} batches do not count",
                                  warmup.front, warmup.back);
    if (options_.warmup.automatic) cut += " (MSER-5)";
    stages.notes.push_back(cut);
    if (!settled)
      stages.notes.push_back("the batches' times had not settled by half of the run: a longer run would tell more");
    for (const auto& one : missing)
      stages.notes.push_back("missing: " + one["name"].get<std::string>() + " " + one["reason"].get<std::string>());
    const auto latency = bench::latency_table(results);
    if (options_.format == "json") {
      Json out{{"benchmark_mean", path.string()}, {"missing", missing}};
      out["stages"] = Json::parse(report::format_table(stages, report::Format::kJson));
      if (latency) out["latency"] = Json::parse(report::format_table(*latency, report::Format::kJson));
      fmt::print("{}\n", out.dump(2, ' ', false, Json::error_handler_t::replace));
      return;
    }
    print_table(stages, report::Format::kText);
    if (latency) {
      fmt::print("\n");
      print_table(*latency, report::Format::kText);
    }
    fmt::print("\n{}\n", path.string());
  }

  BenchOptions options_;
  const bench::Log& log_;
  std::optional<bench::Rank> rank_;
  std::vector<bench::PlannedProcess> planned_;
  std::vector<RankEnd> ends_;
  bool maximized_ = false;
  Json watch_;
};

}  // namespace

Result<int> run_bench(BenchOptions options, const bench::Log& log) {
  return Session(std::move(options), log).run();
}

}  // namespace strobe::app
