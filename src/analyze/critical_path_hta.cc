// The graph rules of HolisticTraceAnalysis 0.6.1, read from its published source (critical_path_analysis.py): two nodes
// an event; edges along call stacks, around the runtime's lock, from launches to kernels, along streams, for waits.
// docs/critical-path.md says them in words. Where its result depends on the order in which edges were added (ties
// between equally long paths), edges are added in its order.
#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <unordered_map>

#include "analyze/critical_path.h"
#include "analyze/critical_path_hta_events.h"
#include "analyze/critical_path_hta_graph.h"
#include "analyze/critical_path_rows.h"

namespace strobe::analyze {

using hta::Event;
using trace::kNone;
using trace::Timeline;

namespace {

using hta::EdgeKind;
using hta::Graph;

enum SyncType : uint8_t { kEventSync = 1, kStreamWaitsForEvent = 2, kStreamSync = 3, kContextSync = 4 };

// Longer gaps between kernels are taken for a dependency that is not known.
constexpr int64_t kLongestKernelGap = 1'500'000;

class Builder {
 public:
  Builder(const Timeline& timeline, const hta::Events& events)
      : timeline_(timeline),
        events_(events.all),
        before_(events.before),
        names_(timeline),
        graph_(2 * events.all.size()) {
    is_node_.resize(events_.size());
    for (size_t i = 0; i < events_.size(); ++i) {
      const Event& event = events_[i];
      is_node_[i] = event.in_window && (event.is_call || (event.stream != hta::kNotDevice && event.partner != -1));
    }
  }

  Graph build() {
    find_launches();
    add_runtime_lock();
    add_call_stacks();
    add_device();
    return std::move(graph_);
  }

 private:
  // Which names have a role, by StringId.
  struct Names {
    explicit Names(const Timeline& timeline) {
      const auto fill = [&](std::vector<uint8_t>& set, std::initializer_list<const char*> names) {
        set.assign(timeline.strings.size(), 0);
        for (const char* name : names)
          if (const int64_t id = timeline.strings.find(name); id != kNone) set[static_cast<size_t>(id)] = 1;
      };
      fill(locking, {"cudaHostAlloc", "cudaLaunchKernel", "cudaMemcpyAsync"});
      fill(blocking, {"cudaDeviceSynchronize", "cudaStreamSynchronize", "cudaEventQuery", "cudaEventSynchronize",
                      "cudaMemcpy", "cudaMemcpyAsync"});
      fill(launching,
           {"cudaLaunchKernel", "cudaLaunchKernelExC", "cuLaunchKernel", "cuLaunchKernelEx", "cudaMemcpyAsync",
            "cudaMemsetAsync", "runFunction - job_prep_and_submit_for_execution", "hipLaunchKernel",
            "hipExtModuleLaunchKernel", "hipMemsetAsync", "hipMemcpyAsync", "hipMemcpyWithStream"});
      fill(recording, {"cudaEventRecord"});
      fill(stream_waiting, {"cudaStreamWaitEvent"});
    }
    std::vector<uint8_t> locking, blocking, launching, recording, stream_waiting;
  };
  struct Queue {  // operations that a stream has before it, after the event
    int64_t at_launch = -1, at_start = -1;
  };
  struct Launch {
    int64_t time;
    int32_t call;
  };

  bool is(const std::vector<uint8_t>& set, int32_t event) const {
    return set[timeline_.ranges.name[static_cast<size_t>(at(event).range)]] != 0;
  }
  const Event& at(int32_t event) const { return events_[static_cast<size_t>(event)]; }
  bool has_nodes(int32_t event) const { return event >= 0 && is_node_[static_cast<size_t>(event)]; }
  static int32_t start_node(int32_t event) { return 2 * event; }
  static int32_t end_node(int32_t event) { return 2 * event + 1; }
  static int32_t event_of(int32_t node) { return node / 2; }
  static bool is_start(int32_t node) { return node % 2 == 0; }
  int64_t time_of(int32_t node) const { return is_start(node) ? at(event_of(node)).start : at(event_of(node)).end; }

  // parent: whose time an edge from an end to a start is.
  void add(int32_t from, int32_t to, EdgeKind kind, int32_t parent = -1, bool zero = false) {
    const bool has_weight = kind != EdgeKind::kDependency && kind != EdgeKind::kSync && !zero;
    int32_t owner = -1;
    if (kind == EdgeKind::kKernelGap || (kind == EdgeKind::kOperator && is_start(from)))
      owner = event_of(from);
    else if (kind == EdgeKind::kOperator)
      owner = is_start(to) ? parent : event_of(to);
    graph_.add(from, to, kind, has_weight ? time_of(to) - time_of(from) : 0, owner);
  }

  // How long each stream's queue was at each launch and each start, and the launches in time order.
  void find_launches() {
    struct Change {
      int64_t time;
      int32_t event;
      int8_t step;
    };
    std::map<int64_t, std::vector<Change>> of_stream;
    std::vector<Change> changes;
    for (int pass = 0; pass < 2; ++pass)
      for (size_t i = 0; i < events_.size(); ++i) {
        const auto event = static_cast<int32_t>(i);
        const bool is_launch =
            at(event).stream == hta::kNotDevice && at(event).partner >= 0 && is(names_.launching, event);
        if (pass == 0 && is_launch) changes.push_back({at(event).start, event, 1});
        if (pass == 1 && at(event).stream != hta::kNotDevice && at(event).partner >= 0 &&
            is(names_.launching, at(event).partner))
          changes.push_back({at(event).start, event, -1});
      }
    std::stable_sort(changes.begin(), changes.end(), [](const Change& a, const Change& b) { return a.time < b.time; });
    for (const Change& change : changes)
      of_stream[change.step > 0 ? at(at(change.event).partner).stream : at(change.event).stream].push_back(change);
    queues_.resize(events_.size());
    std::map<int64_t, int64_t> before = queued_before();
    for (const auto& [stream, list] : of_stream) {
      int64_t length = before[stream];
      for (const Change& change : list) {
        length += change.step;
        if (change.step > 0)
          queues_[static_cast<size_t>(change.event)].at_launch = length;
        else
          queues_[static_cast<size_t>(change.event)].at_start = length;
      }
    }
    for (const Change& change : changes) {
      if (change.step < 0) continue;
      const Event& kernel = at(at(change.event).partner);
      launches_of_[{kernel.pid, kernel.stream}].push_back({change.time, change.event});
    }
  }

  // The length of each stream's queue before the first event of launches.
  std::map<int64_t, int64_t> queued_before() const {
    std::map<int64_t, int64_t> length;
    for (const hta::Events::Queued& queued : before_) {
      const int32_t call = queued.is_launch ? queued.range : queued.partner;
      const int32_t operation = queued.is_launch ? queued.partner : queued.range;
      if (names_.launching[timeline_.ranges.name[static_cast<size_t>(call)]])
        length[timeline_.lanes[static_cast<size_t>(timeline_.ranges.lane[static_cast<size_t>(operation)])].tid] +=
            queued.is_launch ? 1 : -1;
    }
    return length;
  }

  // Calls that take the runtime's lock: who ends first had it first.
  void add_runtime_lock() {
    std::vector<int32_t> nodes;
    for (size_t i = 0; i < events_.size(); ++i) {
      const auto event = static_cast<int32_t>(i);
      if (!has_nodes(event) || !is(names_.locking, event)) continue;
      nodes.push_back(start_node(event));
      nodes.push_back(end_node(event));
    }
    std::stable_sort(nodes.begin(), nodes.end(), [this](int32_t a, int32_t b) {
      return time_of(a) != time_of(b) ? time_of(a) < time_of(b) : event_of(a) < event_of(b);
    });
    std::vector<int32_t> starts;
    int32_t last = -1;
    for (const int32_t node : nodes) {
      if (is_start(node)) {
        starts.push_back(node);
      } else {
        for (; !starts.empty(); starts.pop_back())
          add(starts.back(), node,
              event_of(starts.back()) == event_of(node) ? EdgeKind::kOperator : EdgeKind::kDependency);
        if (last >= 0 && !is_start(last)) add(last, node, EdgeKind::kDependency);
      }
      last = node;
    }
  }

  bool share_lock(int32_t first, int32_t second) const {
    return is(names_.locking, event_of(first)) && is(names_.locking, event_of(second)) &&
           (is_start(first) || !is_start(second));
  }

  // The thread that alone holds operations or annotations with a word in their names; 0: none or several.
  int32_t thread_with(std::string_view word) const {
    std::vector<int8_t> has_word(timeline_.strings.size(), -1);
    int32_t thread = 0;
    bool found = false;
    for (const Event& event : events_) {
      const auto range = static_cast<size_t>(event.range);
      const bool counts =
          event.is_annotation || (event.is_call && timeline_.ranges.kind[range] == trace::RangeKind::kOperator);
      if (!event.in_window || !counts || !on_thread(event)) continue;
      const trace::StringId name = timeline_.ranges.name[range];
      if (has_word[name] < 0) has_word[name] = timeline_.strings[name].find(word) != std::string_view::npos ? 1 : 0;
      if (!has_word[name]) continue;
      if (found && event.tid != thread) return 0;
      found = true;
      thread = event.tid;
    }
    return thread;
  }
  bool on_thread(const Event& event) const {
    return timeline_.lanes[static_cast<size_t>(timeline_.ranges.lane[static_cast<size_t>(event.range)])].kind ==
           trace::Lane::Kind::kThread;
  }

  void add_call_stacks() {
    const int32_t forward = thread_with("forward"), backward = thread_with("autograd");
    const bool merge = forward != 0 && backward != 0 && forward != backward;
    std::map<std::pair<int32_t, int32_t>, std::vector<int32_t>> threads;
    for (size_t i = 0; i < events_.size(); ++i) {
      const Event& event = events_[i];
      if (!event.in_window || event.stream != hta::kNotDevice || !on_thread(event)) continue;
      threads[{event.pid, merge && event.tid == backward ? forward : event.tid}].push_back(static_cast<int32_t>(i));
    }
    for (const auto& [thread, events] : threads) add_call_stack(events);
  }

  // Parents by a stack of starts and ends; where ranges overlap, an end closes whatever began last.
  void add_call_stack(const std::vector<int32_t>& events) {
    struct Turn {
      int64_t time, duration;
      int32_t event;
      bool start;
    };
    std::vector<Turn> turns;
    turns.reserve(2 * events.size());
    for (const int32_t event : events) {
      turns.push_back({at(event).start, at(event).duration(), event, true});
      turns.push_back({at(event).end, at(event).duration(), event, false});
    }
    std::sort(turns.begin(), turns.end(), [](const Turn& a, const Turn& b) {
      if (a.time != b.time) return a.time < b.time;
      if (a.start != b.start) return !a.start;
      if (a.duration != b.duration) return a.start ? a.duration > b.duration : a.duration < b.duration;
      return a.start ? a.event < b.event : a.event > b.event;
    });
    std::vector<int32_t> stack;
    int32_t last = -1, last_parent = -1;
    int64_t depth = 0;
    const auto parent = [&stack] { return stack.empty() ? -1 : stack.back(); };
    for (const Turn& turn : turns) {
      if (turn.start) {
        if (has_nodes(turn.event)) {
          const int32_t node = start_node(turn.event);
          if (last >= 0 && !share_lock(last, node))
            add(last, node, depth == 0 ? EdgeKind::kDependency : EdgeKind::kOperator, last_parent);
          last = node;
          last_parent = parent();
          ++depth;
        }
        stack.push_back(turn.event);
        continue;
      }
      if (stack.empty()) continue;
      const int32_t event = stack.back();
      stack.pop_back();
      if (!has_nodes(event)) continue;
      const int32_t node = end_node(event);
      if (last >= 0 && !share_lock(last, node))
        add(last, node, EdgeKind::kOperator, last_parent, is(names_.blocking, event));
      last = node;
      last_parent = parent();
      --depth;
    }
  }

  // The last operation asked for on the stream of each recorded event, by the correlation of the call that recorded it.
  std::unordered_map<int64_t, int32_t> recorded_after() const {
    std::unordered_map<int64_t, std::pair<int32_t, int64_t>> stream_of;  // of the record: device, stream
    for (size_t i = 0; i < events_.size(); ++i) {
      const auto op = op_of(static_cast<int32_t>(i));
      if (op && op->sync_stream > -1 && op->sync_correlation != 0)
        stream_of.try_emplace(op->sync_correlation, device_of(*op), op->sync_stream);
    }
    std::unordered_map<int64_t, int32_t> launch_of;
    for (size_t i = 0; i < events_.size(); ++i) {
      const auto event = static_cast<int32_t>(i);
      if (at(event).correlation < 0 || !is(names_.recording, event)) continue;
      const auto stream = stream_of.find(at(event).correlation);
      if (stream == stream_of.end()) continue;
      launch_of[at(event).correlation] = -1;
      const auto launches = launches_of_.find(stream->second);
      if (launches == launches_of_.end()) continue;
      const auto next = std::partition_point(launches->second.begin(), launches->second.end(),
                                             [&](const Launch& l) { return l.time <= at(event).start; });
      if (next != launches->second.begin()) launch_of[at(event).correlation] = std::prev(next)->call;
    }
    return launch_of;
  }
  const trace::DeviceOp* op_of(int32_t event) const {
    const auto& ops = timeline_.device_ops;
    const auto found = std::lower_bound(ops.begin(), ops.end(), at(event).range,
                                        [](const trace::DeviceOp& op, int32_t range) { return op.range < range; });
    return found != ops.end() && found->range == at(event).range ? &*found : nullptr;
  }
  int32_t device_of(const trace::DeviceOp& op) const {
    return timeline_.lanes[static_cast<size_t>(timeline_.ranges.lane[static_cast<size_t>(op.range)])].device;
  }

  // The next operation that the same thread asked for on the stream that was made to wait.
  int32_t next_launch(const Event& wait) const {
    const Event& call = at(wait.partner);
    const auto launches = launches_of_.find({wait.pid, wait.stream});
    if (launches == launches_of_.end()) return -1;
    auto next = std::partition_point(launches->second.begin(), launches->second.end(),
                                     [&](const Launch& l) { return l.time < call.start; });
    for (; next != launches->second.end(); ++next)
      if (at(next->call).pid == call.pid && at(next->call).tid == call.tid) return next->call;
    return -1;
  }

  void add_device() {
    std::vector<int32_t> order;
    for (size_t i = 0; i < events_.size(); ++i) {
      const Event& event = events_[i];
      const bool is_sync = event.sync_type == kEventSync || event.sync_type == kContextSync;
      if (event.in_window && (event.stream != hta::kNotDevice || is_sync) && event.partner != -1)
        order.push_back(static_cast<int32_t>(i));
    }
    const auto key = [this](int32_t event) { return at(event).sync_type != 0 ? at(event).end : at(event).start; };
    std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) { return key(a) < key(b); });
    const auto recorded = recorded_after();
    for (const int32_t event : order) {
      if (at(event).sync_type != 0)
        add_sync(event, recorded);
      else
        add_kernel(event);
    }
  }

  void add_sync(int32_t event, const std::unordered_map<int64_t, int32_t>& recorded) {
    const Event& sync = at(event);
    const auto to_host = [&](int32_t node) {
      if (has_nodes(sync.partner)) add(node, end_node(sync.partner), EdgeKind::kSync);
    };
    if (sync.sync_type == kStreamSync || sync.sync_type == kContextSync) {
      for (const auto& [stream, node] : last_on_stream_)
        if (sync.sync_type == kContextSync || stream == sync.stream) to_host(node);
      return;
    }
    const trace::DeviceOp* op = op_of(event);
    const auto found = op ? recorded.find(op->sync_correlation) : recorded.end();
    if (found == recorded.end() || found->second < 0) return;
    const int32_t source = at(found->second).partner;
    if (sync.sync_type == kEventSync) {
      if (has_nodes(source)) to_host(end_node(source));
      return;
    }
    if (sync.partner < 0) return;
    const int32_t launch = next_launch(sync);
    if (launch >= 0) awaited_[at(launch).partner] = source;
  }

  int32_t* last_on(int64_t stream) {
    for (auto& [known, node] : last_on_stream_)
      if (known == stream) return &node;
    return nullptr;
  }

  void add_kernel(int32_t kernel) {
    if (!has_nodes(kernel)) return;
    const int32_t start = start_node(kernel), end = end_node(kernel), call = at(kernel).partner;
    const int64_t stream = at(kernel).stream;
    add(start, end, EdgeKind::kOperator);
    int32_t awaited = -1;
    if (const auto found = awaited_.find(kernel); found != awaited_.end()) {
      if (has_nodes(found->second)) {
        awaited = end_node(found->second);
        add(awaited, start, EdgeKind::kSync);
      }
      awaited_.erase(found);
    }
    int32_t* const last = last_on(stream);
    const bool has_call = call >= 0;
    const Queue* const at_call = has_call ? &queues_[static_cast<size_t>(call)] : nullptr;
    bool launched = false;
    if (at_call && at_call->at_launch == 1 && queues_[static_cast<size_t>(kernel)].at_start == 0 &&
        (!last || time_of(*last) < at(call).start) && (awaited < 0 || time_of(awaited) < at(call).start)) {
      if (has_nodes(call)) {
        add(start_node(call), start, EdgeKind::kLaunch);
        launched = true;
      }
    } else if (last && time_of(start) - time_of(*last) < kLongestKernelGap &&
               (awaited < 0 || time_of(awaited) < time_of(*last))) {
      add(*last, start, EdgeKind::kKernelGap);
    }
    // Keeps the order of cause and effect without weight.
    if (!launched && has_nodes(call)) add(start_node(call), start, EdgeKind::kLaunch, -1, true);
    if (last)
      *last = end;
    else
      last_on_stream_.emplace_back(stream, end);
  }

  const Timeline& timeline_;
  const std::vector<Event>& events_;
  const std::vector<hta::Events::Queued>& before_;
  const Names names_;
  Graph graph_;
  std::vector<uint8_t> is_node_;
  std::vector<Queue> queues_;
  std::map<std::pair<int32_t, int64_t>, std::vector<Launch>> launches_of_;  // by device and stream, in time order
  std::vector<std::pair<int64_t, int32_t>> last_on_stream_;                 // stream, end node; in order of appearance
  std::unordered_map<int32_t, int32_t> awaited_;                            // kernel -> the kernel that it waits for
};

std::vector<std::pair<std::string, size_t>> counted(const std::array<size_t, hta::kEdgeKinds>& counts) {
  std::vector<std::pair<std::string, size_t>> named;
  for (size_t kind = 0; kind < counts.size(); ++kind)
    if (counts[kind] > 0) named.emplace_back(hta::name_of(static_cast<EdgeKind>(kind)), counts[kind]);
  return named;
}

const char* name_of_gap(EdgeKind kind) {
  switch (kind) {
    case EdgeKind::kLaunch:
      return "(kernel launch delay)";
    case EdgeKind::kKernelGap:
      return "(gap between kernels)";
    default:
      return "(outside any event)";
  }
}

}  // namespace

Result<CriticalPath> critical_path_hta(const Timeline& timeline, const WindowChoice& choice) {
  if (choice.frame) return unsupported("HolisticTraceAnalysis' rules know no frames; give --range, or --rules strobe");
  STROBE_ASSIGN(const hta::Events events, hta::events_of(timeline, choice));
  const Graph graph = Builder(timeline, events).build();
  STROBE_ASSIGN(const std::vector<int32_t> path_edges, graph.longest_path());
  CriticalPath path;
  path.title =
      "Critical path of " +
      (choice.range.empty() ? "the whole trace" : choice.range + ", instance " + std::to_string(choice.instance)) +
      " by the rules of HolisticTraceAnalysis 0.6.1";
  path.nodes = graph.node_count();
  path.edges = graph.edges().size();
  path.path_edges = path_edges.size();
  path.path_nodes = path_edges.empty() ? 0 : path_edges.size() + 1;
  std::array<size_t, hta::kEdgeKinds> all{}, on_path{};
  for (const hta::Graph::Edge& edge : graph.edges()) ++all[static_cast<size_t>(edge.kind)];
  const auto range_of = [&](int32_t event) { return event < 0 ? kNone : events.all[static_cast<size_t>(event)].range; };
  for (const int32_t index : path_edges) {
    const hta::Graph::Edge& edge = graph.edges()[static_cast<size_t>(index)];
    ++on_path[static_cast<size_t>(edge.kind)];
    path.length_ns += edge.weight;
    for (const int32_t node : {edge.from, edge.to}) path.events.push_back(range_of(node / 2));
    if (edge.weight == 0) continue;
    const Event& from = events.all[static_cast<size_t>(edge.from / 2)];
    PathSegment segment;
    segment.start_ns = edge.from % 2 == 0 ? from.start : from.end;
    segment.end_ns = segment.start_ns + edge.weight;
    segment.is_wait = edge.kind != EdgeKind::kOperator || edge.owner < 0;
    segment.range = range_of(edge.kind == EdgeKind::kOperator ? edge.owner : edge.to / 2);
    segment.lane = segment.range == kNone ? kNone : timeline.ranges.lane[static_cast<size_t>(segment.range)];
    segment.name = segment.is_wait ? name_of_gap(edge.kind)
                                   : timeline.strings[timeline.ranges.name[static_cast<size_t>(segment.range)]];
    path.segments.push_back(segment);
  }
  std::sort(path.events.begin(), path.events.end());
  path.events.erase(std::unique(path.events.begin(), path.events.end()), path.events.end());
  path.by_type = counted(all);
  path.path_by_type = counted(on_path);
  path.rows = path_rows(path, {});
  const bool has_sync = std::any_of(timeline.device_ops.begin(), timeline.device_ops.end(),
                                    [](const trace::DeviceOp& op) { return op.sync_type != 0; });
  if (!has_sync && !timeline.device_ops.empty())
    path.rows.notes.push_back(
        "the trace holds no synchronisation records: by these rules no call waits for the device");
  return path;
}

}  // namespace strobe::analyze
