#include "gpu/timeline/log_timeline.h"

#include <cxxabi.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

namespace strobe::gpu {

using trace::DeviceOp;
using trace::kNone;
using trace::RangeKind;
using trace::StringId;

namespace {

// Labels of Nsight Systems' summaries; CUPTI numbers copies as its exports do.
constexpr const char* kCopies[] = {"Unknown",          "Host-to-Device", "Device-to-Host",  "Host-to-Array",
                                   "Array-to-Host",    "Array-to-Array", "Array-to-Device", "Device-to-Array",
                                   "Device-to-Device", "Host-to-Host",   "Peer-to-Peer"};
constexpr const char* kSyncs[] = {"Unknown sync", "Event sync", "Stream wait sync", "Stream sync", "Context sync"};
constexpr const char* kOverheads[] = {"driver compiler",     "CUPTI buffer flush",   "CUPTI instrumentation",
                                      "CUPTI resource",      "module loading",       "lazy function loading",
                                      "command buffer full", "CUPTI buffer request", "unified memory tracing"};

const char* overhead_name(uint32_t kind) {
  const uint32_t number = kind == 1 ? 0 : (kind & 0xffffU) == 0 ? kind >> 16 : 0xffff;
  return number < std::size(kOverheads) ? kOverheads[number] : "overhead";
}

// CUPTI: 0 unknown, 1 pageable, 2 pinned, ...; exports: 0 pageable, 1 pinned, ..., 7 unknown.
uint8_t memory_kind(uint32_t kind) {
  return kind >= 1 && kind <= 7 ? static_cast<uint8_t>(kind - 1) : 7;
}

// "cudaMemcpyAsync_v3020" -> "cudaMemcpyAsync", as importers have it; "_ptsz" and "_ptds" tell of the default stream.
std::string function_name(std::string name) {
  const auto cut_version = [&name] {
    const size_t digits = name.find_last_not_of("0123456789");
    if (digits != std::string::npos && digits + 1 < name.size() && digits >= 2 &&
        name.compare(digits - 1, 2, "_v") == 0)
      name.resize(digits - 1);
  };
  // The runtime's have it behind the ending ("cudaLaunchKernel_ptsz_v7000"), the driver's before it.
  cut_version();
  for (const char* ending : {"_ptsz", "_ptds"})
    if (name.ends_with(ending)) name.resize(name.size() - 5);
  cut_version();
  return name;
}

}  // namespace

std::string demangled(const std::string& name) {
  constexpr size_t kLongest = 16 << 10;
  if (!name.starts_with("_Z") || name.size() > kLongest) return name;
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status),
                                                         &std::free);
  return status == 0 && text ? std::string(text.get()) : name;
}

LogTimeline::LogTimeline(trace::Timeline& timeline, Places& places, const LogIndex& index, int32_t pid, int64_t zero_ns)
    : timeline_(timeline),
      places_(places),
      index_(index),
      pid_(pid),
      zero_ns_(zero_ns),
      clock_(index.clocks),
      first_op_(timeline.device_ops.size()) {
  for (const auto& [key, name] : index.functions) functions_[key] = timeline.strings.intern(function_name(name));
  for (const auto& [id, device] : index.devices) gpus_[id] = places.gpu(device.uuid, static_cast<int>(id & 0xffff));
}

int64_t LogTimeline::time_of(CuptiTime time) {
  const int64_t at = clock_.to_monotonic_ns(time.ns) - zero_ns_;
  constexpr int64_t kFarthest = int64_t{1} << 60;
  if (at < 0 || at > kFarthest) {
    ++timeline_.losses.faults["GPU event at a time that cannot be"];
    return std::clamp<int64_t>(at, 0, timeline_.duration_ns);
  }
  timeline_.duration_ns = std::max(timeline_.duration_ns, at);
  return at;
}

StringId LogTimeline::text(TextId id) const {
  const auto found = texts_.find(id.id);
  return found == texts_.end() ? 0 : found->second;
}

int LogTimeline::gpu_of(uint32_t device) const {
  const auto found = gpus_.find(device);
  return found == gpus_.end() ? static_cast<int>(device & 0xffff) : found->second;
}

int32_t LogTimeline::stream_lane(const Place& place) {
  const uint32_t device = place.device == kNoNumber ? index_.device_of(place.context) : place.device;
  const int32_t lane = places_.stream(pid_, device, place.context, place.stream);
  const auto named = index_.stream_names.find({place.context, place.stream});
  if (named != index_.stream_names.end() && place.stream != kNoNumber)
    timeline_.lanes[static_cast<size_t>(lane)].name =
        timeline_.strings.intern("stream " + std::to_string(place.stream) + " (" + named->second + ")");
  return lane;
}

void LogTimeline::add(const Record& record) {
  if (const auto* definition = std::get_if<TextDefinition>(&record)) {
    texts_[definition->id] = timeline_.strings.intern(demangled(definition->text));
    return;
  }
  std::visit([this](const auto& one) { event(one); }, record);
}

int32_t LogTimeline::add_range(RangeKind kind, StringId name, int32_t lane, CuptiTime start, CuptiTime end) {
  return add_range_at(kind, name, lane, time_of(start), time_of(end));
}

int32_t LogTimeline::add_range_at(RangeKind kind, StringId name, int32_t lane, int64_t start_ns, int64_t end_ns) {
  trace::Ranges& ranges = timeline_.ranges;
  ranges.start_ns.push_back(start_ns);
  ranges.end_ns.push_back(end_ns);
  ranges.name.push_back(name);
  ranges.lane.push_back(lane);
  ranges.frame.push_back(trace::kNoFrame);
  ranges.is_async.push_back(0);
  ranges.open.push_back(0);
  ranges.kind.resize(ranges.size(), RangeKind::kAnnotation);
  ranges.kind.back() = kind;
  return static_cast<int32_t>(ranges.size() - 1);
}

void LogTimeline::add_argument(const char* key, int64_t value) {
  timeline_.arguments.range.push_back(static_cast<int32_t>(timeline_.ranges.size()) - 1);
  timeline_.arguments.key.push_back(timeline_.strings.intern(key));
  timeline_.arguments.value.emplace_back(value);
}

void LogTimeline::add_counter(const std::string& name, int64_t time_ns, int32_t pid, double value) {
  trace::Counters& counters = timeline_.counters;
  counters.lane.resize(counters.size(), kNone);
  counters.time_ns.push_back(time_ns);
  counters.name.push_back(timeline_.strings.intern(name));
  counters.pid.push_back(pid);
  counters.value.push_back(value);
  counters.lane.push_back(kNone);
}

DeviceOp& LogTimeline::add_op(RangeKind kind, StringId name, const Place& place, CuptiTime start, CuptiTime end,
                              uint32_t correlation) {
  DeviceOp op;
  // What was still under way when CUPTI had to hand it over has a begin only, and what its buffers on the device had no
  // room for was seen to end before.
  const bool measured = start.ns != 0 && end.ns >= start.ns;
  if (measured) {
    op.range = add_range(kind, name, stream_lane(place), start, end);
  } else {
    // Placed at its call's end by finish(), which knows the calls.
    op.range = add_range_at(kind, name, stream_lane(place), 0, 0);
    without_times_.insert(op.range);
    add_argument("no_times", 1);
  }
  op.correlation = correlation;
  worked_ |= kind == RangeKind::kKernel || kind == RangeKind::kGraph;
  timeline_.device_ops.push_back(op);
  ++ops_added_;
  return timeline_.device_ops.back();
}

void LogTimeline::of_graph(int32_t range, uint64_t node) {
  if (node == 0) return;
  add_argument("graph_node", static_cast<int64_t>(node));
  if (const GraphNode* made = index_.capture_of(node); made != nullptr && made->time.ns != 0)
    captures_[places_.thread(pid_, static_cast<int32_t>(made->thread))].push_back({time_of(made->time), range});
}

void LogTimeline::event(const Kernel& kernel) {
  DeviceOp& op =
      add_op(RangeKind::kKernel, text(kernel.name), kernel.place, kernel.start, kernel.end, kernel.correlation);
  op.registers = static_cast<int32_t>(kernel.registers);
  op.static_shared = kernel.static_shared, op.dynamic_shared = kernel.dynamic_shared;
  for (size_t axis = 0; axis < 3; ++axis) op.grid[axis] = kernel.grid[axis], op.block[axis] = kernel.block[axis];
  of_graph(op.range, kernel.graph_node);
  if (kernel.queued.ns != 0 && kernel.start.ns >= kernel.queued.ns)
    add_argument("queued_ns_before", static_cast<int64_t>(kernel.start.ns - kernel.queued.ns));
  if (kernel.submitted.ns != 0 && kernel.start.ns >= kernel.submitted.ns)
    add_argument("submitted_ns_before", static_cast<int64_t>(kernel.start.ns - kernel.submitted.ns));
}

void LogTimeline::event(const Copy& copy) {
  const uint32_t kind = copy.copy_kind < std::size(kCopies) ? copy.copy_kind : 0;
  const StringId name = timeline_.strings.intern(std::string("[CUDA memcpy ") + kCopies[kind] + "]");
  DeviceOp& op = add_op(RangeKind::kCopy, name, copy.place, copy.start, copy.end, copy.correlation);
  op.bytes = static_cast<int64_t>(std::min<uint64_t>(copy.bytes, INT64_MAX));
  op.copy_kind = static_cast<uint8_t>(kind);
  op.source_kind = memory_kind(copy.source_kind), op.target_kind = memory_kind(copy.target_kind);
  if (copy.source_device != kNoNumber) {
    add_argument("source_device", copy.source_device);
    add_argument("target_device", copy.target_device);
  }
  of_graph(op.range, copy.graph_node);
}

void LogTimeline::event(const Set& set) {
  const StringId name = timeline_.strings.intern("[CUDA memset]");
  DeviceOp& op = add_op(RangeKind::kSet, name, set.place, set.start, set.end, set.correlation);
  op.bytes = static_cast<int64_t>(std::min<uint64_t>(set.bytes, INT64_MAX));
  op.target_kind = memory_kind(set.memory_kind);
  of_graph(op.range, set.graph_node);
}

void LogTimeline::event(const Call& call) {
  auto name = functions_.find({call.is_driver, call.function});
  if (name == functions_.end()) {
    const char* who = call.is_driver != 0 ? "CUDA driver call " : "CUDA runtime call ";
    const StringId unknown = timeline_.strings.intern(who + std::to_string(call.function));
    name = functions_.emplace(std::pair{call.is_driver, call.function}, unknown).first;
  }
  const int32_t lane = places_.thread(pid_, static_cast<int32_t>(call.thread));
  const bool ended = call.end.ns >= call.start.ns;
  if (!ended) ++timeline_.losses.faults["CUDA call without an end"];
  const int32_t range = add_range(RangeKind::kApi, name->second, lane, call.start, ended ? call.end : call.start);
  const std::string_view called = timeline_.strings[name->second];
  if (called.starts_with("cudaLaunchKernel") || called.starts_with("cuLaunchKernel")) ++launches_;
  timeline_.api_calls.push_back({range, call.correlation});
  ++calls_added_;
  if (call.return_value != 0) add_argument("return_value", call.return_value);
  if (const auto external = external_.find(call.correlation); external != external_.end()) {
    add_argument("external_id", static_cast<int64_t>(external->second));
    external_.erase(external);
  }
  // A call of the runtime contains those of the driver that it makes, under the same number.
  const auto [outermost, is_new] = calls_.try_emplace(call.correlation, range);
  const auto start = [this](int32_t row) { return timeline_.ranges.start_ns[static_cast<size_t>(row)]; };
  const auto end = [this](int32_t row) { return timeline_.ranges.end_ns[static_cast<size_t>(row)]; };
  const int32_t held = outermost->second;
  if (!is_new && (start(range) < start(held) || (start(range) == start(held) && end(range) > end(held))))
    outermost->second = range;
}

void LogTimeline::event(const Sync& sync) {
  const uint32_t type = sync.type < std::size(kSyncs) ? sync.type : 0;
  DeviceOp& op = add_op(RangeKind::kSync, timeline_.strings.intern(kSyncs[type]),
                        {kNoNumber, sync.context, sync.stream}, sync.start, sync.end, sync.correlation);
  op.sync_type = static_cast<uint8_t>(type);
  if (type != 1 && type != 2) return;
  // Handles of events are used again: only event_sync says which recording is meant.
  const auto recorded = index_.recorded.find(sync.event_sync);
  if (sync.event_sync == 0 || recorded == index_.recorded.end()) return;
  op.sync_correlation = recorded->second.second;
  if (type == 2) op.sync_stream = static_cast<int32_t>(recorded->second.first);
}

void LogTimeline::event(const Overhead& overhead) {
  // That of a whole process or device is shown on its first thread; it may lie across other ranges.
  const int32_t tid = overhead.thread != 0 ? static_cast<int32_t>(overhead.thread) : pid_;
  add_range(RangeKind::kOverhead, timeline_.strings.intern(overhead_name(overhead.kind)), places_.thread(pid_, tid),
            overhead.start, overhead.end);
  timeline_.ranges.is_async.back() = 1;
}

void LogTimeline::event(const External& external) {
  external_[external.correlation] = external.id;
}

void LogTimeline::event(const Marker& marker) {
  constexpr uint32_t kInstant = 1, kStart = 2, kEnd = 4;
  const int32_t lane = places_.thread(pid_, marker.thread != 0 ? static_cast<int32_t>(marker.thread) : pid_);
  if ((marker.flags & kStart) != 0) {
    markers_[marker.id] = {marker.time, text(marker.name), text(marker.domain), lane};
  } else if ((marker.flags & kEnd) != 0) {
    const auto open = markers_.find(marker.id);
    if (open == markers_.end()) {
      ++timeline_.losses.faults["end of a marker without its start"];
      return;
    }
    add_range(RangeKind::kAnnotation, open->second.name, open->second.lane, open->second.time, marker.time);
    timeline_.ranges.is_async.back() = open->second.lane == lane ? 0 : 1;
    timeline_.ranges.categorize_last(0, open->second.domain);
    markers_.erase(open);
  } else if ((marker.flags & kInstant) != 0) {
    trace::Marks& marks = timeline_.marks;
    marks.time_ns.push_back(time_of(marker.time));
    marks.name.push_back(text(marker.name));
    marks.lane.push_back(lane);
    marks.frame.push_back(trace::kNoFrame);
    marks.categorize_last(0, text(marker.domain));
  }
}

void LogTimeline::event(const GraphLaunch& launch) {
  const StringId name = timeline_.strings.intern("CUDA graph " + std::to_string(launch.graph));
  add_op(RangeKind::kGraph, name, launch.place, launch.start, launch.end, launch.correlation);
}

void LogTimeline::event(const Memory& memory) {
  constexpr uint32_t kPinned = 2, kDevice = 3, kManaged = 5;
  if (memory.kind != kPinned && memory.kind != kDevice && memory.kind != kManaged) return;
  allocations_.push_back({time_of(memory.time), memory.device, memory.kind == kPinned, memory.is_release != 0,
                          memory.address, memory.bytes});
}

void LogTimeline::event(const Environment& environment) {
  const std::string gpu = "gpu." + std::to_string(gpu_of(environment.device)) + ".";
  const int64_t time = time_of(environment.time);
  const auto put = [&](const char* name, double value) { add_counter(gpu + name, time, pid_, value); };
  constexpr uint32_t kSpeed = 1, kTemperature = 2, kPower = 3, kCooling = 4;
  if (environment.kind == kSpeed) {
    put("sm_clock_mhz", environment.values[0]);
    put("memory_clock_mhz", environment.values[1]);
    put("clock_event_reasons", environment.values[4]);
  } else if (environment.kind == kTemperature) {
    put("temperature_c", environment.values[0]);
  } else if (environment.kind == kPower) {
    put("power_w", environment.values[0] / 1e3);
  } else if (environment.kind == kCooling) {
    put("fan_percent", environment.values[0]);
  }
}

void LogTimeline::event(const Sample& sample) {
  const int64_t time = sample.monotonic_ns - zero_ns_;
  if (time < 0) return;  // read out of a ring that began before the recording
  const std::string name =
      "gpu." + std::to_string(gpu_of(sample.device)) + "." + std::string(timeline_.strings[text(sample.name)]);
  timeline_.duration_ns = std::max(timeline_.duration_ns, time);
  add_counter(name, time, sample.pid == 0 ? pid_ : static_cast<int32_t>(sample.pid), sample.value);
  ++samples_;
}

void LogTimeline::event(const Metric& metric) {
  if (clock_.to_monotonic_ns(metric.start.ns) < zero_ns_) return;  // sampling may begin before the recording
  const int64_t time = time_of(metric.start);
  add_counter("gpu." + std::to_string(gpu_of(metric.device)) + "." + std::string(timeline_.strings[text(metric.name)]),
              time, pid_, metric.value);
  ++samples_;
}

// The call that was open on the thread when the node was made, or else the range around it.
void LogTimeline::find_captures() {
  const trace::Ranges& ranges = timeline_.ranges;
  std::map<int32_t, std::vector<int32_t>> rows;  // by lane, in order
  for (size_t i = 0; i < ranges.size() && !captures_.empty(); ++i)
    if (ranges.is_async[i] == 0 && !trace::is_device(ranges.kind[i]) && captures_.contains(ranges.lane[i]))
      rows[ranges.lane[i]].push_back(static_cast<int32_t>(i));
  std::unordered_map<int32_t, int32_t> found;  // by the operation's range
  for (auto& [lane, captures] : captures_) {
    const auto start = [&ranges](int32_t row) { return ranges.start_ns[static_cast<size_t>(row)]; };
    const auto end = [&ranges](int32_t row) { return ranges.end_ns[static_cast<size_t>(row)]; };
    std::vector<int32_t>& of_lane = rows[lane];
    std::sort(of_lane.begin(), of_lane.end(),
              [&](int32_t a, int32_t b) { return start(a) != start(b) ? start(a) < start(b) : end(a) > end(b); });
    std::sort(captures.begin(), captures.end(),
              [](const Capture& a, const Capture& b) { return a.time_ns < b.time_ns; });
    std::vector<int32_t> open;
    size_t next = 0;
    for (const Capture& capture : captures) {
      for (; next < of_lane.size() && start(of_lane[next]) <= capture.time_ns; ++next) {
        while (!open.empty() && end(open.back()) < start(of_lane[next])) open.pop_back();
        open.push_back(of_lane[next]);
      }
      while (!open.empty() && end(open.back()) < capture.time_ns) open.pop_back();
      if (!open.empty()) found[capture.range] = open.back();
    }
  }
  for (size_t i = first_op_; i < timeline_.device_ops.size(); ++i)
    if (const auto one = found.find(timeline_.device_ops[i].range); one != found.end())
      timeline_.device_ops[i].capture = one->second;
}

void LogTimeline::finish(GpuSummary& summary) {
  trace::Ranges& ranges = timeline_.ranges;
  find_captures();
  for (size_t i = first_op_; i < timeline_.device_ops.size(); ++i) {
    DeviceOp& op = timeline_.device_ops[i];
    const auto row = static_cast<size_t>(op.range);
    const auto call = op.correlation == 0 ? calls_.end() : calls_.find(static_cast<uint32_t>(op.correlation));
    if (call != calls_.end()) op.launch = call->second;
    if (without_times_.count(op.range) != 0) {
      const int64_t at = call == calls_.end() ? 0 : ranges.end_ns[static_cast<size_t>(call->second)];
      ranges.start_ns[row] = ranges.end_ns[row] = at;
      ++timeline_.losses.faults["GPU operation without times, shown at its call's end"];
      continue;
    }
    if (call == calls_.end() || ranges.kind[row] == RangeKind::kSync) continue;
    const int64_t before = ranges.start_ns[static_cast<size_t>(call->second)] - ranges.start_ns[row];
    if (before <= 0) continue;
    ++summary.before_call;
    summary.worst_before_call_ns = std::max(summary.worst_before_call_ns, before);
  }
  std::stable_sort(allocations_.begin(), allocations_.end(),
                   [](const Allocation& a, const Allocation& b) { return a.time_ns < b.time_ns; });
  std::map<uint64_t, uint64_t> live;  // by address
  std::map<std::string, uint64_t> held;
  for (const Allocation& allocation : allocations_) {
    const std::string name = allocation.pinned
                                 ? "gpu.pinned_bytes"
                                 : "gpu." + std::to_string(gpu_of(allocation.device)) + ".allocated_bytes";
    uint64_t& sum = held[name];
    if (!allocation.release) {
      live[allocation.address] = allocation.bytes;
      sum += allocation.bytes;
    } else {
      // What was allocated before the recording is not in the sum.
      const auto found = live.find(allocation.address);
      if (found == live.end()) continue;
      sum -= std::min(sum, found->second);
      live.erase(found);
    }
    add_counter(name, allocation.time_ns, pid_, static_cast<double>(sum));
  }
  // Seen where another tool took CUPTI's buffers over, and where counters were sampled in the same process.
  if (launches_ > 0 && !worked_ && !index_.flush_timed_out)
    timeline_.losses.faults["launch, of none of which CUPTI gave the work"] += launches_;
  summary.calls += calls_added_;
  summary.operations += ops_added_;
  summary.samples += samples_;
}

}  // namespace strobe::gpu
