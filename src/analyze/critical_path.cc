#include "analyze/critical_path.h"

#include <algorithm>
#include <limits>
#include <set>

#include "analyze/critical_path_rows.h"
#include "analyze/critical_path_tenants.h"
#include "analyze/passes.h"
#include "analyze/tenant_trace.h"
#include "base/suggest.h"

namespace strobe::analyze {

using trace::kNone;
using trace::Timeline;

std::vector<int32_t> ranges_named(const Timeline& timeline, const std::string& name) {
  const trace::Ranges& ranges = timeline.ranges;
  std::vector<uint8_t> matches(timeline.strings.size(), 0);
  const int64_t exact = timeline.strings.find(name);
  const auto is_used = [&](int64_t id) {
    return std::any_of(ranges.name.begin(), ranges.name.end(), [id](trace::StringId used) { return used == id; });
  };
  if (exact != kNone && is_used(exact)) {
    matches[static_cast<size_t>(exact)] = 1;
  } else {
    for (trace::StringId id = 0; id < timeline.strings.size(); ++id)
      matches[id] = timeline.strings[id].find(name) != std::string_view::npos ? 1 : 0;
  }
  std::vector<int32_t> found, of_devices;
  for (size_t i = 0; i < ranges.size(); ++i) {
    if (!matches[ranges.name[i]]) continue;
    const bool of_host = timeline.lanes[static_cast<size_t>(ranges.lane[i])].kind == trace::Lane::Kind::kThread;
    (of_host ? found : of_devices).push_back(static_cast<int32_t>(i));
  }
  found.insert(found.end(), of_devices.begin(), of_devices.end());
  return found;
}

namespace {

Error no_such_range(const Timeline& timeline, const std::string& name) {
  std::set<std::string> names;
  constexpr size_t kMost = 2000;
  for (size_t i = 0; i < timeline.ranges.size() && names.size() < kMost; ++i) {
    const std::string_view known = timeline.strings[timeline.ranges.name[i]];
    // "ProfilerStep#12": what is before the number is what one asks for.
    if (timeline.ranges.kind[i] == trace::RangeKind::kAnnotation) names.emplace(known.substr(0, known.find('#')));
  }
  std::string hint = suggest(name, {names.begin(), names.end()});
  constexpr size_t kLongest = 200;
  if (hint.size() > kLongest) hint = hint.substr(0, hint.find_last_of(',', kLongest)) + ", ...";
  return not_found("no range '" + name + "' in the trace" + (names.empty() ? "" : "; " + hint));
}

struct Window {
  int64_t start_ns = 0, end_ns = 0;
  int32_t last = kNone;  // operation
  std::string title;
};

const char* name_of_wait(const std::optional<Edge>& edge) {
  if (!edge) return "(unknown)";
  switch (edge->type) {
    case EdgeType::kThread:
      return "(between ranges)";
    case EdgeType::kLaunch:
      return "(launch)";
    case EdgeType::kStream:
      return "(stream gap)";
    case EdgeType::kEvent:
      return "(event)";
    case EdgeType::kSync:
      return "(return from wait)";
    case EdgeType::kHandOver:
      return "(hand-over)";
    case EdgeType::kBackPressure:
      return "(room in queue)";
  }
  return "(unknown)";
}

// From the last operation to the predecessor that ended last, until the window's start.
std::vector<PathSegment> walk_back(const Timeline& timeline, const DependencyGraph& graph, const Window& window) {
  std::vector<PathSegment> segments;
  const auto emit = [&segments](const PathSegment& segment) {
    if (segment.start_ns < segment.end_ns) segments.push_back(segment);
  };
  int64_t at = window.end_ns;
  int32_t operation = window.last;
  std::optional<Edge> after;  // the edge that led to it
  // Beside recorded operations and calls, the time that an annotation has to itself is time of which nothing is known.
  const auto& kinds = timeline.ranges.kind;
  const bool has_calls = std::any_of(kinds.begin(), kinds.end(), [](trace::RangeKind kind) {
    return kind == trace::RangeKind::kOperator || kind == trace::RangeKind::kApi;
  });
  while (operation != kNone && at > window.start_ns) {
    const Operation& self = graph.operations()[static_cast<size_t>(operation)];
    const int64_t end = std::clamp(self.end_ns, window.start_ns, at);
    emit({end, at, true, segments.empty() ? kNone : segments.back().range,
          segments.empty() ? kNone : segments.back().lane, segments.empty() ? kNone : segments.back().operation,
          name_of_wait(after)});
    const int64_t start = std::clamp(self.start_ns, window.start_ns, end);
    const std::string_view name = timeline.strings[timeline.ranges.name[static_cast<size_t>(self.range)]];
    PathSegment segment{start, end, false, self.range, self.lane, operation, name};
    segment.is_explained = !has_calls || kinds[static_cast<size_t>(self.range)] != trace::RangeKind::kAnnotation;
    emit(segment);
    at = start;
    after = graph.latest(operation);
    operation = after ? after->from : kNone;
  }
  if (at > window.start_ns) emit({window.start_ns, at, true, kNone, kNone, kNone, "(unknown)"});
  std::reverse(segments.begin(), segments.end());
  return segments;
}

// The lane whose last operation in the window is where the path ends; kNone: whichever ended last.
struct Choice {
  std::optional<TimeSpan> window;  // nothing: the whole trace
  int32_t lane = kNone;
  std::string title;
};

Result<Choice> choice_of_frame(const Timeline& timeline, const PipelineRun& run, const Frame& frame) {
  Choice chosen{TimeSpan{frame.start_ns, frame.end_ns}, kNone, "frame " + std::to_string(frame.id)};
  const int64_t name = timeline.strings.find(run.stages.back());
  for (size_t i = 0; i < timeline.ranges.size(); ++i)
    if (timeline.ranges.name[i] == name && timeline.ranges.end_ns[i] == frame.end_ns) {
      chosen.lane = timeline.ranges.lane[i];
      return chosen;
    }
  return internal_error("the last stage of frame " + std::to_string(frame.id) + " is not in the trace");
}

Result<Choice> choice_of(const Timeline& timeline, const WindowChoice& choice) {
  if (choice.range.empty()) return Choice{std::nullopt, kNone, "the whole trace"};
  STROBE_ASSIGN(const int32_t range, choose_instance(timeline, ranges_named(timeline, choice.range), choice));
  const auto at = static_cast<size_t>(range);
  return Choice{
      TimeSpan{timeline.ranges.start_ns[at], timeline.ranges.end_ns[at]}, timeline.ranges.lane[at],
      std::string(timeline.strings[timeline.ranges.name[at]]) + ", instance " + std::to_string(choice.instance)};
}

Result<Window> window_of(const DependencyGraph& graph, const Choice& chosen, const WindowChoice& choice) {
  Window window{0, 0, kNone, chosen.title};
  if (!chosen.window) {
    if (graph.operations().empty()) return not_found("the trace holds no operation: there is no path");
    window.start_ns = graph.operations().front().start_ns;
    window.last = graph.last_before(window.start_ns, std::numeric_limits<int64_t>::max());
    window.end_ns = graph.operations()[static_cast<size_t>(window.last)].end_ns;
    return window;
  }
  window.start_ns = chosen.window->from_ns;
  window.end_ns = chosen.window->to_ns;
  window.last = graph.last_of_lane(chosen.lane, window.start_ns, window.end_ns);
  if (window.last == kNone && !choice.frame) window.last = graph.last_before(window.start_ns, window.end_ns);
  if (window.last != kNone) return window;
  if (choice.frame)
    return internal_error("the last stage of frame " + std::to_string(*choice.frame) + " has no operation");
  return not_found("range '" + choice.range + "' holds no operation: there is no path through it");
}

Result<const Frame*> find_frame(const PipelineRun& run, int64_t id) {
  if (run.frames.empty())
    return not_found("the trace has no frames of a pipeline's run; give --range instead of --frame");
  const auto found = std::lower_bound(run.frames.begin(), run.frames.end(), id,
                                      [](const Frame& frame, int64_t wanted) { return frame.id < wanted; });
  if (found == run.frames.end() || found->id != id)
    return not_found("no frame " + std::to_string(id) + " in the run; its frames are " +
                     std::to_string(run.frames.front().id) + " to " + std::to_string(run.frames.back().id));
  if (!found->finished)
    return not_found("frame " + std::to_string(id) + " did not finish: it was dropped or the run ended before");
  return &*found;
}

// The frame's own account: its passes through the stages and the queues between them.
CriticalPath account_of_frame(const PipelineRun& run, const Frame& frame) {
  CriticalPath path;
  path.title = "Critical path of frame " + std::to_string(frame.id);
  int64_t at = frame.start_ns;
  for (size_t i = frame.first_pass; i < frame.first_pass + frame.pass_count; ++i) {
    const Pass& pass = run.passes[i];
    const std::string& stage = run.stages[static_cast<size_t>(pass.stage)];
    if (pass.end_ns <= at || at >= frame.end_ns) continue;
    if (pass.start_ns > at)
      path.segments.push_back(
          {at, pass.start_ns, true, kNone, kNone, kNone, *path.names.insert("queue:" + stage).first});
    const int64_t start = std::max(at, pass.start_ns), end = std::min(pass.end_ns, frame.end_ns);
    path.segments.push_back({start, end, false, kNone, kNone, kNone, *path.names.insert(stage).first});
    at = end;
  }
  path.length_ns = frame.end_ns - frame.start_ns;
  path.nodes = frame.pass_count;
  path.edges = frame.pass_count - 1;
  path.by_type = {{"hand-over", path.edges}};
  path.rows = path_rows(path, {});
  return path;
}

// Operations that lie in the window, as a span of numbers that holds them all.
std::pair<int32_t, int32_t> span_of(const DependencyGraph& graph, const Window& window) {
  const auto operations = graph.operations();
  const auto first = std::partition_point(operations.begin(), operations.end(),
                                          [&](const Operation& o) { return o.start_ns < window.start_ns; });
  const auto behind =
      std::partition_point(first, operations.end(), [&](const Operation& o) { return o.start_ns <= window.end_ns; });
  return {static_cast<int32_t>(first - operations.begin()), static_cast<int32_t>(behind - operations.begin())};
}

void count_edges(const DependencyGraph& graph, const Window& window, CriticalPath& path) {
  const auto [first, behind] = span_of(graph, window);
  size_t counts[kEdgeTypes] = {};
  for (int32_t i = first; i < behind; ++i) {
    if (graph.operations()[static_cast<size_t>(i)].end_ns > window.end_ns) continue;
    ++path.nodes;
    for (const Edge& edge : graph.into(i)) counts[static_cast<size_t>(edge.type)] += edge.from >= first ? 1 : 0;
  }
  for (size_t type = 0; type < kEdgeTypes; ++type) {
    if (counts[type] == 0) continue;
    path.by_type.emplace_back(name_of(static_cast<EdgeType>(type)), counts[type]);
    path.edges += counts[type];
  }
}

// Per name: waiting inside the window, least slack of its operations on the path, drag.
NameFigures figures_of(const Timeline& timeline, const DependencyGraph& graph, const Window& window,
                       const CriticalPath& path) {
  NameFigures figures;
  const auto [first, behind] = span_of(graph, window);
  const auto operations = graph.operations();
  const auto name_of_range = [&](int32_t range) { return timeline.ranges.name[static_cast<size_t>(range)]; };
  std::vector<int64_t> waiting(timeline.strings.size(), 0), on_path(timeline.strings.size(), 0);
  for (int32_t i = first; i < behind; ++i) {
    const Operation& operation = operations[static_cast<size_t>(i)];
    const int64_t time = graph.waiting_ns(i);
    if (time > 0 && operation.end_ns <= window.end_ns)
      waiting[name_of_range(operation.waited_in != kNone ? operation.waited_in : operation.range)] += time;
  }
  const LargeVector<int64_t> latest = latest_ends(graph, first, window.last);
  constexpr int64_t kNotOnPath = std::numeric_limits<int64_t>::max();
  std::vector<int64_t> least_slack(timeline.strings.size(), kNotOnPath);
  for (const PathSegment& segment : path.segments) {
    if (segment.is_wait) continue;
    const auto at = static_cast<size_t>(segment.operation);
    const trace::StringId name = name_of_range(segment.range);
    on_path[name] += segment.end_ns - segment.start_ns;
    least_slack[name] = std::min(least_slack[name], latest[at] - operations[at].end_ns);
  }
  std::vector<trace::StringId> by_time;
  for (trace::StringId id = 0; id < on_path.size(); ++id) {
    if (waiting[id] > 0) figures.waiting_ns.emplace(timeline.strings[id], waiting[id]);
    if (least_slack[id] != kNotOnPath) figures.slack_ns.emplace(timeline.strings[id], least_slack[id]);
    if (on_path[id] > 0) by_time.push_back(id);
  }
  std::stable_sort(by_time.begin(), by_time.end(), [&](auto a, auto b) { return on_path[a] > on_path[b]; });
  if (by_time.size() > kReplaysAtOnce) by_time.resize(kReplaysAtOnce);
  if (window.last < first) return figures;
  std::vector<int32_t> number_of_name(timeline.strings.size(), kNone);
  for (size_t i = 0; i < by_time.size(); ++i) number_of_name[by_time[i]] = static_cast<int32_t>(i);
  const std::vector<int64_t> ends =
      ends_without(graph, first, window.last, by_time.size(), number_of_name, timeline.ranges.name);
  for (size_t i = 0; i < by_time.size(); ++i)
    figures.drag_ns.emplace(timeline.strings[by_time[i]],
                            operations[static_cast<size_t>(window.last)].end_ns - ends[i]);
  return figures;
}

}  // namespace

Result<int32_t> choose_instance(const Timeline& timeline, const std::vector<int32_t>& candidates,
                                const WindowChoice& choice) {
  if (candidates.empty()) return no_such_range(timeline, choice.range);
  if (choice.instance < 0 || static_cast<size_t>(choice.instance) >= candidates.size())
    return not_found("range '" + choice.range + "' has " + std::to_string(candidates.size()) +
                     (candidates.size() == 1 ? " instance" : " instances") + ", counted from 0; there is no instance " +
                     std::to_string(choice.instance));
  return candidates[static_cast<size_t>(choice.instance)];
}

Result<CriticalPath> critical_path(const Timeline& timeline, const WindowChoice& choice) {
  if (choice.frame && is_tenant_trace(timeline)) return critical_path_tenants(timeline, choice);
  if (!choice.tenant.empty()) return usage_error("--tenant needs a frame of a trace of several tenants");
  if (choice.frame) {
    const PipelineRun run = pipeline_run(timeline);
    STROBE_ASSIGN(const Frame* frame, find_frame(run, *choice.frame));
    if (!choice.strict) return account_of_frame(run, *frame);
  }
  Choice chosen;
  if (choice.frame) {
    const PipelineRun run = pipeline_run(timeline);
    STROBE_ASSIGN(const Frame* frame, find_frame(run, *choice.frame));
    STROBE_ASSIGN(chosen, choice_of_frame(timeline, run, *frame));
  } else {
    STROBE_ASSIGN(chosen, choice_of(timeline, choice));
  }
  const DependencyGraph graph(timeline, chosen.window);
  STROBE_ASSIGN(const Window window, window_of(graph, chosen, choice));
  CriticalPath path;
  path.title = "Critical path of " + window.title;
  path.length_ns = window.end_ns - window.start_ns;
  path.segments = walk_back(timeline, graph, window);
  std::vector<uint8_t> is_on_path(timeline.ranges.size(), 0);
  for (const PathSegment& segment : path.segments)
    if (!segment.is_wait && segment.range != kNone) is_on_path[static_cast<size_t>(segment.range)] = 1;
  for (size_t range = 0; range < is_on_path.size(); ++range)
    if (is_on_path[range]) path.events.push_back(static_cast<int32_t>(range));
  count_edges(graph, window, path);
  path.rows = path_rows(path, figures_of(timeline, graph, window, path));
  const auto has = [&path](EdgeType type) {
    return std::any_of(path.by_type.begin(), path.by_type.end(),
                       [type](const auto& counted) { return counted.first == name_of(type); });
  };
  if (has(EdgeType::kLaunch) && !has(EdgeType::kSync))
    path.rows.notes.push_back(
        "no recorded call of this window waits for the device, so its work can only be on the path at the end");
  if (graph.contradictions() > 0)
    path.rows.notes.push_back(
        std::to_string(graph.contradictions()) +
        " recorded dependencies of this window contradict their times (an effect before its cause) and are left out");
  return path;
}

const Table* imported_dependency_table(const Timeline& timeline) {
  for (const Table& table : timeline.tables) {
    std::string title = table.title();
    std::transform(title.begin(), title.end(), title.begin(),
                   [](char c) { return c >= 'A' && c <= 'Z' ? char(c + 32) : c; });
    if (title.find("dependency") != std::string::npos || title.find("critical path") != std::string::npos)
      return &table;
  }
  return nullptr;
}

}  // namespace strobe::analyze
