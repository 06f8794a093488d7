#include "analyze/dependency_graph_builder.h"

#include <algorithm>
#include <limits>

namespace strobe::analyze {

using trace::DeviceOp;
using trace::kNone;
using trace::RangeKind;

namespace {

constexpr int64_t kAlways = std::numeric_limits<int64_t>::min();

// Kinds of synchronisation as DeviceOp::sync_type numbers them.
enum SyncType : uint8_t { kEventSync = 1, kStreamWaitsForEvent = 2, kStreamSync = 3, kContextSync = 4 };

// A stable sort of rows whose parts between runs[i] and runs[i + 1] are sorted already, or nearly so.
template <typename Row, typename Before>
void merge_runs(std::vector<Row>& rows, std::vector<size_t> runs, Before before) {
  const auto at = [](std::vector<Row>& of, size_t index) { return of.begin() + static_cast<std::ptrdiff_t>(index); };
  for (size_t i = 0; i + 1 < runs.size(); ++i)
    if (!std::is_sorted(at(rows, runs[i]), at(rows, runs[i + 1]), before))
      std::stable_sort(at(rows, runs[i]), at(rows, runs[i + 1]), before);
  std::vector<Row> merged;
  while (runs.size() > 2) {
    merged.resize(rows.size());
    std::vector<size_t> next{0};
    for (size_t i = 0; i + 1 < runs.size(); i += 2) {
      const size_t end = runs[std::min(i + 2, runs.size() - 1)];
      std::merge(at(rows, runs[i]), at(rows, runs[i + 1]), at(rows, runs[i + 1]), at(rows, end), at(merged, runs[i]),
                 before);
      next.push_back(end);
    }
    rows.swap(merged);
    runs.swap(next);
  }
}

}  // namespace

DependencyGraphBuilder::DependencyGraphBuilder(const trace::Timeline& timeline) : timeline_(timeline) {
  cuts_.resize(timeline.lanes.size());
  waits_.resize(timeline.lanes.size());
  asked_.resize(timeline.lanes.size());
  find_launches();
  find_sync_waits();
  find_back_pressure();
  find_flow_cuts();
  make_operations();
}

bool DependencyGraphBuilder::is_work(const DeviceOp& op) const {
  return timeline_.ranges.kind[static_cast<size_t>(op.range)] != RangeKind::kSync;
}

bool DependencyGraphBuilder::is_thread(int32_t lane) const {
  return lane != kNone && timeline_.lanes[static_cast<size_t>(lane)].kind == trace::Lane::Kind::kThread;
}

// A call is cut where its operation starts. When the stream was still busy as the call began, nobody can tell when in
// the call the operation was handed over: then it hangs on the call's begin, and the stream's order decides.
void DependencyGraphBuilder::find_launches() {
  std::vector<int64_t> busy_until(timeline_.lanes.size(), kAlways);
  for (const DeviceOp& op : timeline_.device_ops) {
    if (!is_work(op)) continue;
    const auto lane = static_cast<size_t>(lane_of(op.range));
    const int64_t start = start_of(op.range);
    finished_[pid_of(op.range)].push_back({end_of(op.range), op.range});
    asked_[lane].push_back({op.launch == kNone ? start : start_of(op.launch), op.range});
    if (op.launch != kNone) {
      const int64_t begin = start_of(op.launch);
      const int64_t time = busy_until[lane] > begin ? begin : std::max(begin, std::min(end_of(op.launch), start));
      launches_.push_back({lane_of(op.launch), op.range, time});
      cuts_[static_cast<size_t>(lane_of(op.launch))].push_back(time);
    }
    busy_until[lane] = std::max(busy_until[lane], end_of(op.range));
  }
  const auto by_time = [](const Asked& a, const Asked& b) { return a.time_ns < b.time_ns; };
  for (auto& asked : asked_) std::stable_sort(asked.begin(), asked.end(), by_time);
  for (auto& [pid, finished] : finished_) std::stable_sort(finished.begin(), finished.end(), by_time);
}

int32_t DependencyGraphBuilder::last_asked(int32_t lane, int64_t before_ns) const {
  if (lane == kNone) return kNone;
  const auto& asked = asked_[static_cast<size_t>(lane)];
  const auto at =
      std::partition_point(asked.begin(), asked.end(), [&](const Asked& a) { return a.time_ns < before_ns; });
  return at == asked.begin() ? kNone : std::prev(at)->range;
}

int32_t DependencyGraphBuilder::last_finished(int32_t pid, int64_t after_ns, int64_t time_ns) const {
  const auto found = finished_.find(pid);
  if (found == finished_.end()) return kNone;
  const auto at = std::partition_point(found->second.begin(), found->second.end(),
                                       [&](const Asked& a) { return a.time_ns <= time_ns; });
  return at == found->second.begin() || std::prev(at)->time_ns <= after_ns ? kNone : std::prev(at)->range;
}

int32_t DependencyGraphBuilder::stream_lane(int32_t pid, int32_t device, int32_t stream) const {
  for (size_t i = 0; i < timeline_.lanes.size(); ++i) {
    const trace::Lane& lane = timeline_.lanes[i];
    if (lane.kind == trace::Lane::Kind::kStream && lane.pid == pid && lane.tid == stream && lane.device == device)
      return static_cast<int32_t>(i);
  }
  return kNone;
}

int32_t DependencyGraphBuilder::event_source(const DeviceOp& record) const {
  const int32_t stream = stream_lane(pid_of(record.range), lane(record.range).device, record.sync_stream);
  const auto call = call_of_correlation_.find(record.sync_correlation);
  if (call != call_of_correlation_.end()) return last_asked(stream, start_of(call->second));
  return last_asked(stream, record.launch == kNone ? start_of(record.range) : start_of(record.launch));
}

// The device operation whose end a call waits for. Without a record of the synchronisation: of a copy its own work, of
// a synchronising call whatever its process finished last.
int32_t DependencyGraphBuilder::waited_for(int32_t call, const DeviceOp* record, int32_t own_work) const {
  if (record) {
    switch (record->sync_type) {
      case kEventSync:
        return event_source(*record);
      case kStreamSync:
        return last_asked(lane_of(record->range), start_of(call));
      case kContextSync: {
        int32_t last = kNone;
        for (size_t i = 0; i < timeline_.lanes.size(); ++i) {
          if (timeline_.lanes[i].pid != pid_of(call)) continue;
          const int32_t range = last_asked(static_cast<int32_t>(i), start_of(call));
          if (range != kNone && (last == kNone || end_of(range) > end_of(last))) last = range;
        }
        return last;
      }
      default:
        return kNone;
    }
  }
  const std::string_view name = timeline_.strings[timeline_.ranges.name[static_cast<size_t>(call)]];
  if (name.find("Memcpy") != std::string_view::npos || name.find("Memset") != std::string_view::npos) return own_work;
  return last_finished(pid_of(call), start_of(call), end_of(call));
}

void DependencyGraphBuilder::find_sync_waits() {
  std::vector<int8_t> blocking_names(timeline_.strings.size(), -1);  // -1: not looked at
  const auto is_blocking = [&](int32_t call) {
    const trace::StringId name = timeline_.ranges.name[static_cast<size_t>(call)];
    if (blocking_names[name] < 0) blocking_names[name] = is_blocking_call(timeline_.strings[name]) ? 1 : 0;
    return blocking_names[name] != 0;
  };
  std::unordered_map<int32_t, const DeviceOp*> record_of, work_of;  // by call
  bool has_events = false;
  for (const DeviceOp& op : timeline_.device_ops) {
    has_events |= op.sync_type == kEventSync || op.sync_type == kStreamWaitsForEvent;
    if (op.launch != kNone && !is_work(op)) record_of.try_emplace(op.launch, &op);
  }
  // Of calls that may wait; the others are most.
  for (const DeviceOp& op : timeline_.device_ops) {
    if (op.launch == kNone || !is_work(op) || (!is_blocking(op.launch) && !record_of.contains(op.launch))) continue;
    if (const auto [known, is_new] = work_of.try_emplace(op.launch, &op); !is_new)
      if (end_of(op.range) > end_of(known->second->range)) known->second = &op;
  }
  if (has_events)
    for (const trace::ApiCall& call : timeline_.api_calls)
      if (call.correlation != 0) call_of_correlation_.try_emplace(call.correlation, call.range);
  for (const trace::ApiCall& call : timeline_.api_calls) {
    const bool blocks = is_blocking(call.range);
    if (!blocks && record_of.empty()) continue;
    const auto record = record_of.find(call.range);
    if (record == record_of.end() && !blocks) continue;
    const auto work = work_of.find(call.range);
    const int32_t own = work == work_of.end() ? kNone : work->second->range;
    const int32_t source = waited_for(call.range, record == record_of.end() ? nullptr : record->second, own);
    if (source == kNone) continue;
    // What a call waits for that it asked for itself it cannot wait for earlier than it began.
    const int64_t start = source == own ? std::max(start_of(call.range), start_of(source)) : start_of(call.range);
    const int64_t end = end_of(source);
    if (end <= start || end > end_of(call.range)) continue;
    waits_[static_cast<size_t>(lane_of(call.range))].push_back({start, end, call.range, source});
  }
}

void DependencyGraphBuilder::find_back_pressure() {
  const int64_t name = timeline_.strings.find("back-pressure");
  if (name == kNone) return;
  for (size_t i = 0; i < timeline_.ranges.size(); ++i) {
    const auto range = static_cast<int32_t>(i);
    if (timeline_.ranges.name[i] != name || timeline_.ranges.is_async[i] || !is_thread(lane_of(range))) continue;
    waits_[static_cast<size_t>(lane_of(range))].push_back({start_of(range), end_of(range), range, kNone});
  }
}

// Where what a flow brought is used: at the start of the range that took it, when that began after the flow set out.
int64_t DependencyGraphBuilder::arrival_of(size_t flow) const {
  const trace::Flows& flows = timeline_.flows;
  const int32_t range = flows.to_range[flow];
  return range != kNone && start_of(range) >= flows.from_ns[flow] ? start_of(range) : flows.to_ns[flow];
}

void DependencyGraphBuilder::find_flow_cuts() {
  const trace::Flows& flows = timeline_.flows;
  for (size_t i = 0; i < flows.size(); ++i) {
    if (!is_thread(flows.from_lane[i]) || !is_thread(flows.to_lane[i]) || flows.from_lane[i] == flows.to_lane[i])
      continue;
    cuts_[static_cast<size_t>(flows.from_lane[i])].push_back(flows.from_ns[i]);
    cuts_[static_cast<size_t>(flows.to_lane[i])].push_back(arrival_of(i));
  }
}

void DependencyGraphBuilder::make_operations() {
  const trace::Ranges& ranges = timeline_.ranges;
  std::vector<std::vector<int32_t>> of_lane(timeline_.lanes.size());
  operations_.reserve(ranges.size() + ranges.size() / 2);
  // Around a pipeline's run its main thread only waits for the stages' threads.
  const bool is_pipeline = timeline_.facts.count("pipeline.stages") != 0;
  const int64_t run = is_pipeline ? timeline_.strings.find("run") : int64_t{kNone};
  for (size_t i = 0; i < ranges.size(); ++i) {
    if (ranges.is_async[i] || ranges.name[i] == run) continue;
    const auto range = static_cast<int32_t>(i);
    if (is_device(ranges.kind[i])) {
      if (ranges.kind[i] != RangeKind::kSync)
        operations_.push_back({ranges.start_ns[i], ranges.end_ns[i], range, ranges.lane[i], kNone});
    } else if (is_thread(ranges.lane[i])) {
      of_lane[static_cast<size_t>(ranges.lane[i])].push_back(range);
    }
  }
  // Each lane's operations come in time order, so that a merge of these runs sorts them.
  std::vector<size_t> runs{0, operations_.size()};
  for (size_t lane = 0; lane < of_lane.size(); ++lane) {
    if (of_lane[lane].empty()) continue;
    split_lane(of_lane[lane], lane);
    of_lane[lane] = {};
    runs.push_back(operations_.size());
  }
  const auto before = [](const Operation& a, const Operation& b) {
    return a.start_ns != b.start_ns ? a.start_ns < b.start_ns : a.end_ns < b.end_ns;
  };
  merge_runs(operations_, runs, before);
  operation_of_.assign(ranges.size(), kNone);
  for (size_t i = 0; i < operations_.size(); ++i) {
    const auto range = static_cast<size_t>(operations_[i].range);
    if (is_device(ranges.kind[range])) operation_of_[range] = static_cast<int32_t>(i);
  }
}

// The pieces of a thread's time that each of its ranges has to itself, in time order.
void DependencyGraphBuilder::split_lane(const std::vector<int32_t>& ranges, size_t lane) {
  auto& cuts = cuts_[lane];
  auto& waits = waits_[lane];
  std::sort(cuts.begin(), cuts.end());
  std::stable_sort(waits.begin(), waits.end(), [](const Wait& a, const Wait& b) { return a.start_ns < b.start_ns; });
  size_t next_cut = 0, next_wait = 0;
  int32_t waited_in = kNone;
  const auto emit = [&](int64_t start, int64_t end, int32_t range) {
    const bool is_empty = start == end;
    while (start < end || is_empty) {
      while (next_wait < waits.size() && waits[next_wait].end_ns <= start) waited_in = waits[next_wait++].range;
      const Wait* wait = next_wait < waits.size() ? &waits[next_wait] : nullptr;
      if (wait && wait->start_ns <= start && !is_empty) {
        waited_in = wait->range;
        start = std::min(end, wait->end_ns);
        continue;
      }
      if (is_empty && wait && wait->start_ns < start) return;
      int64_t limit = wait ? std::min(end, wait->start_ns) : end;
      while (next_cut < cuts.size() && cuts[next_cut] <= start) ++next_cut;
      if (!is_empty && next_cut < cuts.size()) limit = std::min(limit, cuts[next_cut]);
      if (is_empty) limit = end;
      operations_.push_back({start, limit, range, static_cast<int32_t>(lane), waited_in});
      waited_in = kNone;
      start = limit;
      if (is_empty) return;
    }
  };
  std::vector<int32_t> open;
  int64_t at = kAlways;
  const auto close_until = [&](int64_t time) {
    while (!open.empty() && end_of(open.back()) <= time) {
      if (end_of(open.back()) > at) emit(at, end_of(open.back()), open.back());
      at = std::max(at, end_of(open.back()));
      open.pop_back();
    }
  };
  for (const int32_t range : ranges) {
    const int64_t start = start_of(range);
    close_until(start);
    if (!open.empty() && at < start) emit(at, start, open.back());
    at = std::max(at, start);
    // What overlaps without nesting gives way to what began later.
    while (!open.empty() && end_of(open.back()) < end_of(range)) open.pop_back();
    if (end_of(range) == start)
      emit(start, start, range);
    else
      open.push_back(range);
  }
  close_until(std::numeric_limits<int64_t>::max());
}

std::vector<Edge> DependencyGraphBuilder::edges(const DependencyGraph& graph) const {
  std::vector<Edge> edges;
  edges.reserve(graph.operations().size() * 2);
  add_order(graph, edges);
  add_launches(graph, edges);
  add_events(edges);
  add_waits(graph, edges);
  add_flows(graph, edges);
  return edges;
}

void DependencyGraphBuilder::add_order(const DependencyGraph& graph, std::vector<Edge>& edges) const {
  std::vector<int32_t> previous(timeline_.lanes.size(), kNone);
  const auto& operations = graph.operations();
  for (size_t i = 0; i < operations.size(); ++i) {
    const auto self = static_cast<int32_t>(i);
    const int32_t lane = operations[i].lane;
    int32_t& before = previous[static_cast<size_t>(lane)];
    const EdgeType type = is_thread(lane) ? EdgeType::kThread : EdgeType::kStream;
    // Operations of a stream overlap where the trace has a lane for several queues.
    if (before != kNone && operations[static_cast<size_t>(before)].end_ns > operations[i].start_ns)
      before = graph.last_of_lane(lane, kAlways, operations[i].start_ns);
    if (before != kNone && before < self) edges.push_back({before, self, type});
    before = self;
  }
}

void DependencyGraphBuilder::add_launches(const DependencyGraph& graph, std::vector<Edge>& edges) const {
  std::vector<size_t> near(timeline_.lanes.size(), 0);
  for (const Launch& launch : launches_) {
    const int32_t from =
        graph.last_of_lane(launch.lane, kAlways, launch.time_ns, &near[static_cast<size_t>(launch.lane)]);
    if (from != kNone) edges.push_back({from, operation_of_[static_cast<size_t>(launch.range)], EdgeType::kLaunch});
  }
}

void DependencyGraphBuilder::add_events(std::vector<Edge>& edges) const {
  for (const DeviceOp& record : timeline_.device_ops) {
    if (is_work(record) || record.sync_type != kStreamWaitsForEvent) continue;
    const int32_t source = event_source(record);
    const int64_t asked = record.launch == kNone ? start_of(record.range) : start_of(record.launch);
    const auto& on_stream = asked_[static_cast<size_t>(lane_of(record.range))];
    const auto target =
        std::partition_point(on_stream.begin(), on_stream.end(), [&](const Asked& a) { return a.time_ns <= asked; });
    if (source == kNone || target == on_stream.end()) continue;
    edges.push_back({operation_of_[static_cast<size_t>(source)], operation_of_[static_cast<size_t>(target->range)],
                     EdgeType::kEvent});
  }
}

void DependencyGraphBuilder::add_waits(const DependencyGraph& graph, std::vector<Edge>& edges) const {
  for (size_t lane = 0; lane < waits_.size(); ++lane) {
    for (const Wait& wait : waits_[lane]) {
      if (wait.source == kNone) continue;
      const int32_t target = graph.first_of_lane(static_cast<int32_t>(lane), wait.end_ns);
      if (target != kNone) edges.push_back({operation_of_[static_cast<size_t>(wait.source)], target, EdgeType::kSync});
    }
  }
}

// A queue's consumer makes room when it takes an item: right after what it did before. A producer that waited goes on
// then.
void DependencyGraphBuilder::add_flows(const DependencyGraph& graph, std::vector<Edge>& edges) const {
  struct Room {
    int64_t time_ns;
    int32_t operation;
  };
  std::map<trace::StringId, std::vector<Room>> rooms;                          // by queue
  std::map<int32_t, std::vector<std::pair<int64_t, trace::StringId>>> pushes;  // by lane, in time order
  const trace::Flows& flows = timeline_.flows;
  for (size_t i = 0; i < flows.size(); ++i) {
    if (!is_thread(flows.from_lane[i]) || !is_thread(flows.to_lane[i]) || flows.from_lane[i] == flows.to_lane[i])
      continue;
    const int32_t from = graph.last_of_lane(flows.from_lane[i], kAlways, flows.from_ns[i]);
    const int32_t to = graph.first_of_lane(flows.to_lane[i], arrival_of(i));
    if (from != kNone && to != kNone) edges.push_back({from, to, EdgeType::kHandOver});
    pushes[flows.from_lane[i]].emplace_back(flows.from_ns[i], flows.name[i]);
    const int32_t before = graph.last_of_lane(flows.to_lane[i], kAlways, arrival_of(i));
    if (before != kNone)
      rooms[flows.name[i]].push_back({graph.operations()[static_cast<size_t>(before)].end_ns, before});
  }
  for (auto& [queue, list] : rooms)
    std::stable_sort(list.begin(), list.end(), [](const Room& a, const Room& b) { return a.time_ns < b.time_ns; });
  for (size_t lane = 0; lane < waits_.size(); ++lane) {
    const auto pushed = pushes.find(static_cast<int32_t>(lane));
    if (pushed == pushes.end()) continue;
    for (const Wait& wait : waits_[lane]) {
      if (wait.source != kNone) continue;
      const auto push = std::partition_point(pushed->second.begin(), pushed->second.end(),
                                             [&](const auto& p) { return p.first <= wait.start_ns; });
      if (push == pushed->second.begin()) continue;
      const auto& list = rooms[std::prev(push)->second];
      const auto room =
          std::partition_point(list.begin(), list.end(), [&](const Room& r) { return r.time_ns <= wait.end_ns; });
      const int32_t target = graph.first_of_lane(static_cast<int32_t>(lane), wait.end_ns);
      if (room == list.begin() || std::prev(room)->time_ns < wait.start_ns || target == kNone) continue;
      edges.push_back({std::prev(room)->operation, target, EdgeType::kBackPressure});
    }
  }
}

}  // namespace strobe::analyze
