#include "run_experiment.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstring>
#include <ctime>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/file.h"
#include "base/table.h"
#include "experiment_cell.h"
#include "progress_line.h"
#include "report/table_format.h"
#include "tenants/experiment.h"
#include "tenants/mps_server.h"
#include "tenants/spin_task.h"

namespace strobe::app {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

namespace {

using Clock = std::chrono::steady_clock;

struct CellRecord {
  std::string status = "pending", start_time, reason;
  double seconds = 0;
  bool ran_now = false;
};

std::string now_text() {
  const std::time_t now = std::time(nullptr);
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}", fmt::localtime(now));
}

std::string minutes_text(double seconds) {
  if (seconds < 100) return fmt::format("{:.0f} s", seconds);
  return fmt::format("{:.0f} min", seconds / 60);
}

class Grid {
 public:
  Grid(const ExperimentOptions& options, tenants::Experiment experiment, std::string text,
       const std::atomic<bool>& stop)
      : options_(options),
        experiment_(std::move(experiment)),
        text_(std::move(text)),
        folder_(options.output),
        stop_(stop),
        records_(experiment_.cells.size()) {}

  Result<int> run() {
    STROBE_TRY(run_all());
    STROBE_TRY(print());
    if (stop_) return Error(ErrorKind::kInterrupted, "interrupted; the same command goes on where this one stopped");
    return std::any_of(records_.begin(), records_.end(), [](const CellRecord& one) { return one.status != "success"; })
               ? 1
               : 0;
  }

  Result<void> run_all() {
    STROBE_TRY(make_writable_folder(folder_));
    STROBE_ASSIGN(const FolderLock lock, FolderLock::take(folder_));
    STROBE_TRY(write_file(folder_ / "experiment.yaml", text_));
    find_done();
    for (const tenants::Cell& cell : experiment_.cells) tenants::measure_spin(cell.spec);  // the same in all cells
    STROBE_TRY(write_mapping());
    const bool any =
        std::any_of(records_.begin(), records_.end(), [](const CellRecord& one) { return one.status != "success"; });
    if (any && options_.on_begin) options_.on_begin();
    begin_ = Clock::now();
    for (size_t i = 0; i < records_.size() && !stop_; ++i) {
      if (records_[i].status == "success") continue;
      STROBE_TRY(run_cell(i));
      STROBE_TRY(write_mapping());
    }
    return {};
  }

  std::vector<CellEnd> ends() const {
    std::vector<CellEnd> all;
    for (const CellRecord& record : records_) all.push_back({record.status, record.reason});
    return all;
  }

 private:
  fs::path cell_folder(size_t i) const { return folder_ / experiment_.cells[i].folder; }

  // Cells of an earlier call count as done where they succeeded with the same settings.
  void find_done() {
    for (size_t i = 0; i < records_.size(); ++i) {
      auto text = read_file(cell_folder(i) / "cell.json");
      if (!text || options_.again) continue;
      const Json cell = Json::parse(*text, nullptr, false);
      if (!cell.is_object() || cell.value("status", "") != "success") continue;
      auto settings = read_file(cell_folder(i) / "settings.yaml");
      if (!settings || *settings != experiment_.cells[i].settings) continue;
      records_[i].status = "success";
      records_[i].start_time = cell.value("start_time", "");
      records_[i].seconds = cell.value("seconds", 0.0);
    }
  }

  Result<void> run_cell(size_t i) {
    const tenants::Cell& cell = experiment_.cells[i];
    CellRecord& record = records_[i];
    std::error_code ignored;
    fs::remove_all(cell_folder(i), ignored);
    STROBE_TRY(make_writable_folder(cell_folder(i)));
    record.start_time = now_text();
    record.ran_now = true;
    const auto begin = Clock::now();
    std::unique_ptr<tenants::MpsServer> mps;
    if (cell.spec.mps) {
      auto started = tenants::MpsServer::start(*cell.spec.mps);
      if (!started) {
        record.status = "failed";
        record.reason = started.error().message();
        log_failure(cell, record);
        return {};
      }
      mps = std::move(*started);
    }
    std::fflush(nullptr);
    const pid_t grid = ::getpid();
    const pid_t child = ::fork();
    if (child < 0) return io_error_errno("starting cell " + cell.folder);
    if (child == 0) become_cell(i, grid);
    int wait_status = 0;
    const bool in_time = wait_for(child, limit_of(cell.spec), wait_status);
    record.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    const Json written = cell_json(i);
    if (!in_time) {
      record.status = "timeout";
      record.reason = fmt::format("ended after {:.0f} s (time_limit)", limit_of(cell.spec));
    } else if (WIFSIGNALED(wait_status)) {
      record.status = "failed";
      record.reason = fmt::format("its process was ended by signal {} ({}{})", WTERMSIG(wait_status),
                                  ::strsignal(WTERMSIG(wait_status)),
                                  WTERMSIG(wait_status) == SIGKILL ? "; the kernel does so when memory runs out" : "");
    } else if (written.is_object()) {
      record.status = written.value("status", "failed");
      record.reason = written.value("reason", "");
    } else {
      record.status = "failed";
      record.reason =
          error_text(i).value_or(fmt::format("its process ended by itself (exit {})", WEXITSTATUS(wait_status)));
    }
    if (!written.is_object() && (!in_time || WIFSIGNALED(wait_status) || !error_text(i)))
      recover(i, in_time ? CellStatus::kFailed : CellStatus::kTimeout, record.reason);
    STROBE_TRY(add_times(i));
    if (record.status == "success") {
      STROBE_TRY(write_file(cell_folder(i) / "settings.yaml", experiment_.cells[i].settings));
    } else if (record.status != "interrupted") {
      log_failure(cell, record);
    }
    return {};
  }

  // What the cell's process had recorded when it died; again in a process of its own.
  void recover(size_t i, CellStatus status, const std::string& reason) const {
    std::fflush(nullptr);
    const pid_t child = ::fork();
    if (child == 0) {
      const auto recovered = recover_experiment_cell(experiment_.cells[i], cell_folder(i), status, reason);
      ::_exit(recovered ? 0 : 3);
    }
    if (child > 0) ::waitpid(child, nullptr, 0);
  }

  static double limit_of(const tenants::CellSpec& spec) {
    constexpr double kAround = 600;
    return spec.time_limit_s > 0 ? spec.time_limit_s : spec.duration_s + spec.warmup_s + kAround;
  }

  [[noreturn]] void become_cell(size_t i, pid_t grid) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != grid) ::_exit(3);
    const size_t pending = static_cast<size_t>(
        std::count_if(records_.begin(), records_.end(), [](const CellRecord& one) { return one.status == "pending"; }));
    const double spent = std::chrono::duration<double>(Clock::now() - begin_).count();
    const auto ran = static_cast<double>(
        std::count_if(records_.begin(), records_.end(), [](const CellRecord& one) { return one.ran_now; }) - 1);
    const tenants::CellSpec& spec = experiment_.cells[i].spec;
    const double each = ran > 0 ? spent / ran : spec.duration_s + spec.warmup_s + 3;
    int code = 3;
    {
      ProgressLine line(!options_.quiet);
      const auto progress = [&](double seconds, double of) {
        line.show([&] {
          return fmt::format("cell {} of {}: {}  {:.0f} of {:.0f} s  {} left", i + 1, records_.size(),
                             experiment_.cells[i].folder, seconds, of,
                             minutes_text(std::max(0.0, of - seconds) + each * static_cast<double>(pending - 1)));
        });
      };
      auto status = run_experiment_cell(experiment_.cells[i], cell_folder(i), stop_, progress, options_.gpu,
                                        options_.gpu_metrics_us);
      code = status ? 0 : status.error().exit_code();
      if (!status) (void)write_file(cell_folder(i) / "error.txt", status.error().to_string() + "\n");
    }
    std::fflush(nullptr);
    ::_exit(code);
  }

  // Whether the child ended by itself. Ctrl-C reaches it, too; a signal to this process alone is handed on.
  bool wait_for(pid_t child, double limit_s, int& wait_status) const {
    const auto begin = Clock::now();
    bool told = false;
    for (;;) {
      const pid_t ended = ::waitpid(child, &wait_status, WNOHANG);
      if (ended == child) return true;
      if (ended < 0 && errno != EINTR) return true;
      if (stop_ && !told) {
        ::kill(child, SIGINT);
        told = true;
      }
      if (std::chrono::duration<double>(Clock::now() - begin).count() > limit_s) {
        ::kill(child, SIGKILL);
        ::waitpid(child, &wait_status, 0);
        return false;
      }
      ::usleep(20'000);
    }
  }

  Json cell_json(size_t i) const {
    auto text = read_file(cell_folder(i) / "cell.json");
    return text ? Json::parse(*text, nullptr, false) : Json();
  }

  // When it ran and for how long: a later call tells that of cells that are done.
  Result<void> add_times(size_t i) const {
    Json cell = cell_json(i);
    if (!cell.is_object()) return {};
    cell["start_time"] = records_[i].start_time;
    cell["seconds"] = records_[i].seconds;
    return write_file(cell_folder(i) / "cell.json", cell.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
  }

  std::optional<std::string> error_text(size_t i) const {
    auto text = read_file(cell_folder(i) / "error.txt");
    if (!text) return std::nullopt;
    while (!text->empty() && text->back() == '\n') text->pop_back();
    return *text;
  }

  void log_failure(const tenants::Cell& cell, const CellRecord& record) const {
    std::ofstream log(folder_ / "failures.log", std::ios::app);
    log << record.start_time << " " << cell.folder << " " << record.status << ": " << record.reason << "\n";
  }

  Result<void> write_mapping() const {
    std::vector<Column> columns = {{"run_index", "", 0}, {"cell", "folder", 0}};
    for (const std::string& axis : experiment_.axes) columns.push_back({axis, "", 0});
    for (const char* name : {"repeat", "scene", "image_model", "lidar_model", "status", "start_time"})
      columns.push_back({name, "", 0});
    columns.push_back({"seconds", "", 1});
    columns.push_back({"reason", "", 0});
    Table table("Cells", columns);
    for (size_t i = 0; i < records_.size(); ++i) {
      const tenants::Cell& cell = experiment_.cells[i];
      std::vector<Cell> row = {cell.index, cell.folder};
      for (const std::string& axis : experiment_.axes) row.emplace_back(factor(cell, axis));
      row.emplace_back(factor(cell, "repeat"));
      row.emplace_back(scene_of(cell));
      row.emplace_back(models_of(i, false));
      row.emplace_back(models_of(i, true));
      row.emplace_back(records_[i].status);
      row.emplace_back(records_[i].start_time);
      row.emplace_back(records_[i].seconds > 0 ? Cell(records_[i].seconds) : Cell());
      row.emplace_back(records_[i].reason);
      table.add_row(std::move(row));
    }
    return write_file(folder_ / "param_mapping.csv", report::format_table(table, report::Format::kCsv));
  }

  static std::string factor(const tenants::Cell& cell, const std::string& key) {
    for (const auto& [name, value] : cell.factors)
      if (name == key) return value;
    return "";
  }
  static std::string scene_of(const tenants::Cell& cell) {
    for (const tenants::TenantSpec& tenant : cell.spec.tenants)
      if (!tenant.source.scene.empty()) return tenant.source.scene;
    return "";
  }
  // Names of the tenants' models that take LiDAR sweeps, or that do not.
  std::string models_of(size_t i, bool lidar) const {
    std::string all;
    for (const tenants::TenantSpec& tenant : experiment_.cells[i].spec.tenants)
      if (tenants::needs_points(tenant.model) == lidar) all += (all.empty() ? "" : ";") + tenant.model;
    return all;
  }

  // Cells of another grid that an earlier call left here: reports and questions of the whole folder see them, too.
  std::vector<std::string> foreign_cells() const {
    std::vector<std::string> found;
    std::error_code ignored;
    for (const auto& entry : fs::directory_iterator(folder_, ignored)) {
      const std::string name = entry.path().filename().string();
      const bool ours = std::any_of(experiment_.cells.begin(), experiment_.cells.end(),
                                    [&](const tenants::Cell& cell) { return cell.folder == name; });
      if (!ours && fs::exists(entry.path() / "cell.json", ignored)) found.push_back(name);
    }
    std::sort(found.begin(), found.end());
    return found;
  }

  Result<void> print() const {
    STROBE_ASSIGN(const report::Format format, report::parse_format(options_.format));
    Json result = {{"experiment", experiment_.name}, {"output", folder_.string()}, {"cells", Json::array()}};
    Table table("Cells", {{"cell", "", 0},
                          {"tenant", "", 0},
                          {"status", "", 0},
                          {"frames", "due", 0},
                          {"finished", "", 0},
                          {"p50_ms", "latency, stamp to done", 2},
                          {"p99_ms", "", 2},
                          {"miss_share", "", 3}});
    for (size_t i = 0; i < records_.size(); ++i) {
      const CellRecord& record = records_[i];
      Json cell = cell_json(i);
      if (!cell.is_object()) cell = {{"cell", experiment_.cells[i].folder}, {"run_index", i}};
      cell["status"] = record.status;
      if (!record.reason.empty()) cell["reason"] = record.reason;
      const fs::path trace = cell_folder(i) / "trace.sqlite";
      if (fs::exists(trace)) cell["trace"] = trace.string();
      add_rows(table, experiment_.cells[i].folder, cell);
      if (!record.reason.empty()) table.notes.push_back(experiment_.cells[i].folder + ": " + record.reason);
      const auto add_notes = [&table](const Json& from) {
        for (const Json& note : from.value("notes", Json::array()))
          if (const auto text = note.get<std::string>();
              std::find(table.notes.begin(), table.notes.end(), text) == table.notes.end())
            table.notes.push_back(text);
      };
      add_notes(cell);
      for (const Json& tenant : cell.value("tenants", Json::array())) add_notes(tenant);
      result["cells"].push_back(std::move(cell));
    }
    if (const auto foreign = foreign_cells(); !foreign.empty()) {
      table.notes.push_back(
          fmt::format("{} also has cells of another grid ({}): what is asked of the whole folder counts them, too",
                      folder_.string(), fmt::join(foreign, ", ")));
      result["notes"] = Json::array({table.notes.back()});
    }
    if (format == report::Format::kJson) {
      fmt::print("{}\n", result.dump(2, ' ', false, Json::error_handler_t::replace));
      return {};
    }
    fmt::print("{}", report::format_table(table, format));
    if (format == report::Format::kText)
      fmt::print("\ncells: {}\n{}\n", (folder_ / "param_mapping.csv").string(), what_to_ask(result["cells"]));
    return {};
  }

  // Of the first cell that succeeded; else of one whose trace has frames.
  static std::string what_to_ask(const Json& cells) {
    std::string trace;
    for (const Json& cell : cells) {
      if (!cell.contains("trace") || !cell.contains("figures")) continue;
      const bool succeeded = cell["status"] == "success";
      if (succeeded || trace.empty()) trace = cell["trace"].get<std::string>();
      if (succeeded) break;
    }
    return trace.empty() ? "no cell left a trace with frames" : "blame: strobe blame " + trace;
  }

  static void add_rows(Table& table, const std::string& name, const Json& cell) {
    const std::string status = cell.value("status", "");
    const Json rows = cell.contains("figures") ? cell["figures"].value("rows", Json::array()) : Json::array();
    if (rows.empty()) table.add_row({name, Cell(), status, Cell(), Cell(), Cell(), Cell(), Cell()});
    for (const Json& row : rows) {
      const auto number = [&](const char* key) {
        return row.contains(key) && row[key].is_number() ? Cell(row[key].get<double>()) : Cell();
      };
      const auto count = [&](const char* key) {
        return row.contains(key) && row[key].is_number() ? Cell(row[key].get<int64_t>()) : Cell();
      };
      table.add_row({name, row.value("tenant", ""), status, count("frames"), count("finished"), number("p50_ms"),
                     number("p99_ms"), number("miss_share")});
    }
  }

  const ExperimentOptions& options_;
  const tenants::Experiment experiment_;
  const std::string text_;
  const fs::path folder_;
  const std::atomic<bool>& stop_;
  std::vector<CellRecord> records_;
  Clock::time_point begin_;
};

}  // namespace

bool is_experiment_file(const std::string& word) {
  return word.ends_with(".yaml") || word.ends_with(".yml");
}

Result<std::vector<CellEnd>> run_cells(const ExperimentOptions& options, tenants::Experiment experiment,
                                       const std::atomic<bool>& stop) {
  Grid grid(options, std::move(experiment), "", stop);
  STROBE_TRY(grid.run_all());
  if (stop) return Error(ErrorKind::kInterrupted, "interrupted");
  return grid.ends();
}

Result<int> run_experiment(const ExperimentOptions& options, const std::atomic<bool>& stop) {
  STROBE_ASSIGN(OpenedExperiment opened, open_experiment(options));
  return Grid(options, std::move(opened.experiment), std::move(opened.text), stop).run();
}

}  // namespace strobe::app
