#include "run_workers.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/table.h"
#include "progress_line.h"
#include "report/table_format.h"
#include "run_workers_file.h"
#include "run_workers_process.h"
#include "run_workers_trace.h"
#include "trace/store.h"

namespace strobe::app {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

namespace {

constexpr int kPause_ms = 100;  // between two looks at the workers

void wait_for_all(std::vector<WorkerProcess>& workers, ProgressLine& progress, const std::atomic<bool>& stop) {
  bool told = false;
  for (;;) {
    std::vector<pollfd> outputs;
    for (const WorkerProcess& worker : workers)
      if (worker.output_descriptor() >= 0) outputs.push_back({worker.output_descriptor(), POLLIN, 0});
    ::poll(outputs.data(), outputs.size(), kPause_ms);
    if (stop && !told) {
      for (const WorkerProcess& worker : workers) worker.interrupt();
      told = true;
    }
    bool any = false;
    for (WorkerProcess& worker : workers) {
      worker.look();
      any = any || worker.running();
    }
    if (!any) return;
    progress.show([&] {
      const auto running = std::count_if(workers.begin(), workers.end(), [](const auto& one) { return one.running(); });
      const auto failed = std::count_if(workers.begin(), workers.end(),
                                        [](const auto& one) { return !one.running() && !one.succeeded(); });
      return fmt::format("workers: {} of {} running{}  {:.0f} s", running, workers.size(),
                         failed > 0 ? fmt::format(", {} failed", failed) : "", progress.seconds());
    });
  }
}

std::string last_line(const fs::path& log) {
  auto text = read_file(log);
  if (!text) return "";
  while (!text->empty() && (text->back() == '\n' || text->back() == '\r')) text->pop_back();
  return text->substr(text->rfind('\n') == std::string::npos ? 0 : text->rfind('\n') + 1);
}

std::string core_text(const WorkerPlan& plan) {
  return plan.cores.empty() ? "all" : plan.cores;
}

// What is known of one worker: how it ended, and what `strobe run` said of its runs.
Json outcome_of(const WorkerProcess& worker) {
  Json outcome = {{"name", worker.plan().name},  {"pid", worker.pid()},          {"cores", core_text(worker.plan())},
                  {"seconds", worker.seconds()}, {"end", worker.how_it_ended()}, {"succeeded", worker.succeeded()}};
  if (WIFSIGNALED(worker.wait_status())) {
    outcome["signal"] = WTERMSIG(worker.wait_status());
  } else {
    outcome["exit_code"] = WEXITSTATUS(worker.wait_status());
  }
  outcome["output"] = worker.folder().string();
  outcome["log"] = worker.log().string();
  if (!worker.succeeded()) outcome["last_line"] = last_line(worker.log());
  const Json said = Json::parse(worker.output(), nullptr, false);
  if (said.is_object() && said.contains("runs") && said["runs"].is_array()) {
    outcome["runs"] = said["runs"];
  } else if (said.is_object()) {
    outcome["runs"] = Json::array({said});  // training
  }
  return outcome;
}

Cell sum_over_runs(const Json& outcome, const char* key) {
  Cell sum;
  for (const Json& run : outcome.value("runs", Json::array()))
    if (run.contains(key) && run[key].is_number_integer())
      sum = run[key].get<int64_t>() + (std::holds_alternative<int64_t>(sum) ? std::get<int64_t>(sum) : 0);
  return sum;
}

// Of several runs, one after the other, no one figure is the worker's.
Cell of_the_run(const Json& outcome, const char* key) {
  const Json runs = outcome.value("runs", Json::array());
  if (runs.size() != 1 || !runs[0].contains(key) || !runs[0][key].is_number()) return {};
  return runs[0][key].get<double>();
}

Table workers_table(const Json& outcomes) {
  Table table("Workers", {{"worker", "", 0},
                          {"pid", "", 0},
                          {"cores", "", 0},
                          {"frames", "frames that left the pipeline", 0},
                          {"end_to_end_fps", "", 2},
                          {"seconds", "from its start to its end", 1},
                          {"end", "exit code, or the signal that ended it", 0}});
  for (const Json& outcome : outcomes) {
    Cell frames = sum_over_runs(outcome, "frames");
    if (std::holds_alternative<std::monostate>(frames)) frames = sum_over_runs(outcome, "steps");
    table.add_row({outcome["name"].get<std::string>(), outcome["pid"].get<int64_t>(),
                   outcome["cores"].get<std::string>(), frames, of_the_run(outcome, "end_to_end_fps"),
                   outcome["seconds"].get<double>(), outcome["end"].get<std::string>()});
    if (!outcome["succeeded"].get<bool>()) {
      const auto line = outcome["last_line"].get<std::string>();
      table.notes.push_back(
          fmt::format("{}: {}", outcome["name"].get<std::string>(),
                      line.empty() ? "its log " + outcome["log"].get<std::string>() + " is empty" : line));
    }
  }
  return table;
}

// Traces of the workers' runs. A worker with several runs has several processes.
std::vector<WorkerTrace> traces_of(const Json& outcomes) {
  std::vector<WorkerTrace> traces;
  for (const Json& outcome : outcomes) {
    const Json runs = outcome.value("runs", Json::array());
    for (const Json& run : runs) {
      if (!run.contains("trace")) continue;
      const auto name = outcome["name"].get<std::string>();
      traces.push_back(
          {runs.size() == 1 ? name : name + " " + run.value("engine", ""), run["trace"].get<std::string>()});
    }
  }
  return traces;
}

Result<void> write_merged(const std::vector<WorkerTrace>& traces, const Table& workers, const fs::path& path) {
  STROBE_ASSIGN(trace::Timeline merged, merge_traces(traces));
  merged.tables.push_back(workers);
  return trace::write_store(merged, path);
}

}  // namespace

Result<int> run_workers(const WorkersOptions& options, const std::atomic<bool>& stop) {
  STROBE_ASSIGN(const report::Format format, report::parse_format(options.format));
  STROBE_ASSIGN(const std::string text, read_file(options.config));
  auto plan = read_workers(text, *options.run_flags);
  if (!plan) {
    const Error& error = plan.error();
    return Error(error.kind(), options.config + ":" + error.message());
  }
  const fs::path folder = !options.output.empty() ? options.output
                          : !plan->output.empty() ? plan->output
                                                  : "strobe-out";
  STROBE_TRY(make_writable_folder(folder));
  std::error_code ignored;
  fs::remove(folder / "trace.sqlite", ignored);  // of an earlier call: it would be taken for this one's

  std::vector<WorkerProcess> workers;
  for (const WorkerPlan& worker : plan->workers) workers.emplace_back(worker, folder / worker.name);
  if (options.on_begin) options.on_begin();
  for (WorkerProcess& worker : workers) STROBE_TRY(worker.start());
  {
    ProgressLine progress(!options.quiet);
    wait_for_all(workers, progress, stop);
  }

  Json result = {{"workers", Json::array()}};
  int64_t failed = 0;
  for (const WorkerProcess& worker : workers) {
    result["workers"].push_back(outcome_of(worker));
    if (!worker.succeeded()) ++failed;
    if (result["workers"].back().contains("runs"))
      STROBE_TRY(write_file(worker.folder() / "run.json", worker.output()));
  }
  result["failed"] = failed;
  Table table = workers_table(result["workers"]);
  const std::vector<WorkerTrace> traces = traces_of(result["workers"]);
  if (!traces.empty()) {
    const fs::path merged = folder / "trace.sqlite";
    if (auto written = write_merged(traces, table, merged)) {
      result["trace"] = merged.string();
    } else {
      table.notes.push_back("no common trace: " + written.error().to_string());
      result["notes"].push_back(table.notes.back());
    }
  }
  if (format == report::Format::kJson) {
    fmt::print("{}\n", result.dump(2, ' ', false, Json::error_handler_t::replace));
  } else {
    fmt::print("{}", report::format_table(table, format));
    if (format == report::Format::kText && result.contains("trace"))
      fmt::print("\nreport: strobe report {} -o {}\n", result["trace"].get<std::string>(),
                 (folder / "report.html").string());
  }
  if (stop) return Error(ErrorKind::kInterrupted, "interrupted");
  return failed > 0 ? 1 : 0;
}

}  // namespace strobe::app
