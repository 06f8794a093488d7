// DependencyGraph: what had to be finished before what. The base of the critical path and of what-if.
//
// Operations are pieces of time in which a lane did one thing: of a thread, the parts of its ranges that no inner range
// covers, cut where another lane depends on them or they on it; of a stream or copy engine, its operations. Time in
// which a range only waits for another lane (a blocking synchronisation up to the end of what it waits for,
// back-pressure) is no operation.
// Every edge leads from an operation to one that starts when or after it ends, so the graph has no cycle.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

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

class DependencyGraph {
 public:
  // O(n log n) of ranges, device operations and flows.
  explicit DependencyGraph(const trace::Timeline& timeline);
  // A graph made by hand; operations must be sorted by start and end, edges must lead forward.
  DependencyGraph(std::vector<Operation> operations, const std::vector<Edge>& edges);

  const std::vector<Operation>& operations() const { return operations_; }  // by start, then end
  size_t edge_count() const { return edges_.size(); }
  // The edges into an operation. Those of the same lane come first.
  struct Edges {
    const Edge* first;
    const Edge* last;
    const Edge* begin() const { return first; }
    const Edge* end() const { return last; }
  };
  Edges into(int32_t operation) const {
    const auto at = static_cast<size_t>(operation);
    return {edges_.data() + first_edge_[at], edges_.data() + first_edge_[at + 1]};
  }
  // The predecessor that ended last (ties: the same lane, then the smaller number); nullptr: it has none.
  const Edge* latest(int32_t operation) const;
  // Time in which the operation's thread, with nothing else to do, waited for another lane's operation; of a device
  // operation: for one of another stream.
  int64_t waiting_ns(int32_t operation) const;
  // Dependencies that the trace told of, but whose times contradict them: an effect before its cause.
  size_t contradictions() const { return contradictions_; }
  // The last operation of a lane that ends in [from_ns, time_ns]; kNone. near: of the caller's, 0 at first; questions
  // about one lane that follow each other in time are then answered without searching all of it.
  int32_t last_of_lane(int32_t lane, int64_t from_ns, int64_t time_ns, size_t* near = nullptr) const;
  // The first operation of a lane that starts at or after a time; kNone.
  int32_t first_of_lane(int32_t lane, int64_t time_ns) const;
  // The operation that ends last at or before a time, on any lane; kNone.
  int32_t last_before(int64_t from_ns, int64_t time_ns) const;

 private:
  void index_lanes();
  // The first place in a lane whose operation starts after a time, sought from `near` on.
  size_t first_behind(const std::vector<int32_t>& of_lane, int64_t time_ns, size_t near) const;
  void index_edges(const std::vector<Edge>& edges);

  std::vector<Operation> operations_;
  std::vector<Edge> edges_;  // by target
  std::vector<size_t> first_edge_;
  std::vector<std::vector<int32_t>> of_lane_;  // operations of each lane in time order
  size_t contradictions_ = 0;
};

// Names of API calls that wait until a device has done something: cudaStreamSynchronize, cuCtxSynchronize, cudaMemcpy,
// hipDeviceSynchronize, ... with or without nvprof's and Nsight's suffixes.
bool is_blocking_call(std::string_view name);

// Latest end of each operation such that the last of them may still end when it did, by services alone; INT64_MAX for
// those that it does not depend on. Then slack = latest end - end. Operations before `first` are left out.
std::vector<int64_t> latest_ends(const DependencyGraph& graph, int32_t first, int32_t last);

// Ends of the operations first..last (result[i] is of first + i) when each starts as soon as all it depends on has
// ended and then waits as long as it did beyond that: waits without a recorded reason are kept. services: of the same
// operations. What came before `first` stays as it was.
std::vector<int64_t> replayed_ends(const DependencyGraph& graph, int32_t first, int32_t last,
                                   const std::vector<int64_t>& services);

}  // namespace strobe::analyze
