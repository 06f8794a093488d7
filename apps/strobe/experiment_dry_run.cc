#include "experiment_dry_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "analyze/forecast.h"
#include "base/file.h"
#include "base/gpu_words.h"
#include "base/table.h"
#include "collect/machine.h"
#include "measure/gpu_device.h"
#include "report/table_format.h"
#include "temporary_folder.h"
#include "tenants/experiment.h"
#include "trace/store.h"

namespace strobe::app {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

namespace {

constexpr double kWarmUp_s = 0.5;
constexpr double kMiB = 0x1p20;

// A tenant alone, and where its trace is.
struct Probe {
  tenants::CellSpec spec;
  std::string folder;
};

class DryRun {
 public:
  DryRun(const ExperimentOptions& options, const DryRunOptions& dry, tenants::Experiment experiment,
         const std::atomic<bool>& stop)
      : options_(options), dry_(dry), experiment_(std::move(experiment)), stop_(stop) {}

  Result<int> run() {
    STROBE_ASSIGN(const report::Format format, report::parse_format(options_.format));
    if (!dry_.calibration.empty()) {
      STROBE_ASSIGN(const std::string text, read_file(dry_.calibration));
      auto read = analyze::parse_calibration(text);
      if (!read) return std::move(read).error().at(dry_.calibration);
      calibration_ = std::move(*read);
    }
    available_ = available_bytes();
    STROBE_TRY(look_at_devices());
    STROBE_ASSIGN(const auto folder, TemporaryFolder::make("strobe-dry-run"));
    STROBE_TRY(run_probes(folder->path()));
    for (const tenants::Cell& cell : experiment_.cells) STROBE_TRY(forecast(cell));
    print(format);
    return all_fit_ ? 0 : 1;
  }

 private:
  static int64_t available_bytes() {
    const auto facts = collect::machine_facts();
    double least = HUGE_VAL;
    for (const char* key : {"memory.available_mib", "memory.limit_mib"})
      if (const auto fact = facts.find(key); fact != facts.end())
        least = std::min(least, std::strtod(fact->second.c_str(), nullptr) * kMiB);
    return std::isfinite(least) ? static_cast<int64_t>(least) : -1;
  }

  // What is free on each GPU that a tenant names, before any of them runs there.
  Result<void> look_at_devices() {
    for (const tenants::Cell& cell : experiment_.cells)
      for (const tenants::TenantSpec& tenant : cell.spec.tenants) {
        if (tenant.device == "cpu" || free_on_.contains(tenant.device)) continue;
        STROBE_ASSIGN(const measure::GpuLook look, measure::look_at_gpu({tenant.engine}, tenant.device, {}, &stop_));
        free_on_[tenant.device] = look.free_bytes;
      }
    if (!free_on_.empty())
      notes_.emplace_back(
          "on a GPU each tenant is told by itself: how kernels that run there at the same time slow each other, and "
          "copies that share the bus, are not modelled");
    return {};
  }

  // The most that a tenant's process held of its GPU: as NVML says, or where it does not know the process, by how much
  // more of the device was used than at first. -1: not told.
  static int64_t device_bytes(const trace::Timeline& timeline) {
    std::map<std::pair<int, int64_t>, double> held;  // by device and process
    std::map<int, std::pair<double, double>> used;   // by device: first, most
    for (size_t i = 0; i < timeline.counters.size(); ++i) {
      const auto figure = gpu_words::parse_counter(timeline.strings[timeline.counters.name[i]]);
      if (!figure) continue;
      const double value = timeline.counters.value[i];
      if (figure->second == gpu_words::kProcessMemory) {
        double& most = held[{figure->first, static_cast<int64_t>(timeline.counters.pid[i])}];
        most = std::max(most, value);
      } else if (figure->second == gpu_words::kMemoryUsed) {
        auto& both = used.try_emplace(figure->first, value, value).first->second;
        both.second = std::max(both.second, value);
      }
    }
    double most = -1;
    for (const auto& [whose, bytes] : held) most = std::max(most, bytes);
    if (most < 0)
      for (const auto& [device, both] : used) most = std::max(most, both.second - both.first);
    return most < 0 ? -1 : static_cast<int64_t>(most);
  }

  // The cells of one tenant each, without repetition.
  Result<void> run_probes(const fs::path& folder) {
    tenants::Experiment alone;
    alone.name = experiment_.name;
    for (const tenants::Cell& cell : experiment_.cells)
      for (const tenants::TenantSpec& tenant : cell.spec.tenants) {
        if (find_probe(tenant) != nullptr) continue;
        tenants::Cell one;
        one.index = static_cast<int64_t>(probes_.size());
        one.folder = fmt::format("{:03}_{}", one.index, tenant.name);
        one.spec = cell.spec;
        one.spec.tenants = {tenant};
        one.spec.isolation = tenants::Isolation::kThreads;  // the cell's process is the tenant's
        one.spec.warmup_s = kWarmUp_s;
        one.spec.duration_s = dry_.seconds;
        // A tenant may be alone on the device and still has to ask for it, as it will.
        if (one.spec.policy == tenants::Policy::kConcurrent) one.spec.policy = tenants::Policy::kFifo;
        probes_.push_back({one.spec, (folder / one.folder).string()});
        alone.cells.push_back(std::move(one));
      }
    ExperimentOptions quiet = options_;
    quiet.output = folder.string();
    STROBE_ASSIGN(const auto ends, run_cells(quiet, std::move(alone), stop_));
    for (size_t i = 0; i < ends.size(); ++i)
      if (ends[i].status != "success")
        return Error(ErrorKind::kEngine, ends[i].reason).at("tenant " + probes_[i].spec.tenants[0].name + " alone");
    for (const Probe& probe : probes_) {
      STROBE_ASSIGN(traces_.emplace_back(), trace::read_store(fs::path(probe.folder) / "trace.sqlite"));
    }
    return {};
  }

  const Probe* find_probe(const tenants::TenantSpec& tenant) const {
    const auto found = std::find_if(probes_.begin(), probes_.end(),
                                    [&](const Probe& probe) { return probe.spec.tenants[0] == tenant; });
    return found == probes_.end() ? nullptr : &*found;
  }

  Result<void> forecast(const tenants::Cell& cell) {
    std::vector<const trace::Timeline*> solo;
    for (const tenants::TenantSpec& tenant : cell.spec.tenants)
      solo.push_back(&traces_[static_cast<size_t>(find_probe(tenant) - probes_.data())]);
    analyze::ForecastOptions options;
    STROBE_ASSIGN(options.policy, analyze::parse_serve_policy(std::string(tenants::to_string(cell.spec.policy))));
    options.calibration = calibration_;
    options.seed = cell.spec.seed;
    STROBE_ASSIGN(const analyze::Forecast answer, analyze::forecast(solo, options));
    for (const std::string& note : answer.notes)
      if (std::find(notes_.begin(), notes_.end(), note) == notes_.end()) notes_.push_back(note);
    Json one{{"cell", cell.folder}, {"tenants", Json::array()}};
    int64_t bytes = 0;
    std::map<std::string, int64_t> on_device;
    bool fits = true;
    for (const analyze::ForecastRow& row : answer.rows) {
      const auto index = static_cast<size_t>(row.tenant);
      const tenants::TenantSpec& tenant = cell.spec.tenants[index];
      const int64_t its = answer.memory_bytes[index];
      if (its > 0) bytes += its;
      const bool memory_fits = tenant.memory_limit == 0 || its <= tenant.memory_limit;
      const int64_t there =
          tenant.device == "cpu" ? -1 : device_bytes(traces_[static_cast<size_t>(find_probe(tenant) - probes_.data())]);
      if (there > 0) on_device[tenant.device] += there;
      const bool meets = !(row.forecast.miss_rate > dry_.most_misses);
      fits = fits && memory_fits && meets;
      one["tenants"].push_back({{"tenant", tenant.name},
                                {"model", tenant.model},
                                {"rate_hz", tenant.rate_hz},
                                {"alone_p50_ms", number(row.no_interference.p50_ms)},
                                {"p50_ms", number(row.forecast.p50_ms)},
                                {"p99_ms", number(row.forecast.p99_ms)},
                                {"fps", number(tenant.rate_hz * (1 - row.forecast.miss_rate))},
                                {"miss_rate", number(row.forecast.miss_rate)},
                                {"memory_bytes", its >= 0 ? Json(its) : Json()},
                                {"device", tenant.device},
                                {"device_memory_bytes", there >= 0 ? Json(there) : Json()},
                                {"fits", memory_fits && meets}});
    }
    if (available_ >= 0 && bytes > available_) fits = false;
    for (const auto& [device, taken] : on_device)
      if (free_on_[device] >= 0 && taken > free_on_[device]) {
        fits = false;
        notes_.push_back(fmt::format("{} does not fit onto {}: {:.0f} MB of {:.0f} MB", cell.folder, device,
                                     static_cast<double>(taken) / 1e6, static_cast<double>(free_on_[device]) / 1e6));
      }
    one["memory_bytes"] = bytes;
    one["fits"] = fits;
    all_fit_ = all_fit_ && fits;
    cells_.push_back(std::move(one));
    return {};
  }

  static Json number(double value) { return std::isfinite(value) ? Json(value) : Json(); }

  void print(report::Format format) const {
    if (format == report::Format::kJson) {
      const Json result{{"experiment", experiment_.name},
                        {"dry_run", true},
                        {"available_memory_bytes", available_ >= 0 ? Json(available_) : Json()},
                        {"fits", all_fit_},
                        {"cells", cells_},
                        {"notes", notes_}};
      fmt::print("{}\n", result.dump(2, ' ', false, Json::error_handler_t::replace));
      return;
    }
    Table table("Forecast of the cells, from each tenant alone", {{"cell", "", 0},
                                                                  {"tenant", "", 0},
                                                                  {"rate_hz", "", 1},
                                                                  {"alone_p50_ms", "latency by itself", 2},
                                                                  {"p50_ms", "beside the others", 2},
                                                                  {"p99_ms", "", 2},
                                                                  {"miss_rate", "of its frames", 3},
                                                                  {"memory_mb", "peak of a process of its own", 0},
                                                                  {"device_mb", "the most that it held of its GPU", 0},
                                                                  {"fits", "", 0}});
    for (const Json& cell : cells_)
      for (const Json& row : cell["tenants"]) {
        const auto value = [&row](const char* key, double scale = 1) {
          return row[key].is_number() ? Cell(row[key].get<double>() * scale) : Cell();
        };
        table.add_row({cell["cell"].get<std::string>(), row["tenant"].get<std::string>(), value("rate_hz"),
                       value("alone_p50_ms"), value("p50_ms"), value("p99_ms"), value("miss_rate"),
                       value("memory_bytes", 1e-6), value("device_memory_bytes", 1e-6),
                       std::string(row["fits"].get<bool>() ? "yes" : "no")});
      }
    for (const Json& cell : cells_)
      if (available_ >= 0 && cell["memory_bytes"].get<int64_t>() > available_)
        table.notes.push_back(fmt::format("{} does not fit: {:.0f} MB of {:.0f} MB", cell["cell"].get<std::string>(),
                                          static_cast<double>(cell["memory_bytes"].get<int64_t>()) / 1e6,
                                          static_cast<double>(available_) / 1e6));
    table.notes.insert(table.notes.end(), notes_.begin(), notes_.end());
    table.notes.push_back(fmt::format("forecast, not measured: each tenant ran alone for {:g} s", dry_.seconds));
    fmt::print("{}", report::format_table(table, format));
  }

  const ExperimentOptions& options_;
  const DryRunOptions& dry_;
  const tenants::Experiment experiment_;
  const std::atomic<bool>& stop_;
  std::optional<analyze::Calibration> calibration_;
  int64_t available_ = -1;
  std::map<std::string, int64_t> free_on_;  // by device; -1: not told
  std::vector<Probe> probes_;
  std::vector<trace::Timeline> traces_;  // by probe
  Json cells_ = Json::array();
  std::vector<std::string> notes_;
  bool all_fit_ = true;
};

}  // namespace

Result<int> dry_run_experiment(const ExperimentOptions& options, const DryRunOptions& dry,
                               const std::atomic<bool>& stop) {
  STROBE_ASSIGN(OpenedExperiment opened, open_experiment(options));
  return DryRun(options, dry, std::move(opened.experiment), stop).run();
}

}  // namespace strobe::app
