#include "analyze/critical_path_rows.h"

#include <algorithm>
#include <tuple>
#include <unordered_map>

namespace strobe::analyze {

namespace {

struct Row {
  int64_t path_ns = 0;
  int64_t count = 0;
  bool is_wait = false;
};

Cell figure(const std::map<std::string, int64_t>& of, const std::string& name) {
  const auto found = of.find(name);
  Cell cell;
  if (found != of.end()) cell = found->second;
  return cell;
}

Cell lane_cell(const trace::Timeline& timeline, int32_t lane) {
  Cell cell;
  if (lane == trace::kNone) return cell;
  const trace::Lane& found = timeline.lanes[static_cast<size_t>(lane)];
  std::string text(timeline.strings[found.name]);
  if (text.empty())
    text = (found.kind == trace::Lane::Kind::kThread ? "thread " : "stream ") + std::to_string(found.tid);
  cell = text;
  return cell;
}

}  // namespace

Table path_rows(const CriticalPath& path, const NameFigures& figures) {
  Table table(path.title,
              {{"name", "What the path went through; (in brackets): waiting with nothing recorded in it", 0},
               {"path_ns", "Time on the path", 0},
               {"share", "Of the path's length", 4},
               {"count", "Pieces of the path", 0},
               {"waiting_ns", "In the window: time in which it waited for another lane", 0},
               {"slack_ns", "Least delay of it that the end would feel", 0},
               {"drag_ns", "What the window would be shorter by if it took no time", 0}});
  std::map<std::pair<std::string, bool>, Row> rows;
  std::unordered_map<const char*, Row*> known[2];  // by where the name stands: there are few, and many segments
  int64_t explained = 0;
  for (const PathSegment& segment : path.segments) {
    Row*& row = known[segment.is_wait][segment.name.data()];
    if (!row) row = &rows[{std::string(segment.name), segment.is_wait}];
    row->path_ns += segment.end_ns - segment.start_ns;
    row->count += 1;
    row->is_wait = segment.is_wait;
    if (segment.is_explained && segment.name != "(unknown)" && segment.name != "(between ranges)")
      explained += segment.end_ns - segment.start_ns;
  }
  for (const auto& [name, waiting] : figures.waiting_ns) rows.try_emplace({name, false});
  std::vector<std::pair<std::string, Row>> sorted;
  for (const auto& [key, row] : rows) sorted.emplace_back(key.first, row);
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.second.path_ns > b.second.path_ns; });
  const double length = static_cast<double>(std::max<int64_t>(1, path.length_ns));
  for (const auto& [name, row] : sorted) {
    const bool on_path = row.count > 0 && !row.is_wait;
    table.add_row({name, row.path_ns, static_cast<double>(row.path_ns) / length, row.count,
                   row.is_wait ? Cell() : figure(figures.waiting_ns, name),
                   on_path ? figure(figures.slack_ns, name) : Cell(),
                   on_path ? figure(figures.drag_ns, name) : Cell()});
  }
  if (path.length_ns > 0) table.coverage = static_cast<double>(explained) / static_cast<double>(path.length_ns);
  return table;
}

Table path_segments(const trace::Timeline& timeline, const CriticalPath& path) {
  Table table(path.title + ", piece by piece", {{"start_ns", "Since the trace's first event", 0},
                                                {"duration_ns", "", 0},
                                                {"kind", "service: the lane worked; wait: nothing on the path did", 0},
                                                {"name", "Of the range; of a wait: what for", 0},
                                                {"lane", "Thread or stream", 0}});
  for (const PathSegment& segment : path.segments)
    table.add_row({segment.start_ns, segment.end_ns - segment.start_ns,
                   std::string(segment.is_wait ? "wait" : "service"), std::string(segment.name),
                   lane_cell(timeline, segment.lane)});
  return table;
}

Table path_events(const trace::Timeline& timeline, const CriticalPath& path) {
  Table table(path.title + ", its ranges", {{"start_ns", "Since the trace's first event", 0},
                                            {"duration_ns", "Of the range", 0},
                                            {"name", "", 0},
                                            {"lane", "Thread or stream", 0},
                                            {"path_ns", "Of its time, on the path", 0}});
  std::map<int32_t, int64_t> on_path;
  for (const PathSegment& segment : path.segments)
    if (!segment.is_wait) on_path[segment.range] += segment.end_ns - segment.start_ns;
  for (const int32_t range : path.events) {
    const auto at = static_cast<size_t>(range);
    const auto time = on_path.find(range);
    table.add_row({timeline.ranges.start_ns[at], timeline.ranges.end_ns[at] - timeline.ranges.start_ns[at],
                   std::string(timeline.strings[timeline.ranges.name[at]]),
                   lane_cell(timeline, timeline.ranges.lane[at]), time == on_path.end() ? int64_t{0} : time->second});
  }
  return table;
}

}  // namespace strobe::analyze
