// stage_latency and frame_latency of pipeline.h.
#include <algorithm>

#include "analyze/cells.h"
#include "analyze/notes.h"
#include "analyze/passes.h"
#include "analyze/pipeline.h"
#include "analyze/run_notes.h"
#include "base/statistics.h"

namespace strobe::analyze {

namespace {

double milliseconds(double ns) {
  return ns / 1e6;
}

// Visits each frame's time in each of its stages; a stage that a frame passed twice counts with the sum.
template <typename Visit>
void for_each_stage_time(const PipelineRun& run, const Frame& frame, Visit visit) {
  const size_t end = frame.first_pass + frame.pass_count;
  for (size_t i = frame.first_pass; i < end;) {
    const int32_t stage = run.passes[i].stage;
    int64_t time = 0;
    for (; i < end && run.passes[i].stage == stage; ++i) time += run.passes[i].end_ns - run.passes[i].start_ns;
    visit(static_cast<size_t>(stage), static_cast<double>(time));
  }
}

std::vector<Cell> latency_row(const std::string& name, std::vector<double> ns, Cell share) {
  std::sort(ns.begin(), ns.end());
  std::vector<Cell> row{name, static_cast<int64_t>(ns.size())};
  const auto add = [&](double value) { row.push_back(cell_if(!ns.empty(), milliseconds(value))); };
  add(mean(ns));
  for (const double q : {0.5, 0.9, 0.99, 1.0}) add(quantile_sorted(ns, q));
  row.push_back(std::move(share));
  return row;
}

}  // namespace

Table stage_latency(const trace::Timeline& timeline) {
  const PipelineRun run = pipeline_run(timeline);
  Table table("Latency by stage",
              {{"stage", "stage of the pipeline; total: from the start of the first to the end of the last"},
               {"count", "frames that passed it inside the run", 0},
               {"mean_ms", "mean time of a frame in it"},
               {"p50_ms", "median"},
               {"p90_ms", "90th percentile"},
               {"p99_ms", "99th percentile"},
               {"max_ms", "largest"},
               {"share", "of the time that frames spent in stages"}});
  std::vector<std::vector<double>> times(run.stages.size());
  std::vector<double> totals;
  double service = 0, service_of_finished = 0, latency = 0;
  for (const Frame& frame : run.frames) {
    for_each_stage_time(run, frame, [&](size_t stage, double ns) {
      times[stage].push_back(ns);
      service += ns;
      if (frame.finished) service_of_finished += ns;
    });
    if (!frame.finished) continue;
    totals.push_back(static_cast<double>(frame.end_ns - frame.start_ns));
    latency += totals.back();
  }
  for (size_t i = 0; i < run.stages.size(); ++i) {
    double sum = 0;
    for (const double ns : times[i]) sum += ns;
    table.add_row(latency_row(run.stages[i], std::move(times[i]), cell_if(service > 0, sum / service)));
  }
  table.add_row(latency_row("total", std::move(totals), Cell()));
  if (latency > 0) table.coverage = std::min(1.0, service_of_finished / latency);
  note_run(run, table);
  note_losses(timeline, table);
  return table;
}

Table frame_latency(const trace::Timeline& timeline) {
  const PipelineRun run = pipeline_run(timeline);
  std::vector<Column> columns{{"frame", "frame number", 0}};
  for (const std::string& stage : run.stages) columns.push_back({stage + "_ms", "time in stage " + stage});
  columns.push_back({"total_ms", "from the start of the first stage to the end of the last"});
  Table table("Latency by frame", std::move(columns));
  for (const Frame& frame : run.frames) {
    if (!frame.finished) continue;
    std::vector<Cell> row(run.stages.size() + 2);
    row.front() = frame.id;
    for_each_stage_time(run, frame, [&](size_t stage, double ns) { row[stage + 1] = milliseconds(ns); });
    row.back() = milliseconds(static_cast<double>(frame.end_ns - frame.start_ns));
    table.add_row(std::move(row));
  }
  note_run(run, table);
  note_losses(timeline, table);
  return table;
}

}  // namespace strobe::analyze
