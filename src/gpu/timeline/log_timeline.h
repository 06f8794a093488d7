// One process's log on its way into a timeline.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "gpu/activity.h"
#include "gpu/clock_align.h"
#include "gpu/timeline/gpu_timeline.h"

namespace strobe::gpu {

// Rows of the timeline by what they are about, shared by all logs.
class Places {
 public:
  explicit Places(trace::Timeline& timeline);
  int32_t thread(int32_t pid, int32_t tid);
  int32_t stream(int32_t pid, uint32_t device, uint32_t context, uint32_t stream);
  // The number of a device over all processes, by its unique id; `wanted` where it is new and free.
  int gpu(const std::array<uint64_t, 2>& uuid, int wanted);
  // Another id of that device: of a part of it, under MIG.
  void also_called(const std::array<uint64_t, 2>& uuid, int gpu) { gpus_.emplace(uuid, gpu); }

 private:
  void process(int32_t pid);
  trace::Timeline& timeline_;
  std::map<std::pair<int32_t, int32_t>, int32_t> threads_;
  std::map<std::tuple<int32_t, uint32_t, uint32_t, uint32_t>, int32_t> streams_;
  std::set<int32_t> processes_;
  std::map<std::array<uint64_t, 2>, int> gpus_;
};

// What a log says that is needed before its events can be placed.
class LogIndex {
 public:
  void add(const Record& record);

  std::vector<ClockPair> clocks;
  std::map<std::string, std::string> facts;
  std::map<uint32_t, Device> devices;
  std::map<uint32_t, std::string> device_names;
  std::map<uint32_t, Context> contexts;
  std::map<std::pair<uint32_t, uint32_t>, Stream> streams;            // by context and id
  std::map<uint64_t, std::pair<uint32_t, uint32_t>> recorded;         // by event_sync: stream and call
  std::map<std::pair<uint32_t, uint32_t>, std::string> functions;     // by is_driver and number
  std::map<std::pair<uint32_t, uint32_t>, std::string> stream_names;  // by context and id
  std::map<std::string, uint64_t> losses;
  uint64_t complete_to = 0;  // CUPTI's clock
  bool ended = false, flush_timed_out = false;
  // Where a node of a graph was captured: followed from copy to original. Null: before the recording.
  const GraphNode* capture_of(uint64_t node) const;
  // The context's device; kNoNumber: not told.
  uint32_t device_of(uint32_t context) const;

 private:
  const std::string& text(TextId id) const;
  std::unordered_map<uint32_t, std::string> texts_;
  std::unordered_map<uint64_t, GraphNode> made_, copied_;  // by node
};

// A kernel's name as its source has it; what is no mangled name stays as it is.
std::string demangled(const std::string& name);

// Takes the events of one log.
class LogTimeline {
 public:
  // zero_ns: CLOCK_MONOTONIC of the timeline's time 0.
  LogTimeline(trace::Timeline& timeline, Places& places, const LogIndex& index, int32_t pid, int64_t zero_ns);
  void add(const Record& record);
  // Kernels against their calls; counters of memory. Adds to the summary.
  void finish(GpuSummary& summary);
  const ClockAlignment& clock() const { return clock_; }
  int64_t time_of(CuptiTime time);

 private:
  void event(const Kernel& kernel);
  void event(const Copy& copy);
  void event(const Set& set);
  void event(const Call& call);
  void event(const Sync& sync);
  void event(const Overhead& overhead);
  void event(const External& external);
  void event(const Marker& marker);
  void event(const GraphLaunch& launch);
  void event(const Memory& memory);
  void event(const Environment& environment);
  void event(const Sample& sample);
  void event(const Metric& metric);
  template <typename Other>
  void event(const Other&) {}  // known from the index

  int32_t add_range(trace::RangeKind kind, trace::StringId name, int32_t lane, CuptiTime start, CuptiTime end);
  int32_t add_range_at(trace::RangeKind kind, trace::StringId name, int32_t lane, int64_t start_ns, int64_t end_ns);
  trace::DeviceOp& add_op(trace::RangeKind kind, trace::StringId name, const Place& place, CuptiTime start,
                          CuptiTime end, uint32_t correlation);
  void of_graph(int32_t range, uint64_t node);
  void find_captures();
  void add_argument(const char* key, int64_t value);
  void add_counter(const std::string& name, int64_t time_ns, int32_t pid, double value);
  trace::StringId text(TextId id) const;
  int gpu_of(uint32_t device) const;
  int32_t stream_lane(const Place& place);

  struct Allocation {
    int64_t time_ns;
    uint32_t device;
    bool pinned, release;
    uint64_t address, bytes;
  };
  struct Capture {
    int64_t time_ns;
    int32_t range;  // of the operation
  };
  struct OpenMarker {
    CuptiTime time;
    trace::StringId name, domain;
    int32_t lane;
  };
  trace::Timeline& timeline_;
  Places& places_;
  const LogIndex& index_;
  const int32_t pid_;
  const int64_t zero_ns_;
  const ClockAlignment clock_;
  std::unordered_map<uint32_t, trace::StringId> texts_;
  std::map<std::pair<uint32_t, uint32_t>, trace::StringId> functions_;
  std::map<uint32_t, int> gpus_;
  std::unordered_map<uint32_t, uint64_t> external_;
  std::unordered_map<uint32_t, OpenMarker> markers_;
  std::vector<Allocation> allocations_;
  // The outermost call of each number: its row of ranges.
  std::unordered_map<uint32_t, int32_t> calls_;
  size_t first_op_;
  std::map<int32_t, std::vector<Capture>> captures_;  // by lane of the thread
  std::set<int32_t> without_times_;                   // rows of ranges
  uint64_t calls_added_ = 0, ops_added_ = 0, samples_ = 0, launches_ = 0;
  bool worked_ = false;
};

}  // namespace strobe::gpu
