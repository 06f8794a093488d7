// DependencyGraph: what had to be finished before what. The base of the critical path and of what-if.
//
// Operations are pieces of time in which a lane did one thing: of a thread, the parts of its ranges that no inner range
// covers, cut where another lane depends on them or they on it; of a stream or copy engine, its operations. Time in
// which a range only waits for another lane (a blocking synchronisation up to the end of what it waits for,
// back-pressure) is no operation.
// Every edge leads from an operation to one that starts when or after it ends, so the graph has no cycle.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "analyze/dependency_graph_memory.h"
#include "strobe/trace/timeline.h"

namespace strobe::analyze {

enum class EdgeType : uint8_t {
  kThread,        // the operation before on the same thread
  kLaunch,        // API call -> device operation
  kStream,        // the operation before on the same stream
  kEvent,         // a stream waits for another's operation
  kSync,          // device operation -> end of the call that waited for it
  kHandOver,      // flow from one thread to another: queues, locks, messages
  kBackPressure,  // a full queue's consumer made room -> its producer goes on
};
inline constexpr size_t kEdgeTypes = 7;
const char* name_of(EdgeType type);

struct Operation {
  int64_t start_ns = 0, end_ns = 0;
  int32_t range = trace::kNone;
  int32_t lane = trace::kNone;
  int32_t waited_in = trace::kNone;  // the range that waited directly before it, e.g. a blocking call
};

struct Edge {
  int32_t from = 0, to = 0;
  EdgeType type = EdgeType::kThread;
};

// A part of a trace's time, both ends included.
struct TimeSpan {
  int64_t from_ns = 0, to_ns = 0;
  bool holds(int64_t time_ns) const { return time_ns >= from_ns && time_ns <= to_ns; }
};

class DependencyGraph {
 public:
  // Of the whole trace: O(n log lanes) of ranges, device operations and flows, on two threads. Of a window: the
  // operations that start in it, with all edges into them, and those before it that these edges come from; among the
  // latter others may be missing, and edges into them. What starts in the window has its whole length.
  explicit DependencyGraph(const trace::Timeline& timeline, std::optional<TimeSpan> window = std::nullopt);
  // A graph made by hand; operations must be sorted by start and end, edges must lead forward.
  DependencyGraph(const std::vector<Operation>& operations, const std::vector<Edge>& edges);

  std::span<const Operation> operations() const { return operations_; }  // by start, then end
  size_t edge_count() const;
  bool has(EdgeType type) const;

  // The edges into an operation. The one from the operation before on its lane, which is stored as a number, comes
  // first, then others of its lane, then by source.
  class Edges {
   public:
    class Iterator {
     public:
      using value_type = Edge;
      using difference_type = std::ptrdiff_t;
      Iterator(const Edge* at, Edge own) : at_(at), own_(own) {}
      Edge operator*() const { return own_.from != trace::kNone ? own_ : *at_; }
      Iterator& operator++() {
        if (own_.from != trace::kNone)
          own_.from = trace::kNone;
        else
          ++at_;
        return *this;
      }
      bool operator==(const Iterator& other) const { return at_ == other.at_ && own_.from == other.own_.from; }

     private:
      const Edge* at_;
      Edge own_;
    };
    Edges(const Edge* first, const Edge* last, Edge own) : first_(first), last_(last), own_(own) {}
    Iterator begin() const { return {first_, own_}; }
    Iterator end() const { return {last_, {trace::kNone, own_.to, own_.type}}; }

   private:
    const Edge* first_;
    const Edge* last_;
    Edge own_;
  };
  Edges into(int32_t operation) const {
    const auto at = static_cast<size_t>(operation);
    return {edges_.data() + first_edge_[at], edges_.data() + first_edge_[at + 1], order_edge(operation)};
  }
  // Parts of the above: the operation before on the same lane (kNone: none), and all other edges.
  int32_t previous(int32_t operation) const { return previous_[static_cast<size_t>(operation)]; }
  std::span<const Edge> others_into(int32_t operation) const {
    const auto at = static_cast<size_t>(operation);
    return {edges_.data() + first_edge_[at], edges_.data() + first_edge_[at + 1]};
  }
  // From the predecessor that ended last (ties: the same lane, then the smaller number).
  std::optional<Edge> latest(int32_t operation) const;
  // Time in which the operation's thread, with nothing else to do, waited for another lane's operation; of a device
  // operation: for one of another stream.
  int64_t waiting_ns(int32_t operation) const;
  // Dependencies of the operations that start in the window that the trace told of, but whose times contradict them:
  // an effect before its cause.
  size_t contradictions() const { return contradictions_; }
  // The last operation of a lane that ends in [from_ns, time_ns]; kNone. near: of the caller's, 0 at first; questions
  // about one lane that follow each other in time are then answered without searching all of it.
  int32_t last_of_lane(int32_t lane, int64_t from_ns, int64_t time_ns, size_t* near = nullptr) const;
  // The first operation of a lane that starts at or after a time; kNone.
  int32_t first_of_lane(int32_t lane, int64_t time_ns) const;
  // The operation that ends last at or before a time, on any lane; kNone.
  int32_t last_before(int64_t from_ns, int64_t time_ns) const;

 private:
  Edge order_edge(int32_t operation) const {
    const auto at = static_cast<size_t>(operation);
    const auto lane = static_cast<size_t>(operations_[at].lane);
    return {previous_[at], operation,
            lane < is_thread_.size() && !is_thread_[lane] ? EdgeType::kStream : EdgeType::kThread};
  }
  void index_lanes();
  void index_order();
  // The first place in a lane whose operation starts after a time, sought from `near` on.
  size_t first_behind(const LargeVector<int32_t>& of_lane, int64_t time_ns, size_t near) const;
  void index_edges(std::span<const Edge> edges, TimeSpan counted);
  void sort_edges_into(size_t target, std::span<Edge> edges) const;

  LargeVector<Operation> operations_;
  size_t count_ = 0;
  LargeVector<int32_t> previous_;
  LargeVector<Edge> edges_;  // by target, but for those from previous_
  LargeVector<uint32_t> first_edge_;
  std::vector<LargeVector<int32_t>> of_lane_;  // operations of each lane in time order
  std::vector<uint8_t> is_thread_;             // by lane; empty: all are
  size_t contradictions_ = 0;
};

// Names of API calls that wait until a device has done something: cudaStreamSynchronize, cuCtxSynchronize, cudaMemcpy,
// hipDeviceSynchronize, ... with or without nvprof's and Nsight's suffixes.
bool is_blocking_call(std::string_view name);

// Latest end of each operation such that the last of them may still end when it did, by services alone; INT64_MAX for
// those that it does not depend on. Then slack = latest end - end. Operations before `first` are left out.
LargeVector<int64_t> latest_ends(const DependencyGraph& graph, int32_t first, int32_t last);

// Ends of the operations first..last (result[i] is of first + i) when each starts as soon as all it depends on has
// ended and then waits as long as it did beyond that: waits without a recorded reason are kept. services: of the same
// operations. What came before `first` stays as it was.
LargeVector<int64_t> replayed_ends(const DependencyGraph& graph, int32_t first, int32_t last,
                                   std::span<const int64_t> services);

// Ends of the operation `last` in several such replays at once, at most kReplaysAtOnce: in replay i the operations of
// ranges whose name has number i take no time (by name; kNone: in none).
inline constexpr size_t kReplaysAtOnce = 12;
std::vector<int64_t> ends_without(const DependencyGraph& graph, int32_t first, int32_t last, size_t replays,
                                  const std::vector<int32_t>& number_of_name,
                                  const std::vector<trace::StringId>& name_of_range);

}  // namespace strobe::analyze
