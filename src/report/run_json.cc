#include "report/run_json.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <tuple>

#include "analyze/answers.h"
#include "analyze/layers.h"
#include "analyze/pipeline.h"
#include "report/packing.h"
#include "report/timeline_json.h"

namespace strobe::report {

using nlohmann::ordered_json;

namespace {

// A counter with more samples is drawn by the smallest and largest value of each of so many intervals.
constexpr size_t kCounterIntervals = 1500;

ordered_json cell_json(const Cell& cell) {
  if (const auto* count = std::get_if<int64_t>(&cell)) return *count;
  if (const auto* measure = std::get_if<double>(&cell)) {
    if (std::isfinite(*measure)) return *measure;
    return nullptr;
  }
  if (const auto* text = std::get_if<std::string>(&cell)) return *text;
  return nullptr;
}

// {"columns": [...], "frame": base64 varints, "NAME_ms": base64 float32, ...}; NaN is a missing time.
ordered_json frames_json(const Table& table) {
  ordered_json out = {{"n", table.row_count()}, {"columns", ordered_json::array()}};
  for (const Column& column : table.columns()) {
    if (column.name == "frame") {
      VarintWriter frames;
      double before = 0;
      for (size_t row = 0; row < table.row_count(); ++row) {
        const double frame = table.number(row, "frame").value_or(before);
        frames.add_signed(static_cast<int64_t>(frame - before));
        before = frame;
      }
      out["frame"] = frames.base64();
      continue;
    }
    std::vector<float> values;
    values.reserve(table.row_count());
    for (size_t row = 0; row < table.row_count(); ++row)
      values.push_back(
          static_cast<float>(table.number(row, column.name).value_or(std::numeric_limits<double>::quiet_NaN())));
    out["columns"].push_back(column.name);
    out[column.name] = base64_floats(values);
  }
  return out;
}

struct Samples {
  std::vector<double> seconds;
  std::vector<double> values;
};

Samples reduced(const Samples& samples) {
  if (samples.values.size() <= 2 * kCounterIntervals) return samples;
  Samples out;
  const size_t step = (samples.values.size() + kCounterIntervals - 1) / kCounterIntervals;
  for (size_t begin = 0; begin < samples.values.size(); begin += step) {
    const auto first = samples.values.begin() + static_cast<std::ptrdiff_t>(begin);
    const auto last =
        samples.values.begin() + static_cast<std::ptrdiff_t>(std::min(begin + step, samples.values.size()));
    auto [low, high] = std::minmax_element(first, last);
    if (high < low) std::swap(low, high);
    for (const auto at : {low, high}) {
      out.seconds.push_back(samples.seconds[static_cast<size_t>(at - samples.values.begin())]);
      out.values.push_back(*at);
    }
  }
  return out;
}

// "python3 4711": the thread or process that counts.
std::string counter_owner(const trace::Timeline& timeline, int32_t pid, int32_t lane) {
  if (lane != trace::kNone) {
    const trace::Lane& thread = timeline.lanes[static_cast<size_t>(lane)];
    return std::string(timeline.strings[thread.name]) + " " + std::to_string(thread.tid);
  }
  for (const trace::Process& process : timeline.processes)
    if (process.pid == pid) return std::string(timeline.strings[process.name]) + " " + std::to_string(pid);
  return std::to_string(pid);
}

// One strip a counter. Where several threads or processes have a counter of a name each has its own, as long as a page
// can hold them: threads give way first.
ordered_json counters_json(const trace::Timeline& timeline) {
  constexpr size_t kMostStrips = 40;
  const trace::Counters& counters = timeline.counters;
  std::map<std::tuple<std::string_view, int32_t, int32_t>, Samples> series;
  for (size_t i = 0; i < counters.size(); ++i) {
    Samples& samples = series[{timeline.strings[counters.name[i]], counters.pid[i], counters.lane_of(i)}];
    samples.seconds.push_back(static_cast<double>(counters.time_ns[i]) / 1e9);
    samples.values.push_back(counters.value[i]);
  }
  std::map<std::string_view, size_t> owners;
  for (const auto& [key, samples] : series) ++owners[std::get<0>(key)];
  const bool leave_threads_out = series.size() > kMostStrips;
  ordered_json out = ordered_json::array();
  for (const auto& [key, samples] : series) {
    const auto& [name, pid, lane] = key;
    if (out.size() == kMostStrips || (leave_threads_out && lane != trace::kNone)) continue;
    const Samples drawn = reduced(samples);
    ordered_json values = ordered_json::array();
    for (const double value : drawn.values) values.push_back(cell_json(value));
    std::string title(name);
    if (owners[name] > 1) title += ", " + counter_owner(timeline, pid, lane);
    out.push_back(
        {{"name", title}, {"samples", samples.values.size()}, {"seconds", drawn.seconds}, {"values", values}});
  }
  return out;
}

// What `strobe explain` says beyond the figures of a pipeline: titled tables that have rows.
ordered_json answers_json(const trace::Timeline& timeline) {
  ordered_json out = ordered_json::array();
  for (const analyze::Answer& answer : analyze::answers(timeline, {})) {
    // A pipeline's stages and ranges have plots of their own.
    if (answer.key == "stages" || (answer.key == "ranges" && is_pipeline(timeline))) continue;
    out.push_back(table_json(answer.table));
    out.back()["title"] = answer.table.title();
  }
  return out;
}

}  // namespace

ordered_json table_json(const Table& table) {
  ordered_json out = {{"columns", ordered_json::array()}, {"rows", ordered_json::array()}, {"notes", table.notes}};
  for (const Column& column : table.columns())
    out["columns"].push_back({{"name", column.name}, {"help", column.help}, {"decimals", column.decimals}});
  for (const auto& row : table.rows()) {
    ordered_json cells = ordered_json::array();
    for (const Cell& cell : row) cells.push_back(cell_json(cell));
    out["rows"].push_back(std::move(cells));
  }
  if (table.coverage) out["coverage"] = cell_json(*table.coverage);
  return out;
}

bool is_pipeline(const trace::Timeline& timeline) {
  return timeline.facts.contains("pipeline.stages");
}

ordered_json run_json(const ReportInput& run) {
  const trace::Timeline& timeline = *run.timeline;
  ordered_json faults = ordered_json::object();
  for (const auto& [kind, count] : timeline.losses.faults) faults[kind] = count;
  return {{"label", run.label},
          {"facts", timeline.facts},
          {"dropped_records", timeline.losses.dropped_records},
          {"faults", faults},
          {"throughput", table_json(analyze::throughput(timeline))},
          {"stages", table_json(analyze::stage_latency(timeline))},
          {"limits", table_json(analyze::stage_limits(timeline))},
          {"layers", table_json(analyze::layers(timeline))},
          {"fusion", table_json(analyze::fusion(timeline))},
          {"frames", frames_json(analyze::frame_latency(timeline))},
          {"counters", counters_json(timeline)},
          {"is_pipeline", is_pipeline(timeline)},
          {"answers", answers_json(timeline)},
          {"timeline", timeline_json(timeline)}};
}

}  // namespace strobe::report
