// Finds operations and edges in a timeline; see dependency_graph.h for what they are.
#pragma once

#include <cstdint>
#include <map>
#include <unordered_map>
#include <vector>

#include "analyze/dependency_graph.h"
#include "strobe/trace/timeline.h"

namespace strobe::analyze {

class DependencyGraphBuilder {
 public:
  explicit DependencyGraphBuilder(const trace::Timeline& timeline);

  std::vector<Operation> take_operations() { return std::move(operations_); }
  // Between the operations of the graph that took and indexed them.
  std::vector<Edge> edges(const DependencyGraph& graph) const;

 private:
  // Time of a thread's range that only waits, and the device operation (its range) that it waits for; kNone: for room
  // in a queue.
  struct Wait {
    int64_t start_ns = 0, end_ns = 0;
    int32_t range = trace::kNone, source = trace::kNone;
  };
  // A device operation and when it was asked for.
  struct Asked {
    int64_t time_ns = 0;
    int32_t range = trace::kNone;
  };
  // Where a device operation hangs on the call that launched it.
  struct Launch {
    int32_t lane = trace::kNone, range = trace::kNone;
    int64_t time_ns = 0;
  };

  int64_t start_of(int32_t range) const { return timeline_.ranges.start_ns[static_cast<size_t>(range)]; }
  int64_t end_of(int32_t range) const { return timeline_.ranges.end_ns[static_cast<size_t>(range)]; }
  int32_t lane_of(int32_t range) const { return timeline_.ranges.lane[static_cast<size_t>(range)]; }
  int32_t pid_of(int32_t range) const { return lane(range).pid; }
  const trace::Lane& lane(int32_t range) const { return timeline_.lanes[static_cast<size_t>(lane_of(range))]; }
  bool is_work(const trace::DeviceOp& op) const;
  bool is_thread(int32_t lane) const;

  void find_launches();
  void find_sync_waits();
  void find_back_pressure();
  void find_flow_cuts();
  void make_operations();
  void split_lane(const std::vector<int32_t>& ranges, size_t lane);

  int32_t waited_for(int32_t call, const trace::DeviceOp* record, int32_t own_work) const;
  int32_t last_asked(int32_t lane, int64_t before_ns) const;
  int32_t last_finished(int32_t pid, int64_t after_ns, int64_t time_ns) const;
  int32_t stream_lane(int32_t pid, int32_t device, int32_t stream) const;
  // The device operation behind which an event of a stream was recorded.
  int32_t event_source(const trace::DeviceOp& record) const;

  void add_order(const DependencyGraph& graph, std::vector<Edge>& edges) const;
  void add_launches(const DependencyGraph& graph, std::vector<Edge>& edges) const;
  void add_events(std::vector<Edge>& edges) const;
  void add_waits(const DependencyGraph& graph, std::vector<Edge>& edges) const;
  void add_flows(const DependencyGraph& graph, std::vector<Edge>& edges) const;
  int64_t arrival_of(size_t flow) const;

  const trace::Timeline& timeline_;
  std::vector<Operation> operations_;
  std::vector<int32_t> operation_of_;               // by device range
  std::vector<std::vector<int64_t>> cuts_;          // by lane
  std::vector<std::vector<Wait>> waits_;            // by lane
  std::vector<std::vector<Asked>> asked_;           // by lane, in the order of asking
  std::map<int32_t, std::vector<Asked>> finished_;  // by process; time_ns is the end here
  std::vector<Launch> launches_;
  std::unordered_map<int64_t, int32_t> call_of_correlation_;
};

}  // namespace strobe::analyze
