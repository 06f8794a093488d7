#include "report/comparison.h"

#include <algorithm>

#include "analyze/pipeline.h"
#include "report/run_json.h"

namespace strobe::report {

namespace {

Cell number_cell(const Table& table, size_t row, std::string_view column) {
  const auto value = table.number(row, column);
  return value ? Cell(*value) : Cell();
}

Cell count_cell(const Table& table, size_t row, std::string_view column) {
  const auto value = table.number(row, column);
  return value ? Cell(static_cast<int64_t>(*value)) : Cell();
}

// The row of a stage; the table's size when there is none.
size_t row_of(const Table& table, std::string_view stage) {
  size_t row = 0;
  while (row < table.row_count() && table.text(row, "stage") != stage) ++row;
  return row;
}

// What allows the least: a stage, or "cores" when all stages together want more of them than there are.
Cell limited_by(const Table& throughput) {
  const std::string stage = throughput.text(0, "slowest_stage");
  const auto limit = throughput.number(0, "limit_fps"), slowest = throughput.number(0, "slowest_stage_fps");
  if (limit && slowest && *limit < *slowest) return std::string("cores");
  return stage.empty() ? Cell() : Cell(stage);
}

// CPU time of the first range "run" over its duration and the allowed cores.
Cell cores_busy(const trace::Timeline& timeline, std::optional<double> cores) {
  const auto& ranges = timeline.ranges;
  const int64_t run_id = timeline.strings.find("run"), cpu_id = timeline.strings.find("cpu_ns");
  if (run_id == trace::kNone || cpu_id == trace::kNone || !cores || *cores <= 0) return {};
  size_t run = 0;
  while (run < ranges.size() && ranges.name[run] != run_id) ++run;
  if (run == ranges.size() || ranges.open[run] || ranges.end_ns[run] <= ranges.start_ns[run]) return {};
  const auto& arguments = timeline.arguments;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const auto* cpu_ns = std::get_if<int64_t>(&arguments.value[i]);
    if (arguments.range[i] != static_cast<int32_t>(run) || arguments.key[i] != cpu_id || !cpu_ns) continue;
    return static_cast<double>(*cpu_ns) / static_cast<double>(ranges.end_ns[run] - ranges.start_ns[run]) / *cores;
  }
  return {};
}

}  // namespace

Table compare_runs(std::span<const ReportInput> runs) {
  Table out("Comparison", {{"engine", "name of the run", 0},
                           {"frames", "frames that left the last stage", 0},
                           {"dropped", "frames given up on the way", 0},
                           {"inference_fps", "the inference stage by itself", 2},
                           {"end_to_end_fps", "finished frames over the run's duration", 2},
                           {"limit_fps", "what the slowest stage or the cores allow at best", 2},
                           {"limit_share", "end_to_end_fps / limit_fps", 3},
                           {"limited_by", "the stage, or \"cores\", that sets limit_fps", 0},
                           {"cores_busy", "CPU time of the run / (its duration x cores)", 3},
                           {"waiting_share", "of the frames' latency: time in queues between stages", 3},
                           {"p50_ms", "latency of a whole frame, median", 2},
                           {"p90_ms", "latency of a whole frame", 2},
                           {"p99_ms", "latency of a whole frame", 2},
                           {"max_ms", "latency of a whole frame", 2},
                           {"speedup", "end_to_end_fps over the first run's", 2}});
  std::optional<double> first_fps;
  for (const ReportInput& run : runs) {
    const Table throughput = analyze::throughput(*run.timeline);
    const Table latency = analyze::stage_latency(*run.timeline);
    const size_t total = row_of(latency, "total");
    const auto fps = throughput.number(0, "end_to_end_fps");
    if (&run == runs.data()) first_fps = fps;
    const bool comparable = fps && first_fps && *first_fps > 0;
    out.add_row({run.label, count_cell(throughput, 0, "frames"), count_cell(throughput, 0, "dropped"),
                 number_cell(throughput, 0, "inference_fps"), number_cell(throughput, 0, "end_to_end_fps"),
                 number_cell(throughput, 0, "limit_fps"), number_cell(throughput, 0, "limit_share"),
                 limited_by(throughput), cores_busy(*run.timeline, throughput.number(0, "cores")),
                 latency.coverage ? Cell(std::max(0.0, 1 - *latency.coverage)) : Cell(),
                 number_cell(latency, total, "p50_ms"), number_cell(latency, total, "p90_ms"),
                 number_cell(latency, total, "p99_ms"), number_cell(latency, total, "max_ms"),
                 comparable ? Cell(*fps / *first_fps) : Cell()});
    if (!is_pipeline(*run.timeline)) continue;  // what such a trace lacks is no fault of it
    for (const Table* table : {&throughput, &latency})
      for (const std::string& note : table->notes) out.notes.push_back(run.label + ": " + note);
  }
  // Both tables of a run may say the same.
  std::vector<std::string> unique;
  for (auto& note : out.notes)
    if (std::find(unique.begin(), unique.end(), note) == unique.end()) unique.push_back(std::move(note));
  out.notes = std::move(unique);
  return out;
}

}  // namespace strobe::report
