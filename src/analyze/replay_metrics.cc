#include "analyze/replay_metrics.h"

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "analyze/cells.h"
#include "analyze/device_work.h"
#include "analyze/kernel_groups.h"
#include "analyze/notes.h"
#include "analyze/stats.h"
#include "base/gpu_words.h"

namespace strobe::analyze {

namespace words = gpu_words;
using trace::Timeline;

namespace {

// Of a process (by order), a kernel's name and its grid.
using Key = std::tuple<size_t, std::string, std::string>;

struct Replayed {
  std::vector<size_t> columns;  // of the figures
  std::map<Key, std::vector<size_t>> rows;
  size_t processes = 0;
};

Replayed read(const Table& table) {
  Replayed found;
  constexpr size_t kBefore = 6;  // pid, device, launch, kernel, grid, block
  for (size_t i = kBefore; i < table.columns().size(); ++i) found.columns.push_back(i);
  std::map<int64_t, size_t> processes;
  for (size_t row = 0; row < table.row_count(); ++row) {
    const auto pid = static_cast<int64_t>(table.number(row, words::kReplayPid).value_or(0));
    const size_t process = processes.try_emplace(pid, processes.size()).first->second;
    const std::string name = table.text(row, words::kReplayKernel);
    if (!name.empty()) found.rows[{process, name, table.text(row, words::kReplayGrid)}].push_back(row);
  }
  found.processes = processes.size();
  return found;
}

struct Group {
  int64_t count = 0, device_ns = 0, matched = 0;
  struct Sum {
    double weighted = 0, weight = 0;
  };
  std::vector<Sum> sums;
};

}  // namespace

Result<Table> replay_metrics(const Timeline& timeline, const Timeline& replayed, const KernelsOptions& options) {
  const auto source = std::find_if(replayed.tables.begin(), replayed.tables.end(),
                                   [](const Table& table) { return table.title() == words::kReplayTitle; });
  if (source == replayed.tables.end())
    return bad_data("has no counters of replayed kernels; `strobe record --gpu-replay-metrics` makes them");
  const Replayed replay = read(*source);
  const trace::Ranges& ranges = timeline.ranges;

  // Kernels in the order of their launches.
  std::vector<DeviceRow> kernels;
  for (const DeviceRow& row : device_rows(timeline))
    if (ranges.kind[static_cast<size_t>(row.range)] == trace::RangeKind::kKernel) kernels.push_back(row);
  const auto asked = [&](const DeviceRow& row) {
    return ranges.start_ns[static_cast<size_t>(row.launch == trace::kNone ? row.range : row.launch)];
  };
  std::stable_sort(kernels.begin(), kernels.end(),
                   [&](const DeviceRow& a, const DeviceRow& b) { return asked(a) < asked(b); });

  const KernelGroups groups_of(timeline, options.by);
  const bool by_name = options.by == KernelsBy::kName;
  std::map<int64_t, Group> groups;
  std::map<Key, size_t> next;
  std::map<int32_t, size_t> processes;
  int64_t all_ns = 0, matched_ns = 0;
  for (const DeviceRow& row : kernels) {
    const auto range = static_cast<size_t>(row.range);
    const int64_t duration = ranges.end_ns[range] - ranges.start_ns[range];
    Group& group = groups[by_name ? int64_t{ranges.name[range]} : groups_of.of(row)];
    group.sums.resize(replay.columns.size());
    ++group.count;
    group.device_ns += duration;
    all_ns += duration;
    const int32_t pid = timeline.lanes[static_cast<size_t>(ranges.lane[range])].pid;
    const size_t process = processes.try_emplace(pid, processes.size()).first->second;
    std::string grid;
    if (row.op != trace::kNone) {
      const auto& sizes = timeline.device_ops[static_cast<size_t>(row.op)].grid;
      grid = std::to_string(sizes[0]) + "," + std::to_string(sizes[1]) + "," + std::to_string(sizes[2]);
    }
    const Key key{process, std::string(timeline.strings[ranges.name[range]]), grid};
    const size_t turn = next[key]++;
    const auto rows = replay.rows.find(key);
    if (rows == replay.rows.end() || turn >= rows->second.size()) continue;
    ++group.matched;
    matched_ns += duration;
    for (size_t i = 0; i < replay.columns.size(); ++i) {
      const std::string& name = source->columns()[replay.columns[i]].name;
      const auto value = source->number(rows->second[turn], name);
      if (!value) continue;
      const double weight = name.ends_with("_percent") ? static_cast<double>(duration) : 1;
      group.sums[i].weighted += *value * weight, group.sums[i].weight += weight;
    }
  }

  std::vector<Column> columns = by_name ? std::vector<Column>{{"name", "kernel"}} : KernelGroups::columns(options.by);
  columns.push_back({"count", "kernels in the timeline", 0});
  columns.push_back({"device_ns", "their time in the timeline, not in the replay", 0});
  columns.push_back({"matched", "of which the replay has counters: the n-th of its name and grid", 0});
  for (const size_t column : replay.columns) columns.push_back(source->columns()[column]);
  Table table("Replayed counters", columns);
  std::vector<int64_t> keys, totals;
  std::vector<std::string> names;
  for (const auto& [key, group] : groups) {
    keys.push_back(key);
    totals.push_back(group.device_ns);
    const Cell cell =
        by_name ? Cell(std::string(timeline.strings[static_cast<trace::StringId>(key)])) : groups_of.cell(key);
    const auto* text = std::get_if<std::string>(&cell);
    names.push_back(text == nullptr ? "" : *text);
  }
  for (const size_t i : most_first(totals, names, 0)) {
    if (!options.filter.matches(names[i])) continue;
    if (options.top > 0 && table.row_count() == options.top) break;
    const Group& group = groups.at(keys[i]);
    std::vector<Cell> row{by_name ? Cell(names[i]) : groups_of.cell(keys[i]), group.count, group.device_ns,
                          group.matched};
    for (const Group::Sum& sum : group.sums)
      row.push_back(cell_if(sum.weight > 0, sum.weighted / std::max(sum.weight, 1e-300)));
    table.add_row(std::move(row));
  }
  if (all_ns > 0) table.coverage = static_cast<double>(matched_ns) / static_cast<double>(all_ns);
  size_t left = 0;
  for (const auto& [key, rows] : replay.rows) left += rows.size() - std::min(rows.size(), next[key]);
  if (left > 0)
    table.notes.push_back(count_of(left, "kernel", "kernels") + " of the replay did not run in the timeline");
  if (replay.processes > 1)
    table.notes.push_back("several processes: they are taken in the order of their first kernels");
  for (const std::string& note : source->notes) table.notes.push_back("replay: " + note);
  return table;
}

}  // namespace strobe::analyze
