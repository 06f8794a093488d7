// What the collectors of this room find, as plain records: decoded out of CUPTI's buffers or read from NVML, kept in a
// log (log_file.h), made into a timeline (timeline/gpu_timeline.h).
//
// Each record lists its fields once, for whoever writes and reads them; fields may only be added at the end.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <variant>

namespace strobe::gpu {

// A text of the log that a TextDefinition gave before; 0: none.
struct TextId {
  uint32_t id = 0;
  auto operator<=>(const TextId&) const = default;
};
// Nanoseconds of CUPTI's clock; 0: not measured.
struct CuptiTime {
  uint64_t ns = 0;
  auto operator<=>(const CuptiTime&) const = default;
};
// Of a device, context or stream that a record does not tell.
inline constexpr uint32_t kNoNumber = 0xffffffff;

struct TextDefinition {
  uint32_t id = 0;
  std::string text;
  void fields(auto&& field) { field(id), field(text); }
};
struct Fact {
  std::string key, value;
  void fields(auto&& field) { field(key), field(value); }
};
// All clocks read at once; width: of the bracket of CLOCK_MONOTONIC around the reading, of which the middle is kept.
struct ClockPair {
  CuptiTime cupti;
  int64_t monotonic_ns = 0, realtime_ns = 0, width_ns = 0;
  void fields(auto&& field) { field(cupti), field(monotonic_ns), field(realtime_ns), field(width_ns); }
};
struct FunctionName {
  uint32_t is_driver = 0, function = 0;
  TextId name;
  void fields(auto&& field) { field(is_driver), field(function), field(name); }
};

// Where work of a device lies.
struct Place {
  uint32_t device = kNoNumber, context = kNoNumber, stream = kNoNumber;
  void fields(auto&& field) { field(device), field(context), field(stream); }
};
struct Kernel {
  CuptiTime start, end, queued, submitted;
  Place place;
  uint32_t correlation = 0;
  TextId name;  // mangled
  std::array<uint32_t, 3> grid{}, block{}, cluster{};
  uint32_t registers = 0;
  int32_t static_shared = -1, dynamic_shared = -1;
  uint64_t local_bytes = 0;  // of the whole launch
  uint32_t shared_executed = 0;
  uint64_t graph_node = 0;  // 0: not of a graph
  uint32_t graph = 0;
  uint32_t launch_type = 0;
  void fields(auto&& field) {
    field(start), field(end), field(queued), field(submitted), place.fields(field), field(correlation), field(name);
    for (auto* three : {&grid, &block, &cluster})
      for (uint32_t& size : *three) field(size);
    field(registers), field(static_shared), field(dynamic_shared), field(local_bytes), field(shared_executed);
    field(graph_node), field(graph), field(launch_type);
  }
};
struct Copy {
  CuptiTime start, end;
  Place place;
  uint32_t correlation = 0;
  uint32_t copy_kind = 0, source_kind = 0, target_kind = 0, is_async = 0;  // as CUPTI numbers them
  uint64_t bytes = 0, graph_node = 0, count = 1;
  uint32_t source_device = kNoNumber, target_device = kNoNumber;  // of a copy between devices
  void fields(auto&& field) {
    field(start), field(end), place.fields(field), field(correlation), field(copy_kind), field(source_kind);
    field(target_kind), field(is_async), field(bytes), field(graph_node), field(count), field(source_device);
    field(target_device);
  }
};
struct Set {
  CuptiTime start, end;
  Place place;
  uint32_t correlation = 0;
  uint32_t value = 0, memory_kind = 0, is_async = 0;
  uint64_t bytes = 0, graph_node = 0;
  void fields(auto&& field) {
    field(start), field(end), place.fields(field), field(correlation), field(value), field(memory_kind);
    field(is_async), field(bytes), field(graph_node);
  }
};
struct Call {
  CuptiTime start, end;
  uint32_t is_driver = 0, function = 0;
  uint32_t process = 0, thread = 0;  // the kernel's ids
  uint32_t correlation = 0, return_value = 0;
  void fields(auto&& field) {
    field(start), field(end), field(is_driver), field(function), field(process), field(thread), field(correlation);
    field(return_value);
  }
};
struct Sync {
  CuptiTime start, end;
  uint32_t type = 0;  // 1 event, 2 stream waits for event, 3 stream, 4 context
  uint32_t context = kNoNumber, stream = kNoNumber, correlation = 0, event = 0;
  uint64_t event_sync = 0;  // which recording of the event; 0: not told
  void fields(auto&& field) {
    field(start), field(end), field(type), field(context), field(stream), field(correlation), field(event);
    field(event_sync);
  }
};
struct EventRecorded {
  Place place;
  uint32_t correlation = 0, event = 0;
  uint64_t event_sync = 0;
  CuptiTime device_time;
  void fields(auto&& field) {
    place.fields(field), field(correlation), field(event), field(event_sync), field(device_time);
  }
};
struct Overhead {
  CuptiTime start, end;
  uint32_t kind = 0, process = 0, thread = 0, correlation = 0;  // process 0: of a device or context
  void fields(auto&& field) {
    field(start), field(end), field(kind), field(process), field(thread), field(correlation);
  }
};
struct External {
  uint32_t kind = 0, correlation = 0;
  uint64_t id = 0;
  void fields(auto&& field) { field(kind), field(correlation), field(id); }
};
struct Marker {
  CuptiTime time;
  uint32_t flags = 0, id = 0, process = 0, thread = 0;
  TextId name, domain;
  void fields(auto&& field) {
    field(time), field(flags), field(id), field(process), field(thread), field(name), field(domain);
  }
};
struct Device {
  uint32_t id = 0;
  TextId name;
  std::array<uint64_t, 2> uuid{};
  uint64_t memory_bytes = 0, memory_kb_per_s = 0;
  uint32_t l2_bytes = 0, clock_khz = 0, multiprocessors = 0, copy_engines = 0, threads_per_warp = 0, warps_per_sm = 0,
           blocks_per_sm = 0, shared_per_sm = 0, registers_per_sm = 0, compute_major = 0, compute_minor = 0;
  uint32_t is_mig = 0, gpu_instance = 0, compute_instance = 0;
  void fields(auto&& field) {
    field(id), field(name), field(uuid[0]), field(uuid[1]), field(memory_bytes), field(memory_kb_per_s);
    for (uint32_t* number :
         {&l2_bytes, &clock_khz, &multiprocessors, &copy_engines, &threads_per_warp, &warps_per_sm, &blocks_per_sm,
          &shared_per_sm, &registers_per_sm, &compute_major, &compute_minor, &is_mig, &gpu_instance, &compute_instance})
      field(*number);
  }
};
struct Context {
  uint32_t id = 0, device = 0, null_stream = 0, parent = 0, is_green = 0, multiprocessors = 0;
  void fields(auto&& field) {
    field(id), field(device), field(null_stream), field(parent), field(is_green), field(multiprocessors);
  }
};
struct Stream {
  uint32_t context = 0, id = 0;
  int32_t priority = 0;
  uint32_t flag = 0;
  void fields(auto&& field) { field(context), field(id), field(priority), field(flag); }
};
struct ObjectName {
  uint32_t object = 0, process = 0, thread = 0;
  Place place;
  TextId name;
  void fields(auto&& field) { field(object), field(process), field(thread), place.fields(field), field(name); }
};
struct GraphLaunch {
  CuptiTime start, end;
  Place place;
  uint32_t correlation = 0, graph = 0;
  void fields(auto&& field) { field(start), field(end), place.fields(field), field(correlation), field(graph); }
};
struct Memory {
  CuptiTime time;
  uint32_t is_release = 0, kind = 0, correlation = 0, process = 0, device = 0, context = 0, stream = 0, is_async = 0;
  uint64_t address = 0, bytes = 0;
  uint64_t pool_size = 0, pool_used = 0;
  void fields(auto&& field) {
    field(time), field(is_release), field(kind), field(correlation), field(process), field(device), field(context);
    field(stream), field(is_async), field(address), field(bytes), field(pool_size), field(pool_used);
  }
};
struct MemoryPool {
  CuptiTime time;
  uint32_t operation = 0, device = 0;
  uint64_t address = 0, size = 0, used = 0;
  void fields(auto&& field) { field(time), field(operation), field(device), field(address), field(size), field(used); }
};
struct Environment {
  CuptiTime time;
  uint32_t device = 0, kind = 0;
  std::array<uint32_t, 5> values{};
  void fields(auto&& field) {
    field(time), field(device), field(kind);
    for (uint32_t& value : values) field(value);
  }
};

// Every record that CUPTI had made by then is in the log.
struct Complete {
  CuptiTime up_to;
  void fields(auto&& field) { field(up_to); }
};
struct Loss {
  std::string kind;
  uint64_t count = 0;
  void fields(auto&& field) { field(kind), field(count); }
};
// A figure of NVML, at a time of CLOCK_MONOTONIC. pid 0: of the whole device.
struct Sample {
  int64_t monotonic_ns = 0;
  uint32_t device = 0;
  TextId name;
  double value = 0;
  uint32_t pid = 0;
  void fields(auto&& field) { field(monotonic_ns), field(device), field(name), field(value), field(pid); }
};
// The collector stopped in order.
struct End {
  uint32_t flush_timed_out = 0;
  void fields(auto&& field) { field(flush_timed_out); }
};
// A hardware counter's figure from its time to the next one's.
struct Metric {
  CuptiTime start;
  uint32_t device = 0;
  TextId name;
  double value = 0;
  void fields(auto&& field) { field(start), field(device), field(name), field(value); }
};

// A node of a graph was made, on a thread (the kernel's id), by a call that contains this time.
struct GraphNode {
  CuptiTime time;
  uint32_t thread = 0;
  uint64_t node = 0;
  uint64_t original = 0;  // of which it is the copy; 0: captured from a stream, or added by hand
  uint32_t type = 0;      // as CUDA numbers it: 0 kernel, 1 copy, 2 set, ...
  void fields(auto&& field) { field(time), field(thread), field(node), field(original), field(type); }
};

// A kernel that was run again and again for its counters; its figures follow it.
struct ReplayedKernel {
  uint64_t order = 0;  // in its process, from 1
  uint32_t device = 0, thread = 0;
  TextId name;  // mangled; 0: its launch could not be matched
  std::array<uint32_t, 3> grid{}, block{};
  void fields(auto&& field) {
    field(order), field(device), field(thread), field(name);
    for (auto* three : {&grid, &block})
      for (uint32_t& size : *three) field(size);
  }
};
struct ReplayedValue {
  uint64_t order = 0;
  TextId figure;
  double value = 0;
  void fields(auto&& field) { field(order), field(figure), field(value); }
};

// The place in this list is what the log writes: new kinds go to the end.
using Record =
    std::variant<TextDefinition, Fact, ClockPair, FunctionName, Kernel, Copy, Set, Call, Sync, EventRecorded, Overhead,
                 External, Marker, Device, Context, Stream, ObjectName, GraphLaunch, Memory, MemoryPool, Environment,
                 Complete, Loss, Sample, End, Metric, GraphNode, ReplayedKernel, ReplayedValue>;

}  // namespace strobe::gpu
