#include "analyze/launches.h"

#include <algorithm>
#include <map>
#include <unordered_map>

#include "analyze/cells.h"
#include "analyze/device_work.h"
#include "analyze/idle_hta.h"
#include "analyze/notes.h"
#include "analyze/stats.h"

namespace strobe::analyze {

using trace::RangeKind;
using trace::Timeline;

namespace {

constexpr double kDeviceBound = 0.9;
constexpr double kHostBound = 0.5;

struct Calls {
  int64_t calls = 0, operations = 0, call_ns = 0, device_ns = 0, delay_ns = 0, longest_delay_ns = 0, shorter = 0;
  int32_t last = trace::kNone;
};

// One operation and its call.
struct Pair {
  int32_t launch;
  int64_t call_start, call_end, start, end;
  int32_t owner = trace::kNone;
};

std::vector<Pair> pairs_of(const Timeline& timeline, IdleRules rules, const WorkOwners& owners,
                           size_t& without_launch) {
  const trace::Ranges& ranges = timeline.ranges;
  std::vector<Pair> pairs;
  if (rules == IdleRules::kHta) {
    const HtaView view(timeline);
    for (const HtaView::Op& op : view.ops()) {
      if (op.is_sync) continue;
      if (op.launch == trace::kNone)
        ++without_launch;
      else
        pairs.push_back({op.launch, view.start_ns(op.launch), view.end_ns(op.launch), view.start_ns(op.range),
                         view.end_ns(op.range)});
    }
    return pairs;
  }
  for (const DeviceRow& row : device_rows(timeline)) {
    if (row.launch == trace::kNone) {
      ++without_launch;
      continue;
    }
    const auto op = static_cast<size_t>(row.range), call = static_cast<size_t>(row.launch);
    pairs.push_back({row.launch, ranges.start_ns[call], ranges.end_ns[call], ranges.start_ns[op], ranges.end_ns[op],
                     owners.of(row)});
  }
  // Operations of one call one after the other, so that a call is counted once.
  std::stable_sort(pairs.begin(), pairs.end(), [](const Pair& a, const Pair& b) { return a.launch < b.launch; });
  return pairs;
}

double mean_of(int64_t total, int64_t count) {
  return static_cast<double>(total) / static_cast<double>(std::max<int64_t>(1, count));
}

// A stretch in which the devices of a process do nothing.
struct Gap {
  int64_t start, end;
  int64_t host_end;  // until then the host had not finished asking for the operation that ends the gap
};

// What the devices of a process did.
struct Work {
  Intervals busy;
  std::vector<Gap> gaps;  // one more than busy intervals: before the first .. after the last
  std::vector<int64_t> starts;
};

std::map<int32_t, Work> work_of_processes(const Timeline& timeline) {
  const trace::Ranges& ranges = timeline.ranges;
  std::map<int32_t, Work> works;
  for (const DeviceRow& row : device_rows(timeline)) {
    const auto i = static_cast<size_t>(row.range);
    Work& work = works[timeline.lanes[static_cast<size_t>(ranges.lane[i])].pid];
    const int64_t start = ranges.start_ns[i], end = ranges.end_ns[i];
    work.starts.push_back(start);
    if (!work.busy.empty() && start <= work.busy.back().end) {
      work.busy.back().end = std::max(work.busy.back().end, end);
      continue;
    }
    const int64_t from = work.busy.empty() ? INT64_MIN : work.busy.back().end;
    int64_t host_end = from;
    if (row.launch != trace::kNone && ranges.start_ns[static_cast<size_t>(row.launch)] > from)
      host_end = std::min(start, ranges.end_ns[static_cast<size_t>(row.launch)]);
    work.gaps.push_back({from, start, host_end});
    work.busy.push_back({start, end});
  }
  // Nothing was asked for after the last one.
  for (auto& [pid, work] : works) work.gaps.push_back({work.busy.back().end, INT64_MAX, INT64_MAX});
  return works;
}

struct Span {
  trace::StringId name;
  int64_t frame;  // where it has no name
  int32_t pid;
  int64_t start, end;
};

std::vector<Span> spans_by_name(const Timeline& timeline, const NameFilter& filter) {
  const trace::Ranges& ranges = timeline.ranges;
  std::vector<int8_t> is_meant(timeline.strings.size(), -1);
  std::vector<Span> spans;
  for (size_t i = 0; i < ranges.size(); ++i) {
    if (ranges.kind[i] != RangeKind::kAnnotation && ranges.kind[i] != RangeKind::kOperator) continue;
    const trace::Lane& lane = timeline.lanes[static_cast<size_t>(ranges.lane[i])];
    if (lane.kind != trace::Lane::Kind::kThread || ranges.open[i]) continue;
    const std::string_view name = timeline.strings[ranges.name[i]];
    int8_t& meant = is_meant[ranges.name[i]];
    if (meant < 0) meant = filter.is_set() ? filter.matches(name) : name.starts_with("ProfilerStep#");
    if (meant != 0) spans.push_back({ranges.name[i], trace::kNoFrame, lane.pid, ranges.start_ns[i], ranges.end_ns[i]});
  }
  return spans;
}

// A frame from its first to its last range, those of devices among them.
std::vector<Span> spans_by_frame(const Timeline& timeline) {
  const trace::Ranges& ranges = timeline.ranges;
  std::map<std::pair<int32_t, int64_t>, Interval> frames;
  for (size_t i = 0; i < ranges.size(); ++i) {
    if (ranges.frame[i] == trace::kNoFrame || ranges.open[i]) continue;
    const int32_t pid = timeline.lanes[static_cast<size_t>(ranges.lane[i])].pid;
    const auto [found, is_new] =
        frames.try_emplace({pid, ranges.frame[i]}, Interval{ranges.start_ns[i], ranges.end_ns[i]});
    if (!is_new) found->second.end = std::max(found->second.end, ranges.end_ns[i]);
  }
  std::vector<Span> spans;
  for (const auto& [key, interval] : frames) spans.push_back({0, key.second, key.first, interval.start, interval.end});
  std::stable_sort(spans.begin(), spans.end(), [](const Span& a, const Span& b) { return a.start < b.start; });
  return spans;
}

}  // namespace

Table launches(const Timeline& timeline, IdleRules rules, WorkBy by) {
  std::vector<Column> columns{{"call", "call of the device's runtime or driver"},
                              {"calls", "how many gave work to a device", 0},
                              {"operations", "kernels, copies and sets that they asked for", 0},
                              {"call_total_ns", "time in the calls", 0},
                              {"call_mean_ns", "mean", 0},
                              {"device_total_ns", "time of the operations", 0},
                              {"delay_total_ns", "sum over operations of start - end of the call, 0 where negative", 0},
                              {"delay_mean_ns", "mean", 0},
                              {"delay_max_ns", "largest", 0},
                              {"short_share", "operations that took less time than their call"}};
  const bool owned = by != WorkBy::kNobody;
  if (owned) columns.insert(columns.begin(), WorkOwners::column(by));
  Table table("Launches", std::move(columns));
  const WorkOwners owners(timeline, by);
  size_t without_launch = 0;
  const std::vector<Pair> pairs = pairs_of(timeline, rules, owners, without_launch);
  std::map<std::pair<int32_t, trace::StringId>, Calls> by_name;  // by owner and name
  for (const Pair& pair : pairs) {
    Calls& calls = by_name[{pair.owner, timeline.ranges.name[static_cast<size_t>(pair.launch)]}];
    const int64_t delay = std::max<int64_t>(0, pair.start - pair.call_end);
    if (rules == IdleRules::kHta || calls.last != pair.launch) {
      ++calls.calls;
      calls.call_ns += pair.call_end - pair.call_start;
      calls.last = pair.launch;
    }
    ++calls.operations;
    calls.device_ns += pair.end - pair.start;
    calls.delay_ns += delay;
    calls.longest_delay_ns = std::max(calls.longest_delay_ns, delay);
    calls.shorter += pair.end - pair.start < pair.call_end - pair.call_start ? 1 : 0;
  }
  std::vector<int64_t> delays;
  std::vector<std::string> names;
  std::vector<const Calls*> rows;
  std::vector<int32_t> owner_of;
  for (const auto& [key, calls] : by_name) {
    delays.push_back(calls.delay_ns);
    names.emplace_back(timeline.strings[key.second]);
    rows.push_back(&calls);
    owner_of.push_back(key.first);
  }
  for (const size_t i : most_first(delays, names, 0)) {
    const Calls& calls = *rows[i];
    std::vector<Cell> row;
    if (owned) row.push_back(owners.cell(owner_of[i]));
    for (Cell& cell :
         std::vector<Cell>{names[i], calls.calls, calls.operations, calls.call_ns, mean_of(calls.call_ns, calls.calls),
                           calls.device_ns, calls.delay_ns, mean_of(calls.delay_ns, calls.operations),
                           calls.longest_delay_ns, mean_of(calls.shorter, calls.operations)})
      row.push_back(std::move(cell));
    table.add_row(std::move(row));
  }
  if (!pairs.empty())
    table.coverage = static_cast<double>(pairs.size()) / static_cast<double>(pairs.size() + without_launch);
  WorkOwners::note_unowned(
      by,
      static_cast<uint64_t>(
          std::count_if(pairs.begin(), pairs.end(), [](const Pair& pair) { return pair.owner == trace::kNone; })),
      table);
  if (pairs.empty()) table.notes.emplace_back("no launch call with its operation in this trace");
  if (without_launch > 0)
    table.notes.push_back(count_of(without_launch, "operation has", "operations have") +
                          " no launch call in the trace");
  note_losses(timeline, table);
  return table;
}

Table frame_bound(const Timeline& timeline, const FrameBoundOptions& options) {
  Table table("Frames: host or device",
              {{"frame", "range that is the frame, or the frame's number", 0},
               {"start_ns", "when it began", 0},
               {"duration_ns", "how long it took", 0},
               {"operations", "of the process's devices, begun in it", 0},
               {"device_busy_ns", "at least one of them ran", 0},
               {"idle_ns", "none ran", 0},
               {"idle_share", "of the frame"},
               {"host_ns", "of idle_ns: the host had not yet asked for the next operation", 0},
               {"host_share", "of the frame"},
               {"verdict", "what holds the frame back"}});
  std::vector<Span> spans = spans_by_name(timeline, options.frames);
  if (spans.empty() && !options.frames.is_set()) spans = spans_by_frame(timeline);
  const std::map<int32_t, Work> works = work_of_processes(timeline);
  size_t without_device = 0;
  for (const Span& span : spans) {
    const auto found = works.find(span.pid);
    if (found == works.end()) {
      ++without_device;
      continue;
    }
    const Work& work = found->second;
    const int64_t duration = span.end - span.start, busy = covered(work.busy, span.start, span.end);
    int64_t host = 0;
    auto gap =
        std::partition_point(work.gaps.begin(), work.gaps.end(), [&](const Gap& g) { return g.end <= span.start; });
    for (; gap != work.gaps.end() && gap->start < span.end; ++gap) {
      const int64_t from = std::max(gap->start, span.start), to = std::min(gap->host_end, span.end);
      if (to > from) host += to - from;
    }
    const auto first = std::lower_bound(work.starts.begin(), work.starts.end(), span.start);
    const int64_t operations = std::lower_bound(first, work.starts.end(), span.end) - first;
    const int64_t idle = duration - busy;
    const auto share = [&](int64_t part) { return mean_of(part, duration); };
    const char* verdict = share(busy) >= kDeviceBound                                           ? "device-bound"
                          : static_cast<double>(host) >= kHostBound * static_cast<double>(idle) ? "host-bound"
                                                                                                : "waits";
    Cell frame = span.frame;
    if (span.frame == trace::kNoFrame) frame = std::string(timeline.strings[span.name]);
    table.add_row({std::move(frame), span.start, duration, operations, busy, idle, share(idle), host, share(host),
                   std::string(verdict)});
  }
  if (spans.empty())
    table.notes.emplace_back(options.frames.is_set() ? "no range has such a name"
                                                     : "no ProfilerStep and no frame in this trace: name the ranges "
                                                       "that are frames");
  if (without_device > 0)
    table.notes.push_back(count_of(without_device, "frame is", "frames are") +
                          " left out: no device operation of its process in this trace");
  note_losses(timeline, table);
  return table;
}

}  // namespace strobe::analyze
