#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "analyze/gpu_use.h"
#include "base/gpu_words.h"
#include "base/suggest.h"
#include "collect/injection.h"
#include "collect/machine.h"
#include "collect/os_facts.h"
#include "collect/program.h"
#include "command.h"
#include "gpu/replay_choice.h"
#include "gpu/timeline/gpu_timeline.h"
#include "gpu_samplers.h"
#include "gpu_use_text.h"
#include "record_merge.h"
#include "report/table_format.h"
#include "strobe/record/annotate.h"
#include "trace/spool_import.h"
#include "trace/store.h"

namespace strobe::app {
namespace {

namespace fs = std::filesystem;

constexpr int kNotStarted = 127;  // as shells say it
constexpr int kSignalBase = 128;

std::string signal_name(int signal) {
  const char* name = ::sigabbrev_np(signal);
  return name != nullptr ? std::string("SIG") + name : "signal " + std::to_string(signal);
}

// Samples of the devices, from the program's start to the end of all.
class GpuSamples : public collect::Collector {
 public:
  GpuSamples(gpu::SamplerOptions options, int metrics_us) : options_(std::move(options)), metrics_us_(metrics_us) {}
  void started(int32_t, const std::vector<std::string>&, int64_t) override {
    if (begun_) return;
    begun_ = true;
    samplers_.emplace(options_, metrics_us_);
  }
  void finish(collect::Findings&) override { samplers_.reset(); }

 private:
  gpu::SamplerOptions options_;
  int metrics_us_;
  bool begun_ = false;
  std::optional<GpuSamplers> samplers_;
};

class RecordCommand : public Command {
 public:
  const char* name() const override { return "record"; }
  const char* summary() const override { return "Any program: its NVTX and ITT marks, GPU work, CPU time, memory"; }
  const char* group() const override { return "Record"; }
  const char* example() const override {
    return "strobe record -o train.sqlite -- python3 train.py --epochs 1\n  strobe stats train.sqlite --by range";
  }

  void declare(CLI::App& app) override {
    app.add_option("command", command_, "The program and its arguments, after --")->required();
    app.add_option("-o,--output", output_, "Trace file to write")->capture_default_str();
    collected_ = app.add_option("--collect", collect_, "What is collected: nvtx, itt, gpu, os; several with commas")
                     ->delimiter(',')
                     ->capture_default_str();
    app.add_option("--period-ms", period_ms_, "Time between two samples of the operating system's figures")
        ->capture_default_str();
    app.add_option("--gpu-period-ms", gpu_period_ms_, "Time between two samples of the GPUs' figures")
        ->capture_default_str();
    metrics_period_ = app.add_option("--gpu-metrics-us", metrics_us_,
                                     "Time between two samples of the hardware counters, in microseconds")
                          ->capture_default_str();
    app.add_flag("--gpu-metrics", metrics_,
                 "Sample the GPUs' hardware counters, too (use of SMs, tensor cores and memory); needs the right to "
                 "them");
    app.add_flag("--gpu-graph-nodes", graph_nodes_, kGraphNodesHelp);
    app.add_flag(
        "--gpu-replay-metrics", replay_,
        "Instead of all else: the hardware counters of each kernel, by running it several times alone; all of "
        "them, or =LIST with commas. No times; `strobe kernels TRACE --replay-metrics` brings them to a trace");
    app.add_option("--ring-kib", ring_kib_, "Buffer of each thread; what finds it full is dropped and counted")
        ->capture_default_str();
    app.add_flag("--block", block_, "Wait instead of dropping where a buffer is full");
    app.add_option("--wait", wait_, "Record until all processes have ended, or only the program: all or program")
        ->capture_default_str();
    app.add_option("--folder", folder_, "Keep the recorders' files in this folder");
    app.add_option("--format", format_, "Of the summary on stderr: text or json")->capture_default_str();
    app.add_flag("--quiet", quiet_, "No summary; losses and errors are shown all the same");
  }

  Result<int> run() override {
    STROBE_ASSIGN(const auto collectors, make_collectors());
    STROBE_TRY(open_folder());
    auto ended = record_program(collectors);
    if (!ended) {
      if (folder_.empty()) remove_spool();
      std::fprintf(stderr, "strobe: %s\n", ended.error().to_string().c_str());
      return kNotStarted;
    }
    STROBE_TRY(write_trace(collectors, *ended));
    if (folder_.empty()) remove_spool();
    const int status = ended->wait_status;
    if (WIFSIGNALED(status)) {
      std::fprintf(stderr, "strobe: %s was killed by %s\n", command_[0].c_str(), signal_name(WTERMSIG(status)).c_str());
      return kSignalBase + WTERMSIG(status);
    }
    return WEXITSTATUS(status);
  }

 private:
  using Collectors = std::vector<std::unique_ptr<collect::Collector>>;

  Result<Collectors> make_collectors() {
    constexpr double kShortestMs = 0.1, kLongestMs = 60'000;
    STROBE_ASSIGN(const report::Format format, report::parse_format(format_));
    if (format == report::Format::kCsv) return usage_error("--format csv: the summary is text or json");
    if (wait_ != "all" && wait_ != "program") return usage_error("--wait " + wait_ + ": expected all or program");
    if (!(period_ms_ >= kShortestMs && period_ms_ <= kLongestMs))
      return usage_error(fmt::format("--period-ms {}: expected {} to {}", period_ms_, kShortestMs, kLongestMs));
    if (gpu_period_ms_ < 1 || gpu_period_ms_ > kLongestMs)
      return usage_error(fmt::format("--gpu-period-ms {}: expected 1 to {}", gpu_period_ms_, kLongestMs));
    const std::vector<std::string> known{"nvtx", "itt", "gpu", "os"};
    for (const auto& one : collect_)
      if (std::find(known.begin(), known.end(), one) == known.end())
        return usage_error("--collect '" + one + "'; " + suggest(one, known));
    if (!replay_.empty()) return make_replay_collectors();
    const auto wants = [this](const char* one) {
      return std::find(collect_.begin(), collect_.end(), one) != collect_.end();
    };
    STROBE_ASSIGN(const int metrics_us, metrics_period_us(metrics_, metrics_us_, metrics_period_->count() > 0));
    if (metrics_us > 0 && !wants("gpu")) return usage_error("--gpu-metrics: needs gpu among what --collect names");
    if (graph_nodes_ && !wants("gpu")) return usage_error("--gpu-graph-nodes: needs gpu among what --collect names");
    spool_ = folder_.empty() ? fs::path(output_ + ".spool") : fs::path(folder_);
    Collectors collectors;
    if (wants("nvtx") || wants("itt") || wants("gpu")) {
      STROBE_ASSIGN(auto made, collect::make_injection_collector({.folder = spool_,
                                                                  .nvtx = wants("nvtx"),
                                                                  .itt = wants("itt"),
                                                                  .gpu = wants("gpu"),
                                                                  .gpu_graph_nodes = graph_nodes_,
                                                                  .ring_bytes = ring_kib_ << 10,
                                                                  .block_when_full = block_}));
      collectors.push_back(std::move(made));
    }
    if (wants("gpu"))
      collectors.push_back(std::make_unique<GpuSamples>(
          gpu::SamplerOptions{.folder = spool_, .period = std::chrono::milliseconds(gpu_period_ms_)}, metrics_us));
    if (wants("os"))
      collectors.push_back(collect::make_os_collector({.period_ns = static_cast<int64_t>(period_ms_ * 1e6)}));
    return collectors;
  }

  // Times beside replayed kernels would be no times of the program: ranges, samples and figures of processes are left
  // out.
  Result<Collectors> make_replay_collectors() {
    if (replay_ == "true") replay_ = "all";  // without a list
    if (auto figures = gpu::parse_replay_figures(replay_); !figures)
      return std::move(figures.error().at("--gpu-replay-metrics"));
    if (collected_->count() > 0 || metrics_ || graph_nodes_ || metrics_period_->count() > 0)
      return usage_error(
          "--gpu-replay-metrics: records nothing else, so it goes with none of --collect, --gpu-metrics, "
          "--gpu-metrics-us and --gpu-graph-nodes");
    collect_ = {"gpu-replay"};
    spool_ = folder_.empty() ? fs::path(output_ + ".spool") : fs::path(folder_);
    Collectors collectors;
    STROBE_ASSIGN(auto made, collect::make_injection_collector(
                                 {.folder = spool_, .nvtx = false, .itt = false, .gpu = true, .gpu_replay = replay_}));
    collectors.push_back(std::move(made));
    return collectors;
  }

  Result<void> open_folder() {
    std::error_code failed;
    if (fs::is_directory(output_, failed)) return usage_error(output_ + ": is a folder, expected a file to write");
    if (!fs::is_empty(spool_, failed) && !failed)
      return usage_error(spool_.string() + ": is not empty; it may be a recording that was cut short (strobe recover " +
                         spool_.string() + " -o FILE), else remove it");
    // Also proves that it can be written to, before the program runs.
    return record::start({.folder = spool_, .process_name = "strobe record"});
  }

  Result<collect::ProgramEnd> record_program(const Collectors& collectors) {
    timespec now{};
    ::clock_gettime(CLOCK_MONOTONIC, &now);
    const int64_t monotonic_ns = int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
    record::mark(record::Name(kClockMark), record::kNoFrame, {}, {{record::Name(kClockKey), monotonic_ns}});
    auto ended =
        collect::run_program({.command = command_, .wait_for_all = wait_ == "all", .quiet = quiet_}, collectors);
    const auto stopped = record::stop();
    if (ended && !stopped) return stopped.error();
    return ended;
  }

  Result<void> write_trace(const Collectors& collectors, const collect::ProgramEnd& ended) {
    collect::Findings findings;
    for (const auto& collector : collectors) collector->finish(findings);
    STROBE_ASSIGN(trace::Timeline timeline, trace::import_spool(spool_));
    STROBE_ASSIGN(gpu_, gpu::add_gpu_logs(timeline, spool_));
    merge_findings(timeline, findings, ::getpid());
    for (auto& [key, value] : collect::machine_facts()) timeline.facts.emplace(key, value);
    std::string command, collected;
    for (const auto& word : command_) command += (command.empty() ? "" : " ") + word;
    for (const auto& word : collect_) collected += (collected.empty() ? "" : ",") + word;
    timeline.facts["record.command"] = command;
    timeline.facts["record.collect"] = collected;
    timeline.facts["record.exit_status"] = std::to_string(
        WIFSIGNALED(ended.wait_status) ? kSignalBase + WTERMSIG(ended.wait_status) : WEXITSTATUS(ended.wait_status));
    auto written = trace::write_store(timeline, output_);
    if (!written) return std::move(written.error().at("the recording is kept in " + spool_.string()));
    summarize(timeline, findings, ended);
    return {};
  }

  void summarize(const trace::Timeline& timeline, const collect::Findings& findings,
                 const collect::ProgramEnd& ended) const {
    const int32_t self = ::getpid();
    std::set<int32_t> processes, recorded;
    size_t threads = 0, ranges = 0, open = 0;
    for (const auto& process : timeline.processes)
      if (process.pid != self) processes.insert(process.pid);
    for (const auto& lane : timeline.lanes) threads += lane.pid != self ? 1 : 0;
    for (size_t i = 0; i < timeline.ranges.size(); ++i) {
      if (timeline.strings[timeline.ranges.domain_of(i)] == "os") continue;
      ++ranges;
      open += timeline.ranges.open[i];
      recorded.insert(timeline.lanes[static_cast<size_t>(timeline.ranges.lane[i])].pid);
    }
    size_t marks = 0;
    for (size_t i = 0; i < timeline.marks.size(); ++i)
      marks += timeline.lanes[static_cast<size_t>(timeline.marks.lane[i])].pid != self ? 1 : 0;
    std::vector<std::string> not_recorded;
    for (const auto& [key, value] : findings.facts)
      if (key.starts_with("record.not_recorded.")) not_recorded.push_back(key.substr(key.rfind('.') + 1));
    const uint64_t dropped = timeline.losses.dropped_records;
    const Table gpu_use = analyze::gpu_use(timeline, {0, timeline.duration_ns, 0});
    std::vector<std::string> notes = gpu_use.notes;
    for (std::string& note : metrics_notes(timeline)) notes.push_back(std::move(note));
    if (format_ == "json" && !quiet_) {
      nlohmann::json summary{{"trace", output_},
                             {"seconds", static_cast<double>(timeline.duration_ns) / 1e9},
                             {"processes", processes.size()},
                             {"annotated_processes", recorded.size()},
                             {"threads", threads},
                             {"ranges", ranges},
                             {"open_ranges", open},
                             {"marks", marks},
                             {"counter_values", timeline.counters.size()},
                             {"gpu_calls", gpu_.calls},
                             {"gpu_operations", gpu_.operations},
                             {"gpus", gpu_use_json(gpu_use)},
                             {"notes", notes},
                             {"dropped", dropped},
                             {"faults", timeline.losses.faults},
                             {"not_recorded_pids", not_recorded},
                             {"left_running", ended.left},
                             {"exit_status", std::stoi(timeline.facts.at("record.exit_status"))}};
      if (!folder_.empty()) summary["folder"] = folder_;
      std::fprintf(stderr, "%s\n", summary.dump().c_str());
      return;
    }
    if (!quiet_)
      fmt::print(
          stderr,
          "strobe: {}: {:.3f} s, {} process{} ({} annotated), {} threads, {} ranges, {} marks, {} counter values\n",
          output_, static_cast<double>(timeline.duration_ns) / 1e9, processes.size(), processes.size() == 1 ? "" : "es",
          recorded.size(), threads, ranges, marks, timeline.counters.size());
    if (!quiet_ && gpu_.operations > 0)
      fmt::print(stderr, "strobe: GPU: {} operations and {} calls in {} process{}\n", gpu_.operations, gpu_.calls,
                 gpu_.logs, gpu_.logs == 1 ? "" : "es");
    for (const auto& one : gpu_use_json(gpu_use))
      if (!quiet_) fmt::print(stderr, "strobe: {}\n", gpu_use_line(one));
    if (!quiet_)
      for (const std::string& note : notes) fmt::print(stderr, "strobe: note: {}\n", note);
    tell_gpu_off(timeline);
    if (dropped > 0)
      fmt::print(stderr,
                 "strobe: {} records were dropped: buffers were full (larger ones: --ring-kib, none lost: --block)\n",
                 dropped);
    for (const auto& [kind, count] : timeline.losses.faults) fmt::print(stderr, "strobe: note: {} x {}\n", count, kind);
    const auto number = [&findings](const char* key) {
      const auto found = findings.facts.find(key);
      return found == findings.facts.end() ? 0.0 : std::stod(found->second);
    };
    constexpr double kWorthANoteMs = 50, kWorthANoteShare = 0.05;
    const double ended_ms = number("record.cpu_ms_of_ended");
    const double unseen_ms = ended_ms - number("record.cpu_ms_seen");
    if (unseen_ms > kWorthANoteMs && unseen_ms > ended_ms * kWorthANoteShare)
      fmt::print(stderr, "strobe: note: {:.0f} of {:.0f} ms CPU time were of processes too short for a sample\n",
                 unseen_ms, ended_ms);
    for (const auto& pid : not_recorded)
      fmt::print(stderr,
                 "strobe: note: process {} could not be recorded; its reason is in the recorders' folder "
                 "(--folder keeps it)\n",
                 pid);
    if (ended.left > 0 && !quiet_) fmt::print(stderr, "strobe: note: {} processes still ran at the end\n", ended.left);
  }

  // A process that used CUDA, and was not collected.
  void tell_gpu_off(const trace::Timeline& timeline) const {
    if (!replay_.empty()) tell_replay(timeline);
    for (auto it = timeline.facts.lower_bound("gpu.collection."); it != timeline.facts.end(); ++it) {
      if (!it->first.starts_with("gpu.collection.")) break;
      if (it->second != "on")
        fmt::print(stderr, "strobe: note: GPU collection of process {} is {}\n",
                   it->first.substr(it->first.rfind('.') + 1), it->second);
    }
  }

  void tell_replay(const trace::Timeline& timeline) const {
    bool told = false;
    const auto note = [&](const std::string& key, const char* what, const std::string& why) {
      fmt::print(stderr, "strobe: note: replay of kernels of process {} {}{}\n", key.substr(key.rfind('.') + 1), what,
                 why);
      told = true;
    };
    for (const auto& [key, value] : timeline.facts) {
      if (key.starts_with("gpu.replay.") && value.starts_with("off: ")) note(key, "is ", value);
      if (key.starts_with("gpu.replay.refused.")) note(key, "lacks a context: ", value);
      if (key.starts_with("gpu.replay.broken.")) note(key, "broke: ", value);
    }
    for (const Table& table : timeline.tables) {
      if (table.title() != gpu_words::kReplayTitle) continue;
      told = true;
      if (quiet_) continue;
      fmt::print(stderr, "strobe: counters of {} kernels\n", table.row_count());
      for (const std::string& one : table.notes) fmt::print(stderr, "strobe: note: {}\n", one);
    }
    if (!told) fmt::print(stderr, "strobe: note: no kernels were replayed: no process launched any\n");
  }

  void remove_spool() const {
    std::error_code ignored;
    fs::remove_all(spool_, ignored);
  }

  std::vector<std::string> command_;
  std::string output_ = "record.sqlite";
  std::vector<std::string> collect_{"nvtx", "itt", "gpu", "os"};
  double period_ms_ = 10;
  int gpu_period_ms_ = 100, metrics_us_ = gpu::kMetricsPeriodUs;
  bool metrics_ = false, graph_nodes_ = false;
  std::string replay_;
  CLI::Option *metrics_period_ = nullptr, *collected_ = nullptr;
  size_t ring_kib_ = 1024;
  bool block_ = false, quiet_ = false;
  std::string wait_ = "all", folder_, format_ = "text";
  fs::path spool_;
  gpu::GpuSummary gpu_;
};

}  // namespace

std::unique_ptr<Command> make_record_command() {
  return std::make_unique<RecordCommand>();
}

}  // namespace strobe::app
