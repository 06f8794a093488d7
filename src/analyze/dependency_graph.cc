#include "analyze/dependency_graph.h"

#include <algorithm>
#include <array>
#include <limits>
#include <tuple>

#include "analyze/dependency_graph_builder.h"

namespace strobe::analyze {

using trace::kNone;

const char* name_of(EdgeType type) {
  static constexpr std::array<const char*, kEdgeTypes> kNames{"thread", "launch",    "stream",       "event",
                                                              "sync",   "hand-over", "back-pressure"};
  return kNames[static_cast<size_t>(type)];
}

bool is_blocking_call(std::string_view name) {
  for (const std::string_view prefix : {"cuda", "hip", "cu"}) {
    if (!name.starts_with(prefix)) continue;
    const std::string_view rest = name.substr(prefix.size());
    for (const std::string_view call : {"DeviceSynchronize", "StreamSynchronize", "EventSynchronize", "CtxSynchronize",
                                        "ThreadSynchronize", "Memcpy", "Memset"})
      if (rest.starts_with(call)) return true;
  }
  return false;
}

DependencyGraph::DependencyGraph(const trace::Timeline& timeline, std::optional<TimeSpan> window) {
  for (const trace::Lane& lane : timeline.lanes) is_thread_.push_back(lane.kind == trace::Lane::Kind::kThread);
  DependencyGraphBuilder builder(timeline, window);
  operations_ = builder.take_operations();
  count_ = operations_.size();
  index_lanes();
  index_order();
  constexpr TimeSpan kAlways{std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max()};
  index_edges(builder.edges(*this), window.value_or(kAlways));
}

DependencyGraph::DependencyGraph(const std::vector<Operation>& operations, const std::vector<Edge>& edges)
    : operations_(operations.begin(), operations.end()), count_(operations.size()) {
  index_lanes();
  previous_.assign(count_, kNone);
  index_edges(edges, {std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max()});
}

void DependencyGraph::index_lanes() {
  std::vector<size_t> counts;
  for (const Operation& operation : operations()) {
    const auto lane = static_cast<size_t>(operation.lane);
    if (lane >= counts.size()) counts.resize(lane + 1);
    ++counts[lane];
  }
  of_lane_.resize(counts.size());
  for (size_t lane = 0; lane < counts.size(); ++lane) of_lane_[lane].reserve(counts[lane]);
  for (size_t i = 0; i < count_; ++i)
    of_lane_[static_cast<size_t>(operations_[i].lane)].push_back(static_cast<int32_t>(i));
}

void DependencyGraph::index_order() {
  constexpr int64_t kAlways = std::numeric_limits<int64_t>::min();
  struct Last {
    int32_t operation = kNone;
    int64_t end_ns = 0;
  };
  std::vector<Last> last(of_lane_.size());
  previous_.reserve(count_);
  for (size_t i = 0; i < count_; ++i) {
    const Operation& self = operations_[i];
    Last& before = last[static_cast<size_t>(self.lane)];
    // Operations of a stream overlap where the trace has a lane for several queues.
    if (before.operation != kNone && before.end_ns > self.start_ns)
      before.operation = last_of_lane(self.lane, kAlways, self.start_ns);
    previous_.push_back(before.operation < static_cast<int32_t>(i) ? before.operation : kNone);
    before = {static_cast<int32_t>(i), self.end_ns};
  }
}

// By target in one counting pass; edges against time are dropped, and of several between two operations the first
// stays.
void DependencyGraph::index_edges(std::span<const Edge> edges, TimeSpan counted) {
  first_edge_.assign(count_ + 1, 0);
  const auto possible = [this](const Edge& edge) {
    return edge.from >= 0 && edge.from < edge.to &&
           operations_[static_cast<size_t>(edge.from)].end_ns <= operations_[static_cast<size_t>(edge.to)].start_ns;
  };
  LargeVector<uint8_t> is_possible;
  is_possible.reserve(edges.size());
  for (const Edge& edge : edges) {
    is_possible.push_back(possible(edge) && edge.from != previous_[static_cast<size_t>(edge.to)]);
    if (is_possible.back())
      ++first_edge_[static_cast<size_t>(edge.to) + 1];
    else if (edge.from >= 0 && edge.to >= 0 && !possible(edge) &&  // kNone: a range that is all in ranges inside it
             counted.holds(operations_[static_cast<size_t>(edge.to)].start_ns))
      ++contradictions_;
  }
  for (size_t i = 1; i < first_edge_.size(); ++i) first_edge_[i] += first_edge_[i - 1];
  edges_.resize(first_edge_.back());
  LargeVector<uint32_t> next(first_edge_.begin(), first_edge_.end() - 1);
  for (size_t i = 0; i < edges.size(); ++i)
    if (is_possible[i]) edges_[next[static_cast<size_t>(edges[i].to)]++] = edges[i];
  uint32_t kept = 0;
  for (size_t target = 0; target < count_; ++target) {
    const std::span<Edge> into(edges_.data() + first_edge_[target], edges_.data() + first_edge_[target + 1]);
    if (into.size() > 1) sort_edges_into(target, into);
    const uint32_t begin_kept = kept;
    for (const Edge& edge : into)
      if (kept == begin_kept || edges_[kept - 1].from != edge.from) edges_[kept++] = edge;
    first_edge_[target] = begin_kept;
  }
  first_edge_.back() = kept;
  edges_.resize(kept);
}

void DependencyGraph::sort_edges_into(size_t target, std::span<Edge> edges) const {
  const int32_t lane = operations_[target].lane;
  const auto key = [&](const Edge& edge) {
    return std::pair(operations_[static_cast<size_t>(edge.from)].lane != lane, edge.from);
  };
  // Few: by insertion, without the memory that a stable sort asks for.
  constexpr size_t kFew = 16;
  if (edges.size() > kFew) {
    std::stable_sort(edges.begin(), edges.end(), [&](const Edge& a, const Edge& b) { return key(a) < key(b); });
    return;
  }
  for (size_t i = 1; i < edges.size(); ++i)
    for (size_t place = i; place > 0 && key(edges[place]) < key(edges[place - 1]); --place)
      std::swap(edges[place], edges[place - 1]);
}

size_t DependencyGraph::edge_count() const {
  const auto has_previous = [](int32_t previous) { return previous != kNone; };
  return edges_.size() + static_cast<size_t>(std::count_if(previous_.begin(), previous_.end(), has_previous));
}

bool DependencyGraph::has(EdgeType type) const {
  for (size_t i = 0; i < count_ && (type == EdgeType::kThread || type == EdgeType::kStream); ++i)
    if (previous_[i] != kNone && order_edge(static_cast<int32_t>(i)).type == type) return true;
  return std::any_of(edges_.begin(), edges_.end(), [type](const Edge& edge) { return edge.type == type; });
}

std::optional<Edge> DependencyGraph::latest(int32_t operation) const {
  std::optional<Edge> best;
  int64_t best_end = std::numeric_limits<int64_t>::min();
  for (const Edge& edge : into(operation)) {
    const int64_t end = operations_[static_cast<size_t>(edge.from)].end_ns;
    if (end > best_end) best = edge, best_end = end;
  }
  return best;
}

int64_t DependencyGraph::waiting_ns(int32_t operation) const {
  const Operation& self = operations_[static_cast<size_t>(operation)];
  int64_t own = std::numeric_limits<int64_t>::min(), other = own;
  for (const Edge& edge : into(operation)) {
    const Operation& from = operations_[static_cast<size_t>(edge.from)];
    if (from.lane == self.lane)
      own = std::max(own, from.end_ns);
    else if (edge.type != EdgeType::kLaunch)
      other = std::max(other, from.end_ns);
  }
  constexpr int64_t kNever = std::numeric_limits<int64_t>::min();
  return own == kNever || other == kNever ? 0 : std::max<int64_t>(0, other - own);
}

size_t DependencyGraph::first_behind(const LargeVector<int32_t>& of_lane, int64_t time_ns, size_t near) const {
  const auto is_behind = [&](size_t i) { return operations_[static_cast<size_t>(of_lane[i])].start_ns > time_ns; };
  size_t low = std::min(near, of_lane.size()), high = low;
  if (low < of_lane.size() && !is_behind(low)) {
    for (size_t step = 1; high < of_lane.size() && !is_behind(high); step *= 2) {
      low = high + 1;
      high = std::min(of_lane.size(), high + step);
    }
  } else {
    for (size_t step = 1; low > 0 && is_behind(low - 1); step *= 2) {
      high = low - 1;
      low -= std::min(low, step);
    }
  }
  while (low < high) {
    const size_t middle = low + (high - low) / 2;
    if (is_behind(middle))
      high = middle;
    else
      low = middle + 1;
  }
  return low;
}

int32_t DependencyGraph::last_of_lane(int32_t lane, int64_t from_ns, int64_t time_ns, size_t* near) const {
  if (lane < 0 || static_cast<size_t>(lane) >= of_lane_.size()) return kNone;
  const auto& of_lane = of_lane_[static_cast<size_t>(lane)];
  const size_t behind = first_behind(of_lane, time_ns, near ? *near : of_lane.size() / 2);
  if (near) *near = behind;
  auto at = of_lane.begin() + static_cast<std::ptrdiff_t>(behind);
  while (at != of_lane.begin()) {
    const Operation& operation = operations_[static_cast<size_t>(*--at)];
    if (operation.end_ns < from_ns) return kNone;
    if (operation.end_ns <= time_ns) return *at;
  }
  return kNone;
}

int32_t DependencyGraph::first_of_lane(int32_t lane, int64_t time_ns) const {
  if (lane < 0 || static_cast<size_t>(lane) >= of_lane_.size()) return kNone;
  const auto& of_lane = of_lane_[static_cast<size_t>(lane)];
  const auto at = std::lower_bound(of_lane.begin(), of_lane.end(), time_ns, [this](int32_t operation, int64_t time) {
    return operations_[static_cast<size_t>(operation)].start_ns < time;
  });
  return at == of_lane.end() ? kNone : *at;
}

int32_t DependencyGraph::last_before(int64_t from_ns, int64_t time_ns) const {
  int32_t best = kNone;
  for (size_t i = 0; i < count_; ++i) {
    const Operation& operation = operations_[i];
    if (operation.start_ns < from_ns || operation.end_ns > time_ns) continue;
    if (best == kNone || operation.end_ns > operations_[static_cast<size_t>(best)].end_ns)
      best = static_cast<int32_t>(i);
  }
  return best;
}

LargeVector<int64_t> latest_ends(const DependencyGraph& graph, int32_t first, int32_t last) {
  const auto operations = graph.operations();
  constexpr int64_t kNever = std::numeric_limits<int64_t>::max();
  LargeVector<int64_t> latest(operations.size(), kNever);
  if (last == kNone) return latest;
  latest[static_cast<size_t>(last)] = operations[static_cast<size_t>(last)].end_ns;
  for (int32_t target = last; target >= first; --target) {
    const auto at = static_cast<size_t>(target);
    if (latest[at] == kNever) continue;
    const int64_t latest_start = latest[at] - (operations[at].end_ns - operations[at].start_ns);
    for (const Edge& edge : graph.into(target))
      latest[static_cast<size_t>(edge.from)] = std::min(latest[static_cast<size_t>(edge.from)], latest_start);
  }
  return latest;
}

LargeVector<int64_t> replayed_ends(const DependencyGraph& graph, int32_t first, int32_t last,
                                   std::span<const int64_t> services) {
  const auto operations = graph.operations();
  LargeVector<int64_t> ends(services.size());
  for (int32_t target = first; target <= last; ++target) {
    const Operation& operation = operations[static_cast<size_t>(target)];
    constexpr int64_t kNever = std::numeric_limits<int64_t>::min();
    int64_t recorded = kNever, ready = kNever;
    for (const Edge& edge : graph.into(target)) {
      const int64_t end = operations[static_cast<size_t>(edge.from)].end_ns;
      recorded = std::max(recorded, end);
      ready = std::max(ready, edge.from < first ? end : ends[static_cast<size_t>(edge.from - first)]);
    }
    const int64_t start = recorded == kNever ? operation.start_ns : ready + (operation.start_ns - recorded);
    ends[static_cast<size_t>(target - first)] = start + services[static_cast<size_t>(target - first)];
  }
  return ends;
}

// Only the ends that an edge to another lane asks for are kept; along a lane the last one is enough.
std::vector<int64_t> ends_without(const DependencyGraph& graph, int32_t first, int32_t last, size_t replays,
                                  const std::vector<int32_t>& number_of_name,
                                  const std::vector<trace::StringId>& name_of_range) {
  using Ends = std::array<int64_t, kReplaysAtOnce>;
  const auto operations = graph.operations();
  const auto index = [first](int32_t operation) { return static_cast<size_t>(operation - first); };
  LargeVector<int32_t> slot(index(last) + 1, kNone);
  std::vector<std::pair<int32_t, Ends>> of_lane;  // the last operation of each lane
  int32_t slots = 0;
  const auto keep = [&](int32_t operation) {
    if (operation >= first && slot[index(operation)] == kNone) slot[index(operation)] = slots++;
  };
  const auto lane_of = [&](int32_t operation) {
    const auto lane = static_cast<size_t>(operations[static_cast<size_t>(operation)].lane);
    if (lane >= of_lane.size()) of_lane.resize(lane + 1, {kNone, {}});
    return lane;
  };
  for (int32_t target = first; target <= last; ++target) {
    auto& before = of_lane[lane_of(target)].first;
    if (graph.previous(target) != before) keep(graph.previous(target));
    for (const Edge& edge : graph.others_into(target)) keep(edge.from);
    before = target;
  }
  for (auto& [operation, ends] : of_lane) operation = kNone;
  LargeVector<Ends> kept(static_cast<size_t>(slots));
  Ends ends{};
  for (int32_t target = first; target <= last; ++target) {
    const Operation& operation = operations[static_cast<size_t>(target)];
    constexpr int64_t kNever = std::numeric_limits<int64_t>::min();
    int64_t recorded = kNever;
    auto& [before, ends_before] = of_lane[static_cast<size_t>(operation.lane)];
    const auto wait_for = [&](int32_t from, const Ends* its_ends) {
      const int64_t end = operations[static_cast<size_t>(from)].end_ns;
      for (size_t i = 0; i < kReplaysAtOnce; ++i) {
        const int64_t ready = its_ends ? (*its_ends)[i] : end;
        ends[i] = recorded == kNever ? ready : std::max(ends[i], ready);
      }
      recorded = std::max(recorded, end);
    };
    const auto kept_of = [&](int32_t from) {
      return from < first ? nullptr : &kept[static_cast<size_t>(slot[index(from)])];
    };
    if (const int32_t previous = graph.previous(target); previous != kNone)
      wait_for(previous, previous == before ? &ends_before : kept_of(previous));
    for (const Edge& edge : graph.others_into(target)) wait_for(edge.from, kept_of(edge.from));
    const int64_t service = operation.end_ns - operation.start_ns;
    const int64_t pause = recorded == kNever ? 0 : operation.start_ns - recorded;
    const int32_t without = number_of_name[name_of_range[static_cast<size_t>(operation.range)]];
    for (size_t i = 0; i < kReplaysAtOnce; ++i)
      ends[i] = (recorded == kNever ? operation.start_ns : ends[i] + pause) + service;
    if (without != kNone) ends[static_cast<size_t>(without)] -= service;
    before = target;
    ends_before = ends;
    if (slot[index(target)] != kNone) kept[static_cast<size_t>(slot[index(target)])] = ends;
  }
  return {ends.begin(), ends.begin() + static_cast<std::ptrdiff_t>(replays)};
}

}  // namespace strobe::analyze
