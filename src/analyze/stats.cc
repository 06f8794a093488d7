#include "analyze/stats.h"

#include <algorithm>
#include <numeric>

#include "analyze/cells.h"
#include "analyze/notes.h"
#include "analyze/passes.h"
#include "analyze/sample.h"

namespace strobe::analyze {

using trace::RangeKind;
using trace::Timeline;

namespace {

constexpr std::pair<const char*, StatsBy> kNames[] = {
    {"range", StatsBy::kRange},           {"kernel", StatsBy::kKernel},     {"api", StatsBy::kApi},
    {"memcpy", StatsBy::kMemcpy},         {"operator", StatsBy::kOperator}, {"stage", StatsBy::kStage},
    {"annotation", StatsBy::kAnnotation}, {"category", StatsBy::kCategory}, {"domain", StatsBy::kDomain}};

bool is_meant(RangeKind kind, StatsBy by) {
  switch (by) {
    case StatsBy::kRange:
    case StatsBy::kCategory:
    case StatsBy::kDomain:
      return kind == RangeKind::kAnnotation || kind == RangeKind::kOperator;
    case StatsBy::kAnnotation:
      return kind == RangeKind::kAnnotation;
    case StatsBy::kKernel:
      return kind == RangeKind::kKernel || kind == RangeKind::kGraph;
    case StatsBy::kApi:
      return kind == RangeKind::kApi;
    case StatsBy::kMemcpy:
      return kind == RangeKind::kCopy || kind == RangeKind::kSet;
    case StatsBy::kOperator:
      return kind == RangeKind::kOperator;
    case StatsBy::kStage:
      return false;
  }
  return false;
}

struct Rows {
  std::vector<std::string> names;
  std::vector<uint32_t> group_of;
  std::vector<int64_t> duration_ns;
  std::vector<int64_t> self_ns;  // by group; empty: does not nest
  size_t open = 0;
};

// Each range's time without that of its direct children.
std::vector<int64_t> self_times(const trace::Ranges& ranges) {
  std::vector<int64_t> self(ranges.size());
  for (size_t i = 0; i < ranges.size(); ++i) {
    self[i] = ranges.end_ns[i] - ranges.start_ns[i];
    // A parent stands before its children, so its own time is there already.
    if (ranges.parent[i] != trace::kNone) self[static_cast<size_t>(ranges.parent[i])] -= self[i];
  }
  return self;
}

Rows rows_of(const Timeline& timeline, StatsBy by) {
  const trace::Ranges& ranges = timeline.ranges;
  Rows rows;
  const bool nests = by != StatsBy::kKernel && by != StatsBy::kMemcpy;
  std::vector<int64_t> self;
  if (nests) self = self_times(ranges);
  std::vector<uint32_t> group_of_name(timeline.strings.size(), UINT32_MAX);
  const int64_t os = by == StatsBy::kDomain ? int64_t{trace::kNone} : timeline.strings.find("os");
  const auto group_name = [&](size_t i) -> trace::StringId {
    if (by == StatsBy::kCategory) return ranges.category_of(i);
    return by == StatsBy::kDomain ? ranges.domain_of(i) : ranges.name[i];
  };
  for (size_t i = 0; i < ranges.size(); ++i) {
    if (!is_meant(ranges.kind[i], by) || (os != trace::kNone && ranges.domain_of(i) == os)) continue;
    const trace::StringId name = group_name(i);
    if (name == 0 && (by == StatsBy::kCategory || by == StatsBy::kDomain)) continue;  // in none
    if (ranges.open[i]) {
      ++rows.open;
      continue;
    }
    uint32_t& group = group_of_name[name];
    if (group == UINT32_MAX) {
      group = static_cast<uint32_t>(rows.names.size());
      rows.names.emplace_back(timeline.strings[name]);
      if (nests) rows.self_ns.push_back(0);
    }
    rows.group_of.push_back(group);
    rows.duration_ns.push_back(ranges.end_ns[i] - ranges.start_ns[i]);
    if (nests) rows.self_ns[group] += self[i];
  }
  return rows;
}

Rows stage_rows(const Timeline& timeline) {
  PipelineRun run = pipeline_run(timeline);
  std::stable_sort(run.passes.begin(), run.passes.end(),
                   [](const Pass& a, const Pass& b) { return a.start_ns < b.start_ns; });
  Rows rows;
  rows.names = run.stages;
  for (const Pass& pass : run.passes) {
    rows.group_of.push_back(static_cast<uint32_t>(pass.stage));
    rows.duration_ns.push_back(pass.end_ns - pass.start_ns);
  }
  return rows;
}

// "; there are 3 operator, 2 kernel"
std::string what_there_is(const Timeline& timeline) {
  size_t counts[std::size(kNames)] = {};
  for (const RangeKind kind : timeline.ranges.kind)
    for (const auto& [name, by] : kNames) counts[static_cast<size_t>(by)] += is_meant(kind, by) ? 1 : 0;
  std::string text;
  for (const auto& [name, by] : kNames)
    if (const size_t count = counts[static_cast<size_t>(by)];
        count > 0 && by != StatsBy::kRange && by != StatsBy::kCategory && by != StatsBy::kDomain)
      text += (text.empty() ? "; there are " : ", ") + std::to_string(count) + " " + name;
  return text;
}

}  // namespace

std::string stats_by_choices() {
  std::string text;
  for (const auto& [name, by] : kNames)
    text += std::string(text.empty() ? "" : ", ") + name + (by == StatsBy::kRange ? " (annotation and operator)" : "");
  return text;
}

Result<StatsBy> parse_stats_by(const std::string& name) {
  for (const auto& [known, by] : kNames)
    if (name == known) return by;
  return usage_error("--by " + name + ": expected one of " + stats_by_choices());
}

std::vector<size_t> most_first(const std::vector<int64_t>& total, const std::vector<std::string>& name, size_t top) {
  std::vector<size_t> order(total.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return total[a] != total[b] ? total[a] > total[b] : name[a] != name[b] ? name[a] < name[b] : a < b;
  });
  if (top > 0 && order.size() > top) order.resize(top);
  return order;
}

Table stats(const Timeline& timeline, const StatsOptions& options) {
  const char* what = kNames[static_cast<size_t>(options.by)].first;
  std::vector<Column> columns{{"name", std::string("name of the ") + what}};
  for (Column& column : sample_columns()) columns.push_back(std::move(column));
  columns.push_back({"share", "of the time of all names of this kind"});
  columns.push_back({"self_ns", "total without what is nested directly inside", 0});
  Table table(std::string("Statistics by ") + what, std::move(columns));

  const Rows rows = options.by == StatsBy::kStage ? stage_rows(timeline) : rows_of(timeline, options.by);
  std::vector<Sample> samples = summarize_groups(rows.group_of, rows.duration_ns, rows.names.size());
  std::vector<int64_t> totals;
  double sum = 0;
  for (size_t i = 0; i < samples.size(); ++i) {
    totals.push_back(samples[i].total_ns);
    sum += static_cast<double>(samples[i].total_ns);
  }
  size_t filtered = 0, shown = 0;
  for (const size_t i : most_first(totals, rows.names, 0)) {
    if (samples[i].count == 0) continue;
    if (!options.filter.matches(rows.names[i])) {
      ++filtered;
      continue;
    }
    if (options.top > 0 && shown == options.top) break;
    ++shown;
    std::vector<Cell> row{rows.names[i]};
    add_sample(samples[i], row);
    row.push_back(cell_if(sum > 0, static_cast<double>(samples[i].total_ns) / sum));
    row.emplace_back();
    if (!rows.self_ns.empty()) row.back() = rows.self_ns[i];
    table.add_row(std::move(row));
  }
  if (rows.duration_ns.empty())
    table.notes.push_back(std::string("no ") + what + " in this trace" + what_there_is(timeline));
  if (rows.open > 0)
    table.notes.push_back(count_of(rows.open, "range was", "ranges were") +
                          " still open when the recording ended and " + (rows.open == 1 ? "is" : "are") + " left out");
  if (filtered > 0) table.notes.push_back(count_of(filtered, "name is", "names are") + " left out by the filter");
  note_losses(timeline, table);
  return table;
}

}  // namespace strobe::analyze
