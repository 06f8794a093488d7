#include "report/run_json.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>

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

ordered_json counters_json(const trace::Timeline& timeline) {
  std::map<std::string, Samples> by_name;
  for (size_t i = 0; i < timeline.counters.size(); ++i) {
    Samples& samples = by_name[std::string(timeline.strings[timeline.counters.name[i]])];
    samples.seconds.push_back(static_cast<double>(timeline.counters.time_ns[i]) / 1e9);
    samples.values.push_back(timeline.counters.value[i]);
  }
  ordered_json out = ordered_json::array();
  for (const auto& [name, samples] : by_name) {
    const Samples drawn = reduced(samples);
    ordered_json values = ordered_json::array();
    for (const double value : drawn.values) values.push_back(cell_json(value));
    out.push_back({{"name", name}, {"samples", samples.values.size()}, {"seconds", drawn.seconds}, {"values", values}});
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
          {"timeline", timeline_json(timeline)}};
}

}  // namespace strobe::report
