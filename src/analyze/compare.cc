#include "analyze/compare.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "analyze/cells.h"
#include "analyze/notes.h"
#include "analyze/passes.h"
#include "analyze/sample.h"
#include "base/statistics.h"
#include "base/suggest.h"

namespace strobe::analyze {

using trace::RangeKind;
using trace::Timeline;

namespace {

constexpr const char* kMetrics =
    "expected range:NAME, operator:NAME, kernel:NAME, api:NAME, memcpy:NAME, frame or end_to_end";

// The word in front of a name; nullptr for kinds that are not compared.
const char* word_of(RangeKind kind) {
  switch (kind) {
    case RangeKind::kAnnotation:
      return "range";
    case RangeKind::kOperator:
      return "operator";
    case RangeKind::kApi:
      return "api";
    case RangeKind::kKernel:
    case RangeKind::kGraph:
      return "kernel";
    case RangeKind::kCopy:
    case RangeKind::kSet:
      return "memcpy";
    default:
      return nullptr;
  }
}

bool is_meant(RangeKind kind, std::string_view word) {
  const char* known = word_of(kind);
  // NVTX ranges may be either.
  return known && (word == known || (word == "range" && kind == RangeKind::kOperator));
}

// "ProfilerStep#12" is an instance of "ProfilerStep".
std::string_view without_number(std::string_view name) {
  const size_t hash = name.find_last_not_of("0123456789");
  return hash != std::string_view::npos && hash + 1 < name.size() && name[hash] == '#' ? name.substr(0, hash) : name;
}

std::vector<double> durations(const Timeline& timeline, std::string_view word, std::string_view name) {
  const trace::Ranges& ranges = timeline.ranges;
  const auto collect = [&](const auto& is_name) {
    std::vector<uint8_t> is_wanted(timeline.strings.size());
    for (trace::StringId id = 0; id < is_wanted.size(); ++id) is_wanted[id] = is_name(timeline.strings[id]) ? 1 : 0;
    std::vector<double> values;
    for (size_t i = 0; i < ranges.size(); ++i)
      if (is_wanted[ranges.name[i]] != 0 && !ranges.open[i] && is_meant(ranges.kind[i], word))
        values.push_back(static_cast<double>(ranges.end_ns[i] - ranges.start_ns[i]));
    return values;
  };
  std::vector<double> values = collect([&](std::string_view known) { return known == name; });
  if (values.empty()) values = collect([&](std::string_view known) { return without_number(known) == name; });
  if (word == "kernel" && values.empty())
    for (const trace::NetworkKernel& kernel : timeline.kernels)
      if (timeline.strings[kernel.name] == name)
        values.insert(values.end(), kernel.duration_ns.begin(), kernel.duration_ns.end());
  return values;
}

// Numbered instances under their common name.
std::vector<std::string> names_of(const Timeline& timeline, std::string_view word) {
  std::vector<uint8_t> is_used(timeline.strings.size());
  for (size_t i = 0; i < timeline.ranges.size(); ++i)
    if (is_meant(timeline.ranges.kind[i], word)) is_used[timeline.ranges.name[i]] = 1;
  if (word == "kernel")
    for (const trace::NetworkKernel& kernel : timeline.kernels) is_used[kernel.name] = 1;
  std::vector<std::string> names;
  std::set<std::string_view> seen;
  for (size_t i = 0; i < is_used.size(); ++i) {
    if (is_used[i] == 0) continue;
    const std::string_view name = without_number(timeline.strings[static_cast<trace::StringId>(i)]);
    if (seen.insert(name).second) names.emplace_back(name);
  }
  return names;
}

std::vector<double> frames(const Timeline& timeline, bool end_to_end) {
  const PipelineRun run = pipeline_run(timeline);
  std::vector<double> values;
  if (run.has_run && run.finished > 0) {
    std::vector<int64_t> ends;
    for (const Frame& frame : run.frames) {
      if (!frame.finished) continue;
      values.push_back(static_cast<double>(frame.end_ns - frame.start_ns));
      ends.push_back(frame.end_ns);
    }
    if (!end_to_end) return values;
    std::sort(ends.begin(), ends.end());
    for (size_t i = 0; i < ends.size(); ++i)
      values[i] = static_cast<double>(ends[i] - (i > 0 ? ends[i - 1] : run.start_ns));
    return values;
  }
  const trace::Ranges& ranges = timeline.ranges;
  const Timeline& t = timeline;
  size_t last = ranges.size();
  for (size_t i = 0; i < ranges.size(); ++i) {
    if (ranges.kind[i] != RangeKind::kAnnotation && ranges.kind[i] != RangeKind::kOperator) continue;
    if (t.lanes[static_cast<size_t>(ranges.lane[i])].kind != trace::Lane::Kind::kThread || ranges.open[i]) continue;
    if (!t.strings[ranges.name[i]].starts_with("ProfilerStep#")) continue;
    if (end_to_end && last < ranges.size())
      values.back() = static_cast<double>(ranges.start_ns[i] - ranges.start_ns[last]);
    values.push_back(static_cast<double>(ranges.end_ns[i] - ranges.start_ns[i]));
    last = i;
  }
  return values;
}

ComparedSide side_of(const std::vector<double>& values) {
  ComparedSide side;
  side.n = values.size();
  if (values.empty()) return side;
  std::vector<double> sorted = values;
  std::sort(sorted.begin(), sorted.end());
  side.mean_ns = mean(values);
  side.std_ns = standard_deviation(values);
  side.min_ns = sorted.front();
  side.p50_ns = quantile_sorted(sorted, 0.5);
  side.p90_ns = quantile_sorted(sorted, 0.9);
  side.p99_ns = quantile_sorted(sorted, 0.99);
  side.max_ns = sorted.back();
  return side;
}

std::string verdict_of(const std::optional<RatioInterval>& interval) {
  if (!interval) return "too few samples";
  return interval->low > 1 ? "slower" : interval->high < 1 ? "faster" : "no difference";
}

std::optional<RatioInterval> interval_of(const std::vector<double>& a, const std::vector<double>& b,
                                         const CompareOptions& options) {
  const size_t least = least_samples(options.statistic);
  if (a.size() < least || b.size() < least) return {};
  if (!(value_of(a, options.statistic) > 0) || !(value_of(b, options.statistic) > 0)) return {};
  return ratio_interval(a, b, options.statistic, options.resamples, options.seed);
}

// Every name's durations, by "word:name".
std::map<std::string, std::vector<double>> all_durations(const Timeline& timeline) {
  std::map<std::string, std::vector<double>> all;
  const trace::Ranges& ranges = timeline.ranges;
  // By name, the series of its kinds: five words.
  std::vector<std::vector<double>*> series(timeline.strings.size() * 10, nullptr);
  for (size_t i = 0; i < ranges.size(); ++i) {
    const char* word = word_of(ranges.kind[i]);
    if (!word || ranges.open[i]) continue;
    auto*& values = series[ranges.name[i] * size_t{10} + static_cast<size_t>(ranges.kind[i])];
    if (!values) {
      // Each ProfilerStep has a name of its own: together they are the frames.
      const std::string_view name = timeline.strings[ranges.name[i]];
      values = &all[name.starts_with("ProfilerStep#") ? "frame" : std::string(word) + ":" + std::string(name)];
    }
    values->push_back(static_cast<double>(ranges.end_ns[i] - ranges.start_ns[i]));
  }
  for (const trace::NetworkKernel& kernel : timeline.kernels) {
    auto& values = all["kernel:" + std::string(timeline.strings[kernel.name])];
    values.insert(values.end(), kernel.duration_ns.begin(), kernel.duration_ns.end());
  }
  return all;
}

double sum_of(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum;
}

}  // namespace

Result<std::vector<double>> samples_of(const Timeline& timeline, const std::string& metric) {
  if (metric == "frame" || metric == "end_to_end") {
    std::vector<double> values = frames(timeline, metric == "end_to_end");
    if (values.empty()) return not_found("no finished frame of a pipeline and no ProfilerStep in this trace");
    return values;
  }
  const size_t colon = metric.find(':');
  const std::string word = metric.substr(0, colon);
  const bool is_known = word == "range" || word == "operator" || word == "kernel" || word == "api" || word == "memcpy";
  if (!is_known || colon == std::string::npos || colon + 1 == metric.size())
    return usage_error("no metric '" + metric + "': " + kMetrics);
  const std::string name = metric.substr(colon + 1);
  std::vector<double> values = durations(timeline, word, name);
  if (values.empty()) {
    const std::vector<std::string> names = names_of(timeline, word);
    if (names.empty()) return not_found("no " + word + " in this trace");
    return not_found("no " + word + " '" + name + "' in this trace; " + suggest(name, names));
  }
  return values;
}

Comparison compare(std::string metric, const std::vector<double>& a, const std::vector<double>& b,
                   const CompareOptions& options) {
  Comparison comparison;
  comparison.metric = std::move(metric);
  comparison.statistic = options.statistic;
  comparison.a = side_of(a);
  comparison.b = side_of(b);
  if (!a.empty() && !b.empty() && value_of(a, options.statistic) > 0)
    comparison.ratio = value_of(b, options.statistic) / value_of(a, options.statistic);
  comparison.interval = interval_of(a, b, options);
  comparison.verdict = verdict_of(comparison.interval);
  return comparison;
}

Table comparison_table(const Comparison& comparison) {
  std::vector<Column> columns{{"metric", "what is compared"}, {"statistic", "of which the ratio is"}};
  std::vector<Cell> row{comparison.metric, std::string(statistic_name(comparison.statistic))};
  for (const auto& [prefix, side] : {std::pair{"a", &comparison.a}, {"b", &comparison.b}}) {
    const std::string of = std::string(" of ") + (prefix[0] == 'a' ? "A" : "B");
    columns.push_back({std::string(prefix) + "_n", "samples" + of, 0});
    row.emplace_back(static_cast<int64_t>(side->n));
    for (const auto& [name, value] : {std::pair{"mean", side->mean_ns},
                                      {"std", side->std_ns},
                                      {"min", side->min_ns},
                                      {"p50", side->p50_ns},
                                      {"p90", side->p90_ns},
                                      {"p99", side->p99_ns},
                                      {"max", side->max_ns}}) {
      columns.push_back({std::string(prefix) + "_" + name + "_ns", name + of, 0});
      row.emplace_back(value);
    }
  }
  columns.push_back({"ratio", "B / A", 4});
  columns.push_back({"ci95_low", "the ratio lies above this in 95 of 100 such comparisons", 4});
  columns.push_back({"ci95_high", "and below this", 4});
  columns.push_back({"verdict", "faster or slower where the interval does not hold 1"});
  const auto& interval = comparison.interval;
  row.push_back(cell(comparison.ratio));
  row.push_back(cell_if(interval.has_value(), interval ? interval->low : 0));
  row.push_back(cell_if(interval.has_value(), interval ? interval->high : 0));
  row.emplace_back(comparison.verdict);
  Table table("Comparison", std::move(columns));
  table.add_row(std::move(row));
  if (!interval)
    table.notes.push_back("too few samples for an interval of the " +
                          std::string(statistic_name(comparison.statistic)) + ": it takes " +
                          std::to_string(least_samples(comparison.statistic)) + " on either side, longer than 0 ns");
  return table;
}

Table largest_changes(const Timeline& a, const Timeline& b, const CompareOptions& options) {
  Table table("Largest changes", {{"metric", "name with its kind"},
                                  {"a_count", "how often in A", 0},
                                  {"b_count", "how often in B", 0},
                                  {"a_mean_ns", "mean in A", 0},
                                  {"b_mean_ns", "mean in B", 0},
                                  {"a_total_ns", "sum in A", 0},
                                  {"b_total_ns", "sum in B", 0},
                                  {"change_ns", "sum in B - sum in A", 0},
                                  {"ratio", std::string("B / A of the ") + statistic_name(options.statistic), 4},
                                  {"ci95_low", "lower end of its 95 % interval", 4},
                                  {"ci95_high", "upper end", 4},
                                  {"verdict", "faster or slower where the interval does not hold 1"}});
  auto all_a = all_durations(a), all_b = all_durations(b);
  struct Change {
    const std::string* metric;
    const std::vector<double>*a, *b;
    double by;
  };
  std::vector<Change> changes;
  for (const auto& [metric, values] : all_b) all_a.try_emplace(metric);
  for (const auto& [metric, values] : all_a) {
    const auto& other = all_b[metric];
    changes.push_back({&metric, &values, &other, sum_of(other) - sum_of(values)});
  }
  std::stable_sort(changes.begin(), changes.end(),
                   [](const Change& x, const Change& y) { return std::abs(x.by) > std::abs(y.by); });
  const size_t all_names = changes.size();
  if (options.top > 0 && changes.size() > options.top) changes.resize(options.top);
  std::vector<std::optional<RatioInterval>> intervals(changes.size());
  for_each_group(changes.size(), changes.size() > 1,
                 [&](size_t i) { intervals[i] = interval_of(*changes[i].a, *changes[i].b, options); });
  for (size_t i = 0; i < changes.size(); ++i) {
    const auto& [metric, va, vb, by] = changes[i];
    const auto& interval = intervals[i];
    std::optional<double> ratio;
    if (!va->empty() && !vb->empty() && value_of(*va, options.statistic) > 0)
      ratio = value_of(*vb, options.statistic) / value_of(*va, options.statistic);
    const std::string verdict = va->empty() ? "only in B" : vb->empty() ? "only in A" : verdict_of(interval);
    table.add_row({*metric, static_cast<int64_t>(va->size()), static_cast<int64_t>(vb->size()),
                   cell_if(!va->empty(), mean(*va)), cell_if(!vb->empty(), mean(*vb)), sum_of(*va), sum_of(*vb), by,
                   cell(ratio), cell_if(interval.has_value(), interval ? interval->low : 0),
                   cell_if(interval.has_value(), interval ? interval->high : 0), verdict});
  }
  if (all_names > changes.size())
    table.notes.push_back("the first " + std::to_string(changes.size()) + " of " + std::to_string(all_names) +
                          " names; --top shows more");
  for (const auto& [timeline, name] : {std::pair{&a, "A"}, {&b, "B"}}) {
    Table losses;
    note_losses(*timeline, losses);
    for (const std::string& note : losses.notes) table.notes.push_back(std::string(name) + ": " + note);
  }
  return table;
}

}  // namespace strobe::analyze
