#include "analyze/dependency_graph_builder.h"

#include <algorithm>
#include <atomic>
#include <limits>
#include <map>
#include <thread>

namespace strobe::analyze {

using trace::DeviceOp;
using trace::kNone;
using trace::RangeKind;

namespace {

constexpr int64_t kAlways = std::numeric_limits<int64_t>::min();

// Kinds of synchronisation as DeviceOp::sync_type numbers them.
enum SyncType : uint8_t { kEventSync = 1, kStreamWaitsForEvent = 2, kStreamSync = 3, kContextSync = 4 };

template <typename Rows, typename Key>
void sort_by(Rows& rows, Key key) {
  const auto before = [&key](const auto& a, const auto& b) { return key(a) < key(b); };
  if (!std::is_sorted(rows.begin(), rows.end(), before)) std::stable_sort(rows.begin(), rows.end(), before);
}

}  // namespace

DependencyGraphBuilder::DependencyGraphBuilder(const trace::Timeline& timeline, std::optional<TimeSpan> window)
    : timeline_(timeline), window_(window) {
  find_end();
  for (auto* of_lane : {&asked_, &finished_}) of_lane->resize(timeline.lanes.size());
  content_.resize(timeline.lanes.size());
  cuts_.resize(timeline.lanes.size());
  waits_.resize(timeline.lanes.size());
  find_content();
  find_launches();
  find_sync_waits();
  find_events();
  for (auto& waits : waits_) sort_by(waits, [](const Wait& wait) { return wait.start_ns; });
  if (window_)
    make_needed_operations();
  else
    make_all_operations();
  merge_operations();
}

bool DependencyGraphBuilder::is_work(const DeviceOp& op) const {
  return timeline_.ranges.kind[static_cast<size_t>(op.range)] != RangeKind::kSync;
}

bool DependencyGraphBuilder::is_thread(int32_t lane) const {
  return lane != kNone && timeline_.lanes[static_cast<size_t>(lane)].kind == trace::Lane::Kind::kThread;
}

// Room in a queue was made by what its consumer did last before it took the next item: that must be known for the first
// item of each queue behind the window too.
void DependencyGraphBuilder::find_end() {
  if (!window_) return;
  needed_to_ = window_->to_ns;
  // Clocks that disagree let things arrive before they set out, and begin before they were launched: what did so may
  // lie behind the window.
  for (size_t flow = 0; flow < timeline_.flows.size(); ++flow)
    if (is_hand_over(flow) && arrival_of(flow) <= window_->to_ns)
      needed_to_ = std::max(needed_to_, timeline_.flows.from_ns[flow]);
  for (const DeviceOp& op : timeline_.device_ops)
    if (op.launch != kNone && start_of(op.range) <= window_->to_ns)
      needed_to_ = std::max(needed_to_, start_of(op.launch));
  if (timeline_.strings.find("back-pressure") == kNone) return;
  std::map<std::pair<int32_t, trace::StringId>, int64_t> next;
  for (size_t flow = 0; flow < timeline_.flows.size(); ++flow) {
    const int64_t arrival = arrival_of(flow);
    if (arrival <= window_->to_ns || !is_hand_over(flow)) continue;
    const auto [known, is_new] = next.try_emplace({timeline_.flows.to_lane[flow], timeline_.flows.name[flow]}, arrival);
    if (!is_new) known->second = std::min(known->second, arrival);
  }
  for (const auto& [queue, arrival] : next) needed_to_ = std::max(needed_to_, arrival);
}

// What lies on each lane, and where waits for room in a queue are.
void DependencyGraphBuilder::find_content() {
  const trace::Ranges& ranges = timeline_.ranges;
  // Around a pipeline's run its main thread only waits for the stages' threads.
  const bool is_pipeline = timeline_.facts.count("pipeline.stages") != 0;
  const int64_t run = is_pipeline ? timeline_.strings.find("run") : int64_t{kNone};
  const int64_t back_pressure = timeline_.strings.find("back-pressure");
  std::vector<int64_t> busy_until(content_.size(), kAlways);
  std::vector<uint8_t> is_thread(content_.size());
  std::vector<uint8_t> is_behind[2] = {is_thread, is_thread};  // the window: of host, of device
  for (size_t lane = 0; lane < content_.size(); ++lane) is_thread[lane] = this->is_thread(static_cast<int32_t>(lane));
  for (size_t i = 0; i < ranges.size(); ++i) {
    if (ranges.is_async[i]) continue;
    const auto lane = static_cast<size_t>(ranges.lane[i]);
    const auto range = static_cast<int32_t>(i);
    if (ranges.name[i] == back_pressure && is_thread[lane])
      waits_[lane].push_back({ranges.start_ns[i], ranges.end_ns[i], range, kNone});
    const bool of_device = is_device(ranges.kind[i]);
    if (ranges.name[i] == run || is_behind[of_device][lane]) continue;
    if (of_device ? ranges.kind[i] == RangeKind::kSync : !is_thread[lane]) continue;
    LaneContent& content = content_[lane];
    if (window_) {
      // The first range behind the window still ends what was open before it.
      is_behind[of_device][lane] = ranges.start_ns[i] > needed_to_;
      if (ranges.start_ns[i] >= busy_until[lane])
        content.fresh.emplace_back(content.of_host.size(), content.of_device.size());
      busy_until[lane] = std::max(busy_until[lane], ranges.end_ns[i]);
    }
    (of_device ? content.of_device : content.of_host).push_back(range);
  }
}

// A call is cut where its operation starts. When the stream was still busy as the call began, nobody can tell when in
// the call the operation was handed over: then it hangs on the call's begin, and the stream's order decides.
void DependencyGraphBuilder::find_launches() {
  std::vector<int64_t> busy_until(timeline_.lanes.size(), kAlways);
  launches_.reserve(timeline_.device_ops.size());
  for (const DeviceOp& op : timeline_.device_ops) {
    if (!is_work(op)) continue;
    const auto lane = static_cast<size_t>(lane_of(op.range));
    const int64_t start = start_of(op.range), end = end_of(op.range);
    finished_[lane].push_back({end, op.range});
    const int64_t begin = op.launch == kNone ? start : start_of(op.launch);
    asked_[lane].push_back({begin, op.range});
    if (op.launch != kNone) {
      const int64_t time = busy_until[lane] > begin ? begin : std::max(begin, std::min(end_of(op.launch), start));
      launches_.push_back({lane_of(op.launch), op.range, time});
      cuts_[static_cast<size_t>(lane_of(op.launch))].push_back(time);
    }
    busy_until[lane] = std::max(busy_until[lane], end);
  }
  for (auto* of_lane : {&asked_, &finished_})
    for (auto& timed : *of_lane) sort_by(timed, [](const Timed& row) { return row.time_ns; });
  for (size_t flow = 0; flow < timeline_.flows.size(); ++flow) {
    if (!is_hand_over(flow)) continue;
    cuts_[static_cast<size_t>(timeline_.flows.from_lane[flow])].push_back(timeline_.flows.from_ns[flow]);
    cuts_[static_cast<size_t>(timeline_.flows.to_lane[flow])].push_back(arrival_of(flow));
  }
}

bool DependencyGraphBuilder::is_hand_over(size_t flow) const {
  const trace::Flows& flows = timeline_.flows;
  return is_thread(flows.from_lane[flow]) && is_thread(flows.to_lane[flow]) &&
         flows.from_lane[flow] != flows.to_lane[flow];
}

// Where what a flow brought is used: at the start of the range that took it, when that began after the flow set out.
int64_t DependencyGraphBuilder::arrival_of(size_t flow) const {
  const trace::Flows& flows = timeline_.flows;
  const int32_t range = flows.to_range[flow];
  return range != kNone && start_of(range) >= flows.from_ns[flow] ? start_of(range) : flows.to_ns[flow];
}

int32_t DependencyGraphBuilder::last_asked(int32_t lane, int64_t before_ns) const {
  if (lane == kNone) return kNone;
  const auto& asked = asked_[static_cast<size_t>(lane)];
  const auto at =
      std::partition_point(asked.begin(), asked.end(), [&](const Timed& row) { return row.time_ns < before_ns; });
  return at == asked.begin() ? kNone : std::prev(at)->range;
}

int32_t DependencyGraphBuilder::last_finished(int32_t pid, int64_t after_ns, int64_t time_ns) const {
  int32_t last = kNone;
  for (size_t lane = 0; lane < finished_.size(); ++lane) {
    const auto& finished = finished_[lane];
    if (finished.empty() || timeline_.lanes[lane].pid != pid) continue;
    const auto at = std::partition_point(finished.begin(), finished.end(),
                                         [&](const Timed& row) { return row.time_ns <= time_ns; });
    if (at == finished.begin() || std::prev(at)->time_ns <= after_ns) continue;
    const int32_t range = std::prev(at)->range;
    if (last == kNone || std::pair(end_of(range), range) > std::pair(end_of(last), last)) last = range;
  }
  return last;
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
  if (call != call_of_correlation_.end() && call->second != kNone) return last_asked(stream, start_of(call->second));
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
  std::vector<uint8_t> blocking_names(timeline_.strings.size());
  for (trace::StringId id = 0; id < blocking_names.size(); ++id)
    blocking_names[id] = is_blocking_call(timeline_.strings[id]) ? 1 : 0;
  const auto is_blocking = [&](int32_t call) {
    return blocking_names[timeline_.ranges.name[static_cast<size_t>(call)]] != 0;
  };
  std::unordered_map<int32_t, const DeviceOp*> record_of, work_of;  // by call that waits or may; the others are most
  for (const DeviceOp& op : timeline_.device_ops) {
    if (op.sync_type == kEventSync || op.sync_type == kStreamWaitsForEvent)
      call_of_correlation_.try_emplace(op.sync_correlation, kNone);
    if (op.launch != kNone && !is_work(op)) record_of.try_emplace(op.launch, &op);
  }
  for (const DeviceOp& op : timeline_.device_ops) {
    if (op.launch == kNone || !is_work(op)) continue;
    if (!is_blocking(op.launch) && (record_of.empty() || !record_of.contains(op.launch))) continue;
    if (const auto [known, is_new] = work_of.try_emplace(op.launch, &op); !is_new)
      if (end_of(op.range) > end_of(known->second->range)) known->second = &op;
  }
  for (const trace::ApiCall& call : timeline_.api_calls) {
    if (call_of_correlation_.empty()) break;
    if (call.correlation == 0) continue;
    if (const auto asked = call_of_correlation_.find(call.correlation);
        asked != call_of_correlation_.end() && asked->second == kNone)
      asked->second = call.range;
  }
  for (const trace::ApiCall& call : timeline_.api_calls) {
    if (timeline_.ranges.is_async[static_cast<size_t>(call.range)] != 0) continue;  // no work of its thread either
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

void DependencyGraphBuilder::find_events() {
  for (const DeviceOp& record : timeline_.device_ops) {
    if (record.sync_type != kStreamWaitsForEvent || is_work(record)) continue;
    const int32_t source = event_source(record);
    const int64_t asked = record.launch == kNone ? start_of(record.range) : start_of(record.launch);
    const auto& on_stream = asked_[static_cast<size_t>(lane_of(record.range))];
    const auto target = std::partition_point(on_stream.begin(), on_stream.end(),
                                             [&](const Timed& row) { return row.time_ns <= asked; });
    if (source != kNone && target != on_stream.end()) events_.push_back({source, target->range});
  }
}

void DependencyGraphBuilder::make_all_operations() {
  std::vector<size_t> lanes;
  for (size_t lane = 0; lane < content_.size(); ++lane)
    if (!content_[lane].of_host.empty()) lanes.push_back(lane);
  std::stable_sort(lanes.begin(), lanes.end(),
                   [&](size_t a, size_t b) { return content_[a].of_host.size() > content_[b].of_host.size(); });
  std::atomic<size_t> next{0};
  const auto work = [&] {
    for (size_t at = next++; at < lanes.size(); at = next++) make_thread_operations(lanes[at]);
  };
  if (lanes.size() < 2) return work();
  std::thread other(work);
  work();
  other.join();
}

// Of each lane a part: it begins where nothing before was open any more, and holds something that ends before the first
// time of interest. What this is for other lanes than the window's own shows when the operations in it are known.
void DependencyGraphBuilder::make_needed_operations() {
  for (size_t lane = 0; lane < content_.size(); ++lane) {
    content_[lane].needed_from = window_->from_ns;
    make_part(lane);
  }
  for (bool changed = true; changed;) {
    find_needs();
    changed = false;
    for (size_t lane = 0; lane < content_.size(); ++lane)
      for (; !has_all_needed(lane); changed = true) {
        content_[lane].stretches_before *= 2;
        make_part(lane);
      }
  }
}

bool DependencyGraphBuilder::has_all_needed(size_t lane) const {
  const LaneContent& content = content_[lane];
  if (content.first_host == 0 && content.first_device == 0) return true;
  if (!content.operations.empty() && content.operations.front().end_ns <= content.needed_from) return true;
  return content.first_device < content.of_device.size() &&
         end_of(content.of_device[content.first_device]) <= content.needed_from;
}

void DependencyGraphBuilder::make_part(size_t lane) {
  LaneContent& content = content_[lane];
  if (content.fresh.empty()) return;
  const auto behind = std::partition_point(content.fresh.begin(), content.fresh.end(), [&](const auto& fresh) {
    return start_of_stretch(content, fresh) <= content.needed_from;
  });
  const auto before = static_cast<size_t>(behind - content.fresh.begin());
  const auto& first = content.fresh[before - std::min(before, content.stretches_before)];
  content.first_host = first.first;
  content.first_device = first.second;
  make_thread_operations(lane);
}

int64_t DependencyGraphBuilder::start_of_stretch(const LaneContent& content, std::pair<size_t, size_t> first) const {
  int64_t start = std::numeric_limits<int64_t>::max();
  if (first.first < content.of_host.size()) start = start_of(content.of_host[first.first]);
  if (first.second < content.of_device.size()) start = std::min(start, start_of(content.of_device[first.second]));
  return start;
}

int64_t DependencyGraphBuilder::known_from(int32_t lane) const {
  const LaneContent& content = content_[static_cast<size_t>(lane)];
  if (content.first_host == 0 && content.first_device == 0) return kAlways;
  return start_of_stretch(content, {content.first_host, content.first_device});
}

// From where on lanes are needed so that the edges into the window's operations are all there.
void DependencyGraphBuilder::find_needs() {
  const auto need = [this](int32_t lane, int64_t from_ns) {
    int64_t& needed_from = content_[static_cast<size_t>(lane)].needed_from;
    needed_from = std::min(needed_from, from_ns);
  };
  const auto need_range = [&](int32_t range) { need(lane_of(range), start_of(range)); };
  for (const Launch& launch : launches_)
    if (window_->holds(start_of(launch.range))) need(launch.lane, launch.time_ns);
  for (const Event& event : events_)
    if (window_->holds(start_of(event.target))) need_range(event.source);
  // What arrives on a thread after this has its effect in the window.
  std::vector<int64_t> last_before(content_.size(), kAlways);
  for (size_t lane = 0; lane < content_.size(); ++lane) {
    const auto& operations = content_[lane].operations;
    const auto behind = std::partition_point(operations.begin(), operations.end(),
                                             [this](const Operation& o) { return o.start_ns < window_->from_ns; });
    if (behind != operations.begin()) last_before[lane] = std::prev(behind)->start_ns;
  }
  const auto has_effect = [&](size_t lane, int64_t time) { return time > last_before[lane] && time <= window_->to_ns; };
  const trace::Flows& flows = timeline_.flows;
  int64_t room_from = std::numeric_limits<int64_t>::max();
  for (size_t lane = 0; lane < waits_.size(); ++lane)
    for (const Wait& wait : waits_[lane]) {
      if (!has_effect(lane, wait.end_ns)) continue;
      if (wait.source != kNone)
        need_range(wait.source);
      else
        room_from = std::min(room_from, wait.start_ns);
    }
  for (size_t flow = 0; flow < flows.size(); ++flow) {
    if (!is_hand_over(flow)) continue;
    need(flows.to_lane[flow], room_from);
    if (has_effect(static_cast<size_t>(flows.to_lane[flow]), arrival_of(flow)))
      need(flows.from_lane[flow], flows.from_ns[flow]);
  }
}

void DependencyGraphBuilder::make_thread_operations(size_t lane) {
  LaneContent& content = content_[lane];
  auto& cuts = cuts_[lane];
  const auto& waits = waits_[lane];
  const std::span<const int32_t> ranges = std::span(content.of_host).subspan(content.first_host);
  LargeVector<int64_t> cuts_of_part;
  size_t first_wait = 0;
  if (window_) {
    const int64_t from = ranges.empty() ? kAlways : start_of(ranges.front());
    int64_t behind = std::numeric_limits<int64_t>::max();  // the first one still cuts what began in the window
    for (const int64_t cut : cuts) {
      if (cut > needed_to_)
        behind = std::min(behind, cut);
      else if (cut >= from)
        cuts_of_part.push_back(cut);
    }
    cuts_of_part.push_back(behind);
    first_wait = static_cast<size_t>(
        std::partition_point(waits.begin(), waits.end(), [from](const Wait& wait) { return wait.start_ns < from; }) -
        waits.begin());
  } else {
    cuts_of_part.swap(cuts);
  }
  sort_by(cuts_of_part, [](int64_t cut) { return cut; });
  content.operations = thread_operations(timeline_.ranges, ranges, static_cast<int32_t>(lane), cuts_of_part,
                                         std::span(waits).subspan(first_wait));
  sort_by_time(content.operations);
  if (window_)
    content.operations.erase(
        std::partition_point(content.operations.begin(), content.operations.end(),
                             [this](const Operation& operation) { return operation.start_ns <= needed_to_; }),
        content.operations.end());
}

LargeVector<Operation> DependencyGraphBuilder::device_operations() const {
  LargeVector<Operation> operations;
  size_t count = 0;
  for (const LaneContent& content : content_) count += content.of_device.size() - content.first_device;
  operations.reserve(count);
  LargeVector<int32_t> ranges;
  ranges.reserve(count);
  for (const LaneContent& content : content_)
    ranges.insert(ranges.end(), content.of_device.begin() + static_cast<std::ptrdiff_t>(content.first_device),
                  content.of_device.end());
  std::sort(ranges.begin(), ranges.end());
  for (const int32_t range : ranges)
    operations.push_back({start_of(range), end_of(range), range, lane_of(range), kNone});
  sort_by_time(operations);
  return operations;
}

void DependencyGraphBuilder::merge_operations() {
  const LargeVector<Operation> of_devices = device_operations();
  std::vector<std::span<const Operation>> lists{of_devices};
  size_t count = of_devices.size();
  for (const LaneContent& content : content_) {
    lists.emplace_back(content.operations);
    count += content.operations.size();
  }
  operations_.resize(count);
  merge_by_time(lists, operations_.data());
  for (LaneContent& content : content_) content.operations = {};
  operation_of_.assign(timeline_.ranges.size(), kNone);
  for (size_t i = 0; i < count; ++i) {
    const auto range = static_cast<size_t>(operations_[i].range);
    if (is_device(timeline_.ranges.kind[range])) operation_of_[range] = static_cast<int32_t>(i);
  }
}

LargeVector<Edge> DependencyGraphBuilder::edges(const DependencyGraph& graph) const {
  LargeVector<Edge> edges;
  add_launches(graph, edges);
  for (const Event& event : events_)
    edges.push_back({operation_of_[static_cast<size_t>(event.source)], operation_of_[static_cast<size_t>(event.target)],
                     EdgeType::kEvent});
  add_waits(graph, edges);
  add_flows(graph, edges);
  return edges;
}

void DependencyGraphBuilder::add_launches(const DependencyGraph& graph, LargeVector<Edge>& edges) const {
  std::vector<size_t> near(timeline_.lanes.size(), 0);
  for (const Launch& launch : launches_) {
    const int32_t target = operation_of_[static_cast<size_t>(launch.range)];
    if (target == kNone) continue;
    const int32_t from =
        graph.last_of_lane(launch.lane, kAlways, launch.time_ns, &near[static_cast<size_t>(launch.lane)]);
    if (from != kNone) edges.push_back({from, target, EdgeType::kLaunch});
  }
}

void DependencyGraphBuilder::add_waits(const DependencyGraph& graph, LargeVector<Edge>& edges) const {
  for (size_t lane = 0; lane < waits_.size(); ++lane) {
    for (const Wait& wait : waits_[lane]) {
      if (wait.source == kNone || wait.end_ns < known_from(static_cast<int32_t>(lane))) continue;
      const int32_t target = graph.first_of_lane(static_cast<int32_t>(lane), wait.end_ns);
      if (target != kNone) edges.push_back({operation_of_[static_cast<size_t>(wait.source)], target, EdgeType::kSync});
    }
  }
}

// A queue's consumer makes room when it takes an item: right after what it did before. A producer that waited goes on
// then.
void DependencyGraphBuilder::add_flows(const DependencyGraph& graph, LargeVector<Edge>& edges) const {
  struct Room {
    int64_t time_ns;
    int32_t operation;
  };
  std::map<trace::StringId, std::vector<Room>> rooms;                                   // by queue
  std::vector<std::vector<std::pair<int64_t, trace::StringId>>> pushes(waits_.size());  // by lane, in time order
  const trace::Flows& flows = timeline_.flows;
  std::vector<size_t> near(waits_.size(), 0);
  for (size_t i = 0; i < flows.size(); ++i) {
    if (!is_hand_over(i)) continue;
    const auto from_lane = static_cast<size_t>(flows.from_lane[i]), to_lane = static_cast<size_t>(flows.to_lane[i]);
    const int64_t arrival = arrival_of(i);
    pushes[from_lane].emplace_back(flows.from_ns[i], flows.name[i]);
    if (arrival < known_from(flows.to_lane[i]) || arrival > needed_to_) continue;
    const int32_t from = graph.last_of_lane(flows.from_lane[i], kAlways, flows.from_ns[i], &near[from_lane]);
    const int32_t to = graph.first_of_lane(flows.to_lane[i], arrival);
    if (from != kNone && to != kNone) edges.push_back({from, to, EdgeType::kHandOver});
    const int32_t before = graph.last_of_lane(flows.to_lane[i], kAlways, arrival, &near[to_lane]);
    if (before != kNone)
      rooms[flows.name[i]].push_back({graph.operations()[static_cast<size_t>(before)].end_ns, before});
  }
  for (auto& [queue, list] : rooms) sort_by(list, [](const Room& room) { return room.time_ns; });
  for (size_t lane = 0; lane < waits_.size(); ++lane) {
    const auto& pushed = pushes[lane];
    if (pushed.empty()) continue;
    for (const Wait& wait : waits_[lane]) {
      if (wait.source != kNone || wait.end_ns < known_from(static_cast<int32_t>(lane))) continue;
      const auto push =
          std::partition_point(pushed.begin(), pushed.end(), [&](const auto& p) { return p.first <= wait.start_ns; });
      if (push == pushed.begin()) continue;
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
