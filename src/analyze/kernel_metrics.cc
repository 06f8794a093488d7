#include "analyze/kernel_metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analyze/cells.h"
#include "analyze/device_work.h"
#include "analyze/kernel_groups.h"
#include "analyze/notes.h"
#include "analyze/stats.h"
#include "base/gpu_words.h"

namespace strobe::analyze {

using trace::RangeKind;
using trace::Timeline;
namespace words = gpu_words;

namespace {

constexpr double kNoValue = std::numeric_limits<double>::quiet_NaN();
constexpr size_t kFigures = std::size(words::kMetrics);

// The counters of a device: each sample lasts to the next one, and where that did not come in time, as long as most do.
struct Samples {
  std::vector<int64_t> start, end;
  std::vector<std::array<double, kFigures>> values;  // not a number: none
  int64_t period_ns = 0;
};

int figure_of(std::string_view name) {
  for (size_t i = 0; i < kFigures; ++i)
    if (name == words::kMetrics[i]) return static_cast<int>(i);
  return -1;
}

void set_ends(Samples& samples) {
  const size_t count = samples.start.size();
  std::vector<int64_t> gaps;
  for (size_t i = 1; i < count; ++i) gaps.push_back(samples.start[i] - samples.start[i - 1]);
  if (gaps.empty()) return;
  const auto middle = gaps.begin() + static_cast<std::ptrdiff_t>(gaps.size() / 2);
  std::nth_element(gaps.begin(), middle, gaps.end());
  samples.period_ns = *middle;
  for (size_t i = 0; i < count; ++i) {
    const int64_t usual = samples.start[i] + samples.period_ns;
    const bool in_time = i + 1 < count && samples.start[i + 1] <= usual + samples.period_ns / 2;
    samples.end.push_back(in_time ? samples.start[i + 1] : usual);
  }
}

std::map<int64_t, Samples> samples_of(const Timeline& timeline) {
  const trace::Counters& counters = timeline.counters;
  std::map<trace::StringId, std::optional<std::pair<int, int>>> names;  // device and figure
  std::map<int64_t, std::map<int64_t, std::array<double, kFigures>>> found;
  for (size_t i = 0; i < counters.size(); ++i) {
    auto [name, is_new] = names.try_emplace(counters.name[i]);
    if (is_new)
      if (const auto parsed = words::parse_counter(timeline.strings[counters.name[i]]))
        if (const int figure = figure_of(parsed->second); figure >= 0) name->second = {parsed->first, figure};
    if (!name->second) continue;
    auto& of_device = found[name->second->first];
    const size_t before = of_device.size();
    const auto sample = of_device.try_emplace(of_device.end(), counters.time_ns[i]);  // they come in order
    if (of_device.size() > before) sample->second.fill(kNoValue);
    sample->second[static_cast<size_t>(name->second->second)] = counters.value[i];
  }
  std::map<int64_t, Samples> devices;
  for (auto& [gpu, all] : found) {
    Samples& samples = devices[gpu];
    for (const auto& [time, values] : all) {
      samples.start.push_back(time);
      samples.values.push_back(values);
    }
    set_ends(samples);
    if (samples.end.empty()) devices.erase(gpu);
  }
  return devices;
}

// A time-weighted mean of each figure.
struct Means {
  std::array<double, kFigures> sum{}, weight{};
  void add(const std::array<double, kFigures>& values, double time) {
    for (size_t i = 0; i < kFigures; ++i) {
      if (std::isnan(values[i])) continue;
      sum[i] += time * values[i];
      weight[i] += time;
    }
  }
};
struct Group {
  int64_t key = trace::kNone;
  int64_t count = 0, busy_ns = 0, alone_ns = 0;
  int64_t whole = 0, touched = 0, own_ns = 0, touched_ns = 0;
  size_t last_touched = std::numeric_limits<size_t>::max();
  Means of_whole, of_touched;
};

struct Edge {
  int64_t time;
  uint32_t group;
  int32_t step;  // -1 before 1: what ends when another begins is over
  bool operator<(const Edge& other) const { return time != other.time ? time < other.time : step < other.step; }
};
struct Alone {
  int64_t start, end;
  uint32_t group;
};

// Each group's busy time, and the stretches in which one group alone was at work.
std::vector<Alone> sweep(std::vector<Edge> edges, std::vector<Group>& groups) {
  std::sort(edges.begin(), edges.end());
  std::vector<int32_t> active(groups.size());
  std::vector<int64_t> since(groups.size());
  std::vector<Alone> stretches;
  uint32_t mixed = 0;  // the active groups' numbers, by exclusive or: of one, itself
  size_t at_work = 0;
  int64_t before = 0;
  for (const Edge& edge : edges) {
    if (at_work == 1 && edge.time > before) {
      groups[mixed].alone_ns += edge.time - before;
      if (!stretches.empty() && stretches.back().group == mixed && stretches.back().end == before)
        stretches.back().end = edge.time;
      else
        stretches.push_back({before, edge.time, mixed});
    }
    before = edge.time;
    const bool was = active[edge.group] > 0;
    active[edge.group] += edge.step;
    const bool is = active[edge.group] > 0;
    if (was == is) continue;
    mixed ^= edge.group;
    if (is) {
      ++at_work;
      since[edge.group] = edge.time;
    } else {
      --at_work;
      groups[edge.group].busy_ns += edge.time - since[edge.group];
    }
  }
  return stretches;
}

void ascribe(const std::vector<Alone>& stretches, const Samples& samples, std::vector<Group>& groups) {
  size_t first = 0;
  for (const Alone& stretch : stretches) {
    while (first < samples.end.size() && samples.end[first] <= stretch.start) ++first;
    Group& group = groups[stretch.group];
    for (size_t i = first; i < samples.end.size() && samples.start[i] < stretch.end; ++i) {
      const int64_t own = std::min(stretch.end, samples.end[i]) - std::max(stretch.start, samples.start[i]);
      const int64_t length = samples.end[i] - samples.start[i];
      group.own_ns += own;
      group.of_touched.add(samples.values[i], static_cast<double>(own));
      if (group.last_touched != i) {
        group.last_touched = i;
        ++group.touched;
        group.touched_ns += length;
      }
      if (own < length) continue;
      ++group.whole;
      group.of_whole.add(samples.values[i], static_cast<double>(length));
    }
  }
}

struct Device {
  std::vector<Group> groups;
  std::map<int64_t, uint32_t> index;
  std::vector<Edge> edges;
  uint32_t group(int64_t key) {
    const auto [found, is_new] = index.try_emplace(key, static_cast<uint32_t>(groups.size()));
    if (is_new) groups.emplace_back().key = key;
    return found->second;
  }
};

constexpr int64_t kOtherWork = std::numeric_limits<int64_t>::min();

std::map<int64_t, Device> work_of(const Timeline& timeline, const KernelGroups& groups, KernelsBy by) {
  const Devices devices(timeline);
  std::map<int64_t, Device> work;
  for (const DeviceRow& row : device_rows(timeline)) {
    const auto i = static_cast<size_t>(row.range);
    const int64_t start = timeline.ranges.start_ns[i], end = timeline.ranges.end_ns[i];
    const int32_t device = devices.of_lane(timeline.ranges.lane[i]);
    if (device == trace::kNone || end <= start) continue;
    const RangeKind kind = timeline.ranges.kind[i];
    const bool is_kernel = kind == RangeKind::kKernel || kind == RangeKind::kGraph;
    int64_t key = groups.of(row);
    if (by == KernelsBy::kName) key = is_kernel ? int64_t{timeline.ranges.name[i]} : kOtherWork;
    Device& of = work[devices.number(static_cast<size_t>(device))];
    const uint32_t group = of.group(key);
    ++of.groups[group].count;
    of.edges.push_back({start, group, 1});
    of.edges.push_back({end, group, -1});
  }
  return work;
}

std::vector<Column> columns_of(KernelsBy by, const std::vector<size_t>& figures) {
  std::vector<Column> columns = KernelGroups::columns(by);
  if (by == KernelsBy::kName) columns.push_back({"name", "kernel as the trace names it"});
  columns.push_back({"gpu", "number of the device", 0});
  columns.push_back({"count", "operations", 0});
  columns.push_back({"device_ns", "in which any of it ran", 0});
  columns.push_back(
      {"alone_share", "of that, in which nothing else ran on the device: the figures are of this part", 3});
  columns.push_back({"samples", "of the counters that the figures are means of", 0});
  columns.push_back({"filled_share", "of those samples' time, what was this row's own", 3});
  for (const size_t figure : figures) columns.push_back({words::kMetrics[figure], "time-weighted mean", 2});
  return columns;
}

void add_row(const Group& group, int64_t gpu, const Cell& name, const Samples& samples,
             const std::vector<size_t>& figures, Table& table, size_t& shared, size_t& without) {
  const bool whole = group.whole >= kWholeSamples;
  const bool enough = whole || group.own_ns >= kSharedSamples * samples.period_ns;
  shared += enough && !whole ? 1 : 0;
  without += enough ? 0 : 1;
  const Means& means = whole ? group.of_whole : group.of_touched;
  const auto share = [](int64_t part, int64_t of) { return static_cast<double>(part) / static_cast<double>(of); };
  std::vector<Cell> row{name,
                        gpu,
                        group.count,
                        group.busy_ns,
                        share(group.alone_ns, std::max<int64_t>(1, group.busy_ns)),
                        whole ? group.whole : group.touched};
  row.push_back(cell_if(enough, whole ? 1.0 : share(group.own_ns, std::max<int64_t>(1, group.touched_ns))));
  for (const size_t figure : figures)
    row.push_back(cell_if(enough && means.weight[figure] > 0, means.sum[figure] / means.weight[figure]));
  table.add_row(std::move(row));
}

void note_what_is_missing(const Timeline& timeline, Table& table) {
  const auto why = timeline.facts.find("gpu.metrics");
  table.notes.push_back(why != timeline.facts.end() && why->second.starts_with("off: ")
                            ? "GPU counters are " + why->second
                            : "no hardware counters in this trace (--gpu-metrics of `strobe run` and `strobe record`)");
}

}  // namespace

Table kernel_metrics(const Timeline& timeline, const KernelsOptions& options) {
  const std::map<int64_t, Samples> samples = samples_of(timeline);
  std::vector<size_t> figures;
  for (size_t i = 0; i < kFigures; ++i)
    if (std::any_of(samples.begin(), samples.end(), [i](const auto& one) {
          return std::any_of(one.second.values.begin(), one.second.values.end(),
                             [i](const auto& values) { return !std::isnan(values[i]); });
        }))
      figures.push_back(i);
  Table table("Hardware counters", columns_of(options.by, figures));
  if (samples.empty()) {
    note_what_is_missing(timeline, table);
    return table;
  }
  const KernelGroups naming(timeline, options.by);
  std::map<int64_t, Device> work = work_of(timeline, naming, options.by);

  struct Row {
    const Group* group;
    int64_t gpu;
    Cell name;
  };
  std::vector<Row> rows;
  std::vector<int64_t> totals;
  std::vector<std::string> names;
  size_t filtered = 0;
  for (auto& [gpu, device] : work) {
    const auto counters = samples.find(gpu);
    if (counters == samples.end()) continue;
    ascribe(sweep(std::move(device.edges), device.groups), counters->second, device.groups);
    for (const Group& group : device.groups) {
      if (group.key == kOtherWork) continue;
      Cell name = options.by == KernelsBy::kName
                      ? Cell(std::string(timeline.strings[static_cast<trace::StringId>(group.key)]))
                      : naming.cell(group.key);
      const auto* text = std::get_if<std::string>(&name);
      if (text != nullptr && !options.filter.matches(*text)) {
        ++filtered;
        continue;
      }
      totals.push_back(group.busy_ns);
      names.push_back(text == nullptr ? "" : *text);
      rows.push_back({&group, gpu, std::move(name)});
    }
  }
  size_t shared = 0, without = 0;
  for (const size_t i : most_first(totals, names, options.top))
    add_row(*rows[i].group, rows[i].gpu, rows[i].name, samples.at(rows[i].gpu), figures, table, shared, without);
  if (rows.empty() && filtered == 0) table.notes.push_back("no work of a device that has counters in this trace");
  for (const auto& [gpu, one] : samples)
    table.notes.push_back(fmt::format("GPU {}: {} samples, one each {:.3g} us, of the whole device", gpu,
                                      one.start.size(), static_cast<double>(one.period_ns) / 1e3));
  if (shared > 0)
    table.notes.push_back(count_of(shared, "row's runs are", "rows' runs are") +
                          " shorter than the sampling: means over samples that other work or idle time has a part of "
                          "(filled_share)");
  if (without > 0) table.notes.push_back(count_of(without, "row has", "rows have") + " too few samples for figures");
  if (filtered > 0) table.notes.push_back(count_of(filtered, "row is", "rows are") + " left out by the filter");
  note_losses(timeline, table);
  return table;
}

}  // namespace strobe::analyze
