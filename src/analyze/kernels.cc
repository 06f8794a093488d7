#include "analyze/kernels.h"

#include <algorithm>
#include <unordered_map>

#include "analyze/cells.h"
#include "analyze/device_work.h"
#include "analyze/kernel_groups.h"
#include "analyze/notes.h"
#include "analyze/sample.h"
#include "analyze/stats.h"

namespace strobe::analyze {

using trace::RangeKind;
using trace::Timeline;

namespace {

// Sums over the kernels of a group whose launch is known.
struct Launches {
  int64_t count = 0;
  double latency_ns = 0, call_ns = 0, stream_wait_ns = 0, queue_delay_ns = 0;
};

struct Key {
  int64_t context;
  trace::StringId name;
  bool operator==(const Key&) const = default;
};
struct KeyHash {
  size_t operator()(const Key& key) const {
    uint64_t mixed = (static_cast<uint64_t>(key.context) + 1) * 0x9E3779B97F4A7C15ULL ^ key.name;
    mixed *= 0xD6E8FEB86659FD93ULL;
    return mixed ^ mixed >> 32;
  }
};

void add_launch(const Timeline& timeline, const DeviceRow& row, Launches& launches) {
  const trace::Ranges& ranges = timeline.ranges;
  const int64_t start = ranges.start_ns[static_cast<size_t>(row.range)];
  const int64_t asked = ranges.start_ns[static_cast<size_t>(row.launch)];
  const int64_t returned = std::clamp(ranges.end_ns[static_cast<size_t>(row.launch)], asked, std::max(asked, start));
  const int64_t stream_free = std::clamp(row.previous_ns, returned, std::max(returned, start));
  ++launches.count;
  launches.latency_ns += static_cast<double>(std::max<int64_t>(0, start - asked));
  launches.call_ns += static_cast<double>(returned - asked);
  launches.stream_wait_ns += static_cast<double>(stream_free - returned);
  launches.queue_delay_ns += static_cast<double>(std::max<int64_t>(0, start - stream_free));
}

std::vector<Column> columns_of(KernelsBy by, const char* name_help) {
  std::vector<Column> columns = KernelGroups::columns(by);
  columns.push_back({"name", name_help});
  for (Column& column : sample_columns()) columns.push_back(std::move(column));
  columns.push_back({"share", "of the time of all kernels"});
  columns.push_back(
      {"launched", "how many have their launch call in the trace; the next columns are means over them", 0});
  columns.push_back({"launch_latency_ns", "start of the kernel - start of its launch call", 0});
  columns.push_back({"call_ns", "of that, in which the call ran", 0});
  columns.push_back({"stream_wait_ns", "of that, in which the call was over and earlier work of the stream ran", 0});
  columns.push_back({"queue_delay_ns", "of that, in which neither held it", 0});
  return columns;
}

Table device_kernels(const Timeline& timeline, const KernelsOptions& options, const std::vector<DeviceRow>& rows) {
  Table table("Kernels", columns_of(options.by, "kernel as the trace names it"));
  const KernelGroups groups_of(timeline, options.by);
  std::unordered_map<Key, uint32_t, KeyHash> groups;
  std::vector<Key> keys;
  std::vector<uint32_t> group_of;
  std::vector<int64_t> durations;
  std::vector<Launches> launches;
  size_t without_launch = 0, early = 0, unowned = 0;
  for (const DeviceRow& row : rows) {
    const auto i = static_cast<size_t>(row.range);
    const RangeKind kind = timeline.ranges.kind[i];
    if (kind != RangeKind::kKernel && kind != RangeKind::kGraph) continue;
    const Key key{groups_of.of(row), timeline.ranges.name[i]};
    unowned += key.context == trace::kNone ? 1 : 0;
    const auto [found, is_new] = groups.try_emplace(key, static_cast<uint32_t>(keys.size()));
    if (is_new) {
      keys.push_back(key);
      launches.emplace_back();
    }
    group_of.push_back(found->second);
    durations.push_back(timeline.ranges.end_ns[i] - timeline.ranges.start_ns[i]);
    if (row.launch == trace::kNone) {
      ++without_launch;
      continue;
    }
    add_launch(timeline, row, launches[found->second]);
    early += timeline.ranges.start_ns[i] < timeline.ranges.start_ns[static_cast<size_t>(row.launch)] ? 1 : 0;
  }
  const std::vector<Sample> samples = summarize_groups(group_of, durations, keys.size());
  std::vector<int64_t> totals;
  std::vector<std::string> names;
  double sum = 0;
  for (size_t i = 0; i < keys.size(); ++i) {
    totals.push_back(samples[i].total_ns);
    names.emplace_back(timeline.strings[keys[i].name]);
    sum += static_cast<double>(totals.back());
  }
  size_t filtered = 0, shown = 0;
  for (const size_t i : most_first(totals, names, 0)) {
    if (!options.filter.matches(names[i])) {
      ++filtered;
      continue;
    }
    if (options.top > 0 && shown == options.top) break;
    ++shown;
    std::vector<Cell> row;
    if (options.by != KernelsBy::kName) row.push_back(groups_of.cell(keys[i].context));
    row.emplace_back(names[i]);
    add_sample(samples[i], row);
    row.push_back(cell_if(sum > 0, static_cast<double>(totals[i]) / sum));
    const Launches& launch = launches[i];
    row.emplace_back(launch.count);
    for (const double total : {launch.latency_ns, launch.call_ns, launch.stream_wait_ns, launch.queue_delay_ns})
      row.push_back(cell_if(launch.count > 0, total / static_cast<double>(std::max<int64_t>(1, launch.count))));
    table.add_row(std::move(row));
  }
  if (!durations.empty())
    table.coverage = 1 - static_cast<double>(without_launch) / static_cast<double>(durations.size());
  if (without_launch > 0)
    table.notes.push_back(count_of(without_launch, "kernel has", "kernels have") +
                          " no launch call in the trace (coverage: those that have one)");
  if (early > 0)
    table.notes.push_back(count_of(early, "kernel starts", "kernels start") +
                          " before its launch call: the clocks of host and device differ");
  if (filtered > 0) table.notes.push_back(count_of(filtered, "row is", "rows are") + " left out by the filter");
  WorkOwners::note_unowned(owners_of(options.by), unowned, table);
  return table;
}

// What an engine measured of its own kernels, in profiled runs.
Table engine_kernels(const Timeline& timeline, const KernelsOptions& options) {
  Table table("Kernels", columns_of(options.by, "kernel as the engine names it"));
  std::vector<Sample> samples;
  std::vector<std::string> names;
  std::vector<int64_t> totals;
  double sum = 0;
  for (const trace::NetworkKernel& kernel : timeline.kernels) {
    std::vector<int64_t> runs = kernel.duration_ns;
    samples.push_back(summarize(runs));
    totals.push_back(samples.back().total_ns);
    names.emplace_back(timeline.strings[kernel.name]);
    sum += static_cast<double>(totals.back());
  }
  for (const size_t i : most_first(totals, names, 0)) {
    if (!options.filter.matches(names[i])) continue;
    if (options.top > 0 && table.row_count() == options.top) break;
    std::vector<Cell> row;
    if (options.by == KernelsBy::kLayer) {
      std::string layers;
      for (const int32_t layer : timeline.kernels[i].layers)
        layers += (layers.empty() ? "" : "+") +
                  std::string(timeline.strings[timeline.layers[static_cast<size_t>(layer)].name]);
      row.push_back(cell(layers));
    } else if (options.by != KernelsBy::kName) {
      row.emplace_back();
    }
    row.emplace_back(names[i]);
    if (samples[i].count > 0) {
      add_sample(samples[i], row);
    } else {
      row.emplace_back(int64_t{0});
      row.resize(row.size() + sample_columns().size() - 1);
    }
    row.push_back(cell_if(sum > 0, static_cast<double>(totals[i]) / sum));
    row.resize(row.size() + 5);
    table.add_row(std::move(row));
  }
  table.notes.push_back("no device in this trace: the kernels are those that the engine timed in its profiled runs");
  return table;
}

}  // namespace

Table kernels(const Timeline& timeline, const KernelsOptions& options) {
  const std::vector<DeviceRow> rows = device_rows(timeline);
  Table table;
  if (rows.empty() && !timeline.kernels.empty()) {
    table = engine_kernels(timeline, options);
  } else if (rows.empty() && !timeline.tables.empty()) {
    table = timeline.tables.front();
    table.notes.push_back("the trace was made from a log that holds this table and no single kernels");
  } else {
    table = device_kernels(timeline, options, rows);
    if (table.row_count() == 0 && !table.coverage) table.notes.push_back("no kernel in this trace");
  }
  note_losses(timeline, table);
  return table;
}

}  // namespace strobe::analyze
