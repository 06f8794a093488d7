// Timeline: everything that happened, as a struct of arrays. Importers and the spool reader fill it, the SQLite store
// keeps it, every analysis is a function of it and of nothing else.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <variant>
#include <vector>

#include "base/table.h"

namespace strobe::trace {

using StringId = uint32_t;
inline constexpr int64_t kNoFrame = -1;
inline constexpr int32_t kNone = -1;

// Every text of a timeline once. Id 0 is the empty string.
class Strings {
 public:
  Strings() { intern(""); }
  Strings(const Strings&) = delete;
  Strings& operator=(const Strings&) = delete;
  Strings(Strings&&) = default;
  Strings& operator=(Strings&&) = default;

  StringId intern(std::string_view text);
  std::string_view operator[](StringId id) const { return *texts_[id]; }
  // The id of a text that is already there, else kNone.
  int64_t find(std::string_view text) const;
  size_t size() const { return texts_.size(); }

 private:
  // Lets a view be looked up without making a string of it.
  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
  };
  std::unordered_map<std::string, StringId, Hash, std::equal_to<>> ids_;
  std::vector<const std::string*> texts_;  // keys of ids_, whose addresses are stable
};

struct Process {
  int32_t pid = 0;
  StringId name = 0;
};

// Where something happens: a thread, a stream, a copy engine.
struct Lane {
  enum class Kind : uint8_t { kThread, kStream, kCopyEngine } kind = Kind::kThread;
  int32_t pid = 0;
  int32_t tid = 0;  // of a thread; stream id of a stream
  StringId name = 0;
  int32_t device = kNone;   // of a stream or copy engine: the device's number as the process saw it
  int32_t context = kNone;  // of a stream: unique within its process and device where the trace tells it
};

// What a range is. Those from kKernel on are work of a device and lie on streams.
enum class RangeKind : uint8_t {
  kAnnotation,  // what a program says of itself: our own annotations, NVTX, ITT
  kOperator,    // a framework's operation, e.g. "aten::conv2d"
  kApi,         // a call of the device's runtime or driver
  kOs,          // a call of the operating system's library
  kOverhead,    // time that the recording tool itself took
  kKernel,
  kCopy,
  kSet,    // memset
  kSync,   // a stream waits for an event, or a wait for a stream or context
  kGraph,  // a whole graph launch, recorded without its kernels
};
inline constexpr bool is_device(RangeKind kind) {
  return kind >= RangeKind::kKernel;
}

// Named, nested intervals. All columns have the same length; rows are sorted by start time, then longest first, so that
// a parent stands before its children. Times: nanoseconds since the trace's first event.
struct Ranges {
  std::vector<int64_t> start_ns;
  std::vector<int64_t> end_ns;  // of a range that was still open at the end: the end of the trace, see `open`
  std::vector<StringId> name;
  std::vector<int32_t> lane;      // index into lanes
  std::vector<int64_t> frame;     // kNoFrame: inherits from its parent, which finish() has done
  std::vector<int32_t> parent;    // index into ranges; kNone: outermost, or asynchronous
  std::vector<uint8_t> is_async;  // may end on another lane and does not nest
  std::vector<uint8_t> open;      // had no end in the recording
  std::vector<RangeKind> kind;    // may be left empty by whoever knows only annotations; finish() fills it
  // A name that groups ranges, within a domain (usually the library that speaks); 0: none. Either column may be shorter
  // than the others, or empty where no range has one: finish() lengthens it only if it is not empty.
  std::vector<StringId> category, domain;
  StringId category_of(size_t i) const { return i < category.size() ? category[i] : 0; }
  StringId domain_of(size_t i) const { return i < domain.size() ? domain[i] : 0; }
  // Of the last range that was added. Without either, nothing is stored.
  void categorize_last(StringId category_name, StringId domain_name);
  size_t size() const { return start_ns.size(); }
};

struct Arguments {
  std::vector<int32_t> range;  // index into ranges, ascending
  std::vector<StringId> key;
  std::vector<std::variant<int64_t, double, StringId>> value;
  size_t size() const { return range.size(); }
};

struct Marks {
  std::vector<int64_t> time_ns;
  std::vector<StringId> name;
  std::vector<int32_t> lane;
  std::vector<int64_t> frame;
  std::vector<StringId> category, domain;  // as those of ranges
  StringId category_of(size_t i) const { return i < category.size() ? category[i] : 0; }
  StringId domain_of(size_t i) const { return i < domain.size() ? domain[i] : 0; }
  void categorize_last(StringId category_name, StringId domain_name);
  size_t size() const { return time_ns.size(); }
};

struct MarkArguments {
  std::vector<int32_t> mark;  // index into marks, ascending
  std::vector<StringId> key;
  std::vector<std::variant<int64_t, double, StringId>> value;
  size_t size() const { return mark.size(); }
};

struct Flows {
  std::vector<StringId> name;
  std::vector<int64_t> from_ns, to_ns;
  std::vector<int32_t> from_range, to_range;  // the innermost open range at either end; kNone: outside any
  std::vector<int32_t> from_lane, to_lane;
  size_t size() const { return name.size(); }
};

struct Counters {
  std::vector<int64_t> time_ns;
  std::vector<StringId> name;
  std::vector<int32_t> pid;
  std::vector<double> value;
  // The thread that it is about; kNone: the whole process. May be shorter than the others, as categories of ranges.
  std::vector<int32_t> lane;
  int32_t lane_of(size_t i) const { return i < lane.size() ? lane[i] : kNone; }
  size_t size() const { return time_ns.size(); }
};

// What a device did, beyond its range. Enumerations are those of Nsight Systems exports (docs/trace-format.md).
struct DeviceOp {
  int32_t range = kNone;    // of a device kind
  int32_t launch = kNone;   // the range of the API call that asked for it
  int32_t capture = kNone;  // of a graph's node: the call, or else the range, in which it was captured or added
  int64_t correlation = 0;  // as the trace numbers it within a process; 0: none
  int64_t bytes = -1;       // of a copy or set; -1: not known
  uint8_t copy_kind = 0;    // 1 host to device, 2 device to host, 8 device to device, 10 peer to peer, ...
  uint8_t source_kind = 7;  // memory: 0 pageable, 1 pinned, 2 device, 3 array, 4 managed, 5, 6 static, 7 unknown
  uint8_t target_kind = 7;
  uint8_t sync_type = 0;         // 1 event, 2 stream waits for event, 3 stream, 4 context; 0: no synchronisation
  int32_t sync_stream = kNone;   // of type 2: the stream on which the event was recorded
  int64_t sync_correlation = 0;  // of type 1 and 2: of the API call that recorded the event; 0: unknown
  uint32_t grid[3] = {0, 0, 0};  // of a kernel; 0: not known
  uint32_t block[3] = {0, 0, 0};
  int32_t registers = -1;                           // a thread; -1: not known
  int32_t static_shared = -1, dynamic_shared = -1;  // bytes a block; -1: not known
};

// A call of the device's runtime or driver, beyond its range.
struct ApiCall {
  int32_t range = kNone;
  int64_t correlation = 0;  // 0: none
};

// A thread ran on a core.
struct CoreRun {
  int64_t start_ns = 0, end_ns = 0;
  int32_t core = 0, pid = 0, tid = 0;
  StringId name = 0;       // the thread's
  StringId holder = 0;     // of a trace of tenants: the tenant that it works for, "recorder" (for strobe) or "system"
  bool preempted = false;  // it would have gone on: from its end it waits for a core
};

// A table that a log already held, kept as it was: nvprof's summaries and its dependency analysis.
using ImportedTables = std::vector<Table>;

// One layer of the network that ran, with its static cost for one item.
struct NetworkLayer {
  StringId name = 0, type = 0, shape = 0;
  int64_t parameters = 0;
  int64_t flop = 0;   // floating-point operations; a multiply-add counts 2
  int64_t bytes = 0;  // read and written once: inputs, weights, outputs
};

// One kernel as the engine executed it. duration_ns: one entry a profiled run.
struct NetworkKernel {
  StringId name = 0, type = 0, implementation = 0;
  std::vector<int32_t> layers;  // indices into Timeline::layers; the fusion map
  std::vector<int64_t> duration_ns;
};

// What the recording itself lost or could not read, by kind: shown with every result.
struct Losses {
  uint64_t dropped_records = 0;
  std::map<std::string, uint64_t> faults;  // "unmatched pop": 3
};

struct Timeline {
  Strings strings;
  std::vector<Process> processes;
  std::vector<Lane> lanes;
  Ranges ranges;
  Arguments arguments;
  Marks marks;
  MarkArguments mark_arguments;
  Flows flows;
  Counters counters;
  std::vector<NetworkLayer> layers;
  std::vector<NetworkKernel> kernels;
  std::vector<DeviceOp> device_ops;  // by range, ascending
  std::vector<ApiCall> api_calls;    // by range, ascending
  std::vector<CoreRun> core_runs;    // by core, then time
  ImportedTables tables;
  std::map<std::string, std::string> facts;  // machine, versions, options: "engine", "cpu.model", ...
  Losses losses;
  int64_t utc_start_ns = 0;  // wall clock of time 0, nanoseconds since the epoch
  // CLOCK_MONOTONIC of time 0, by which other logs of this recording join; known of a spool, not kept in the store.
  int64_t monotonic_start_ns = 0;
  int64_t duration_ns = 0;

  // To be called once by whoever fills a timeline (a second call changes nothing but repeats the fault counts):
  //   - ranges, marks, counters and flows come into time order, arguments into the order of their ranges;
  //   - parents: the innermost range of the same lane that contains the range (both ends included). Ranges of a lane
  //     that overlap without nesting are counted as a fault; neither becomes the other's parent;
  //   - frames are inherited from parents, and by device operations from the call that launched them;
  //   - what points at ranges (arguments, flows, device operations, API calls) or marks (arguments) follows them;
  //   - device operations without a launch get the API call of the same process with their correlation;
  //   - the end of a flow that has a lane but no range gets the innermost range that was open there and then.
  void finish();
};

}  // namespace strobe::trace
