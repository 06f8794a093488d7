// Finds operations and edges in a timeline; see dependency_graph.h for what they are.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "analyze/dependency_graph.h"
#include "analyze/thread_operations.h"
#include "strobe/trace/timeline.h"

namespace strobe::analyze {

class DependencyGraphBuilder {
 public:
  DependencyGraphBuilder(const trace::Timeline& timeline, std::optional<TimeSpan> window);

  // In time order.
  LargeVector<Operation> take_operations() { return std::move(operations_); }
  // Between the operations of the graph that took and indexed them; those along lanes are left to it.
  LargeVector<Edge> edges(const DependencyGraph& graph) const;

 private:
  // A device operation and when it was asked for, or when it ended.
  struct Timed {
    int64_t time_ns = 0;
    int32_t range = trace::kNone;
  };
  // Where a device operation hangs on the call that launched it.
  struct Launch {
    int32_t lane = trace::kNone, range = trace::kNone;
    int64_t time_ns = 0;
  };
  // A device operation that may not start before another has ended.
  struct Event {
    int32_t source = trace::kNone, target = trace::kNone;  // ranges
  };
  // What a lane has, in time order, and from where on it is needed.
  struct LaneContent {
    LargeVector<int32_t> of_host, of_device;  // ranges
    // Places in the above at which nothing before was open any more.
    std::vector<std::pair<size_t, size_t>> fresh;
    size_t first_host = 0, first_device = 0, stretches_before = 2;
    int64_t needed_from = 0;
    LargeVector<Operation> operations;  // of the host
  };

  int64_t start_of(int32_t range) const { return timeline_.ranges.start_ns[static_cast<size_t>(range)]; }
  int64_t end_of(int32_t range) const { return timeline_.ranges.end_ns[static_cast<size_t>(range)]; }
  int32_t lane_of(int32_t range) const { return timeline_.ranges.lane[static_cast<size_t>(range)]; }
  int32_t pid_of(int32_t range) const { return lane(range).pid; }
  const trace::Lane& lane(int32_t range) const { return timeline_.lanes[static_cast<size_t>(lane_of(range))]; }
  bool is_work(const trace::DeviceOp& op) const;
  bool is_thread(int32_t lane) const;
  bool is_hand_over(size_t flow) const;
  int64_t arrival_of(size_t flow) const;

  void find_end();
  void find_content();
  void find_launches();
  void find_sync_waits();
  void find_events();

  int32_t waited_for(int32_t call, const trace::DeviceOp* record, int32_t own_work) const;
  int32_t last_asked(int32_t lane, int64_t before_ns) const;
  int32_t last_finished(int32_t pid, int64_t after_ns, int64_t time_ns) const;
  int32_t stream_lane(int32_t pid, int32_t device, int32_t stream) const;
  // The device operation behind which an event of a stream was recorded.
  int32_t event_source(const trace::DeviceOp& record) const;

  void make_all_operations();
  void make_needed_operations();
  void find_needs();
  bool has_all_needed(size_t lane) const;
  void make_part(size_t lane);
  int64_t start_of_stretch(const LaneContent& content, std::pair<size_t, size_t> first) const;
  void make_thread_operations(size_t lane);
  LargeVector<Operation> device_operations() const;
  void merge_operations();

  void add_launches(const DependencyGraph& graph, LargeVector<Edge>& edges) const;
  void add_waits(const DependencyGraph& graph, LargeVector<Edge>& edges) const;
  void add_flows(const DependencyGraph& graph, LargeVector<Edge>& edges) const;
  // From where on the lane's operations are known.
  int64_t known_from(int32_t lane) const;

  const trace::Timeline& timeline_;
  const std::optional<TimeSpan> window_;
  int64_t needed_to_ = std::numeric_limits<int64_t>::max();
  LargeVector<Operation> operations_;
  LargeVector<int32_t> operation_of_;  // by device range
  std::vector<LaneContent> content_;   // by lane, as what follows
  std::vector<LargeVector<int64_t>> cuts_;
  std::vector<std::vector<Wait>> waits_;
  std::vector<LargeVector<Timed>> asked_;     // in the order of asking
  std::vector<LargeVector<Timed>> finished_;  // by end
  LargeVector<Launch> launches_;
  std::vector<Event> events_;
  std::unordered_map<int64_t, int32_t> call_of_correlation_;  // of calls that recorded an event
};

}  // namespace strobe::analyze
