#include "experiment_cell.h"

#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "analyze/gpu_use.h"
#include "analyze/pperf_tables.h"
#include "analyze/tenant_tables.h"
#include "base/file.h"
#include "base/gpu_words.h"
#include "experiment_predictions.h"
#include "gpu_samplers.h"
#include "import_recording.h"
#include "report/table_format.h"
#include "report_scene.h"
#include "tenants/cell_run.h"
#include "trace/store.h"

namespace strobe::app {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

const char* to_string(CellStatus status) {
  switch (status) {
    case CellStatus::kSuccess:
      return "success";
    case CellStatus::kFailed:
      return "failed";
    case CellStatus::kTimeout:
      return "timeout";
    case CellStatus::kInterrupted:
      return "interrupted";
  }
  return "?";
}

namespace {

// Samples of use in the columns of pPerf's monitors: time (s since the window's start) and one column a counter.
Table usage_table(const trace::Timeline& timeline) {
  std::map<std::string, size_t> columns;
  const trace::Counters& counters = timeline.counters;
  for (size_t i = 0; i < counters.size(); ++i) {
    const std::string name(timeline.strings[counters.name[i]]);
    if (gpu_words::parse_counter(name)) continue;  // gpu_<i>.csv has them
    if (name.find("_percent") != std::string::npos || name.starts_with("rss_bytes")) columns.emplace(name, 0);
  }
  std::vector<Column> header = {{"time", "s", 3}};
  for (auto& [name, column] : columns) {
    column = header.size();
    header.push_back({name, "", 1});
  }
  Table table("Use", header);
  std::vector<Cell> row(header.size());
  constexpr int64_t kTogether_ns = 20'000'000;
  int64_t row_time = INT64_MIN;
  const auto finish = [&] {
    if (row_time != INT64_MIN) table.add_row(row);
    row.assign(header.size(), Cell());
  };
  for (size_t i = 0; i < counters.size(); ++i) {
    const auto column = columns.find(std::string(timeline.strings[counters.name[i]]));
    if (column == columns.end()) continue;
    if (row_time == INT64_MIN || counters.time_ns[i] - row_time > kTogether_ns) {
      finish();
      row_time = counters.time_ns[i];
      row[0] = static_cast<double>(row_time) / 1e9;
    }
    row[column->second] = counters.value[i];
  }
  finish();
  return table;
}

Result<void> write_csv(const Table& table, const fs::path& path) {
  return write_file(path, report::format_table(table, report::Format::kCsv));
}

Json factors_json(const tenants::Cell& cell) {
  Json factors = Json::object();
  for (const auto& [key, value] : cell.factors) factors[key] = value;
  return factors;
}

Json outcome_json(const tenants::CellOutcome& outcome) {
  Json all = Json::array();
  for (const tenants::TenantOutcome& tenant : outcome.tenants)
    all.push_back({{"name", tenant.name},
                   {"end", tenant.end},
                   {"succeeded", tenant.succeeded},
                   {"sent", tenant.sent},
                   {"finished", tenant.finished},
                   {"dropped", tenant.dropped},
                   {"failed", tenant.failed},
                   {"notes", tenant.notes}});
  return all;
}

// The first thing that went wrong, for a line of the log.
std::string reason_of(const tenants::CellOutcome& outcome) {
  for (const tenants::TenantOutcome& tenant : outcome.tenants)
    if (!tenant.succeeded && tenant.end != "not begun") return fmt::format("tenant {}: {}", tenant.name, tenant.end);
  return outcome.began ? "" : "not all tenants were ready";
}

// Tables, predictions and figures out of the timeline. A cell whose tenants never had a frame has none.
Result<Json> write_results(const trace::Timeline& timeline, const tenants::Cell& cell, const fs::path& folder,
                           FrameDelays& delays) {
  Json figures = Json::object();
  for (const std::string& note : metrics_notes(timeline)) figures["notes"].push_back(note);
  auto trace = analyze::tenant_trace(timeline);
  if (!trace) {
    figures["notes"].push_back(trace.error().to_string());
    return figures;
  }
  for (const std::string& note : analyze::repeated_input_notes(*trace)) figures["notes"].push_back(note);
  for (const analyze::TenantFrame& frame : trace->frames)
    if (frame.finished())
      delays[{trace->tenants[static_cast<size_t>(frame.tenant)].name, frame.id}] =
          static_cast<double>(frame.latency_ns()) / 1e9;
  const std::string index = std::to_string(cell.index);
  STROBE_TRY(write_csv(analyze::tenant_delays(*trace, timeline), folder / ("delays_" + index + ".csv")));
  STROBE_TRY(write_csv(analyze::tenant_layer_timings(*trace, timeline), folder / ("layer_timings_" + index + ".csv")));
  if (const auto work = analyze::model_work(timeline); !work.empty())
    STROBE_TRY(write_csv(analyze::kernel_timings(work), folder / ("kernel_timings_" + index + ".csv")));
  STROBE_TRY(write_csv(usage_table(timeline), folder / ("cpu_" + index + ".csv")));
  if (const Table samples = analyze::gpu_samples(timeline); samples.row_count() > 0)
    STROBE_TRY(write_csv(samples, folder / ("gpu_" + index + ".csv")));
  const Table summary = analyze::tenant_summary(*trace);
  STROBE_TRY(write_csv(summary, folder / ("tenants_" + index + ".csv")));
  figures["tenants"] = Json::parse(report::format_table(summary, report::Format::kJson));
  const Table gpus = analyze::gpu_use(timeline, analyze::measured_stretch(timeline));
  if (gpus.row_count() > 0) figures["gpus"] = Json::parse(report::format_table(gpus, report::Format::kJson));
  return figures;
}

// Why a cell whose tenants all ended well measured nothing of one of them, as far as the tables tell.
std::string nothing_in(const tenants::Cell& cell, const Json& figures) {
  if (!figures.contains("tenants")) return "nothing was recorded of the measured window";
  for (const Json& row : figures["tenants"].value("rows", Json::array()))
    for (const tenants::TenantSpec& tenant : cell.spec.tenants)
      if (row.value("tenant", "") == tenant.name && row.value("frames", 0) == 0)
        return tenant.batches_hz() * cell.spec.duration_s >= 2
                   ? fmt::format(
                         "tenant {}: no frame was due in the measured window: the machine or the process stood "
                         "still",
                         tenant.name)
                   : fmt::format(
                         "tenant {}: no frame was due in the measured window, which is shorter than two of its "
                         "periods ({:.3g} s each)",
                         tenant.name, 1 / tenant.batches_hz());
  for (const Json& row : figures["tenants"].value("rows", Json::array()))
    if (const int64_t failed = row.value("failed", 0); failed > 0 && failed == row.value("frames", 0))
      return fmt::format("tenant {}: each of the {} frames of the measured window failed", row.value("tenant", ""),
                         failed);
  return "";
}

std::string measured_nothing(const tenants::Cell& cell, const Json& figures, uint64_t lost_records) {
  std::string reason = nothing_in(cell, figures);
  if (!reason.empty() && lost_records > 0)
    reason += fmt::format("; or it was not recorded: {} records are lost (is the disk full?)", lost_records);
  return reason;
}

// Everything but cell.json's word on how it went, which `result` brings; a success that measured nothing is none.
// Returns whether it stayed one.
Result<bool> finish_cell(const tenants::Cell& cell, const fs::path& folder, Json result) {
  const fs::path spool = folder / "spool", predictions = folder / "predictions";
  STROBE_ASSIGN(trace::Timeline timeline, import_recording(spool));
  for (const auto& [key, value] : cell.factors) timeline.facts["experiment." + key] = value;
  timeline.facts["experiment.cell"] = cell.folder;
  write_source_facts(cell.spec, timeline);
  STROBE_TRY(trace::write_store(timeline, folder / "trace.sqlite"));
  FrameDelays delays;
  STROBE_ASSIGN(const Json figures, write_results(timeline, cell, folder, delays));
  STROBE_TRY(merge_predictions(cell, delays, predictions, folder));
  std::error_code ignored;
  fs::remove_all(spool, ignored);
  fs::remove_all(predictions, ignored);
  if (figures.contains("tenants")) result["figures"] = figures["tenants"];
  if (figures.contains("gpus")) result["gpus"] = figures["gpus"];
  if (figures.contains("notes")) result["notes"] = figures["notes"];
  const bool succeeded = result["status"] == to_string(CellStatus::kSuccess);
  const std::string reason = succeeded ? measured_nothing(cell, figures, timeline.losses.dropped_records) : "";
  if (!reason.empty()) {
    result["status"] = to_string(CellStatus::kFailed);
    result["reason"] = reason;
  }
  STROBE_TRY(write_file(folder / "cell.json", result.dump(2, ' ', false, Json::error_handler_t::replace) + "\n"));
  return succeeded && reason.empty();
}

Json head_json(const tenants::Cell& cell, CellStatus status, const std::string& reason) {
  return {{"cell", cell.folder},
          {"run_index", cell.index},
          {"factors", factors_json(cell)},
          {"status", to_string(status)},
          {"reason", reason}};
}

}  // namespace

Result<CellStatus> run_experiment_cell(const tenants::Cell& cell, const fs::path& folder, const std::atomic<bool>& stop,
                                       const std::function<void(double, double)>& on_progress, bool gpu,
                                       int gpu_metrics_us) {
  const fs::path spool = folder / "spool", predictions = folder / "predictions";
  STROBE_TRY(make_writable_folder(spool));
  STROBE_TRY(make_writable_folder(predictions));
  std::optional<GpuSamplers> gpu_samples;
  STROBE_ASSIGN(const tenants::CellOutcome outcome,
                tenants::run_cell(cell.spec, {.spool = spool,
                                              .predictions = predictions,
                                              .stop = &stop,
                                              .on_recording =
                                                  [&] {
                                                    if (gpu)
                                                      gpu_samples.emplace(strobe::gpu::SamplerOptions{.folder = spool},
                                                                          gpu_metrics_us);
                                                  },
                                              .on_end = [&] { gpu_samples.reset(); },
                                              .on_progress = on_progress,
                                              .gpu = gpu}));
  const CellStatus status = outcome.stopped       ? CellStatus::kInterrupted
                            : outcome.succeeded() ? CellStatus::kSuccess
                                                  : CellStatus::kFailed;
  Json result = head_json(cell, status, reason_of(outcome));
  result["tenants"] = outcome_json(outcome);
  STROBE_ASSIGN(const bool measured, finish_cell(cell, folder, std::move(result)));
  return status == CellStatus::kSuccess && !measured ? CellStatus::kFailed : status;
}

Result<void> recover_experiment_cell(const tenants::Cell& cell, const fs::path& folder, CellStatus status,
                                     const std::string& reason) {
  STROBE_ASSIGN(const bool measured, finish_cell(cell, folder, head_json(cell, status, reason)));
  (void)measured;
  return {};
}

}  // namespace strobe::app
