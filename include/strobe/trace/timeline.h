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
};

// Named, nested intervals. All columns have the same length; rows are sorted by start time, then longest first, so that
// a parent stands before its children. Times: nanoseconds since Timeline::start.
struct Ranges {
  std::vector<int64_t> start_ns;
  std::vector<int64_t> end_ns;  // of a range that was still open at the end: the end of the trace, see `open`
  std::vector<StringId> name;
  std::vector<int32_t> lane;      // index into lanes
  std::vector<int64_t> frame;     // kNoFrame: inherits from its parent, which finish() has done
  std::vector<int32_t> parent;    // index into ranges; kNone: outermost, or asynchronous
  std::vector<uint8_t> is_async;  // may end on another lane and does not nest
  std::vector<uint8_t> open;      // had no end in the recording
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
  size_t size() const { return time_ns.size(); }
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
  size_t size() const { return time_ns.size(); }
};

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
  Flows flows;
  Counters counters;
  std::vector<NetworkLayer> layers;
  std::vector<NetworkKernel> kernels;
  std::map<std::string, std::string> facts;  // machine, versions, options: "engine", "cpu.model", ...
  Losses losses;
  int64_t utc_start_ns = 0;  // wall clock of time 0, nanoseconds since the epoch
  int64_t duration_ns = 0;

  // To be called once by whoever fills a timeline (a second call changes nothing but repeats the fault counts):
  //   - ranges, marks, counters and flows come into time order, arguments into the order of their ranges;
  //   - parents: the innermost range of the same lane that contains the range (both ends included). Ranges of a lane
  //     that overlap without nesting are counted as a fault; neither becomes the other's parent;
  //   - frames are inherited from parents;
  //   - what points at ranges (arguments, flows) follows them. The end of a flow that has a lane but no range gets the
  //     innermost range that was open there and then.
  void finish();
};

}  // namespace strobe::trace
