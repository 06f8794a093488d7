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

DependencyGraph::DependencyGraph(const trace::Timeline& timeline) {
  DependencyGraphBuilder builder(timeline);
  operations_ = builder.take_operations();
  index_lanes();
  index_edges(builder.edges(*this));
}

DependencyGraph::DependencyGraph(std::vector<Operation> operations, const std::vector<Edge>& edges)
    : operations_(std::move(operations)) {
  index_lanes();
  index_edges(edges);
}

void DependencyGraph::index_lanes() {
  std::vector<size_t> counts;
  for (const Operation& operation : operations_) {
    const auto lane = static_cast<size_t>(operation.lane);
    if (lane >= counts.size()) counts.resize(lane + 1);
    ++counts[lane];
  }
  of_lane_.resize(counts.size());
  for (size_t lane = 0; lane < counts.size(); ++lane) of_lane_[lane].reserve(counts[lane]);
  for (size_t i = 0; i < operations_.size(); ++i) {
    const auto lane = static_cast<size_t>(operations_[i].lane);
    of_lane_[lane].push_back(static_cast<int32_t>(i));
  }
}

// By target in one counting pass; edges against time are dropped, and of several between two operations the first
// stays.
void DependencyGraph::index_edges(const std::vector<Edge>& edges) {
  first_edge_.assign(operations_.size() + 1, 0);
  const auto possible = [this](const Edge& edge) {
    return edge.from >= 0 && edge.from < edge.to &&
           operations_[static_cast<size_t>(edge.from)].end_ns <= operations_[static_cast<size_t>(edge.to)].start_ns;
  };
  for (const Edge& edge : edges) {
    if (possible(edge))
      ++first_edge_[static_cast<size_t>(edge.to) + 1];
    else if (edge.from >= 0 && edge.to >= 0)  // else an end is no operation: a range that is all in ranges inside it
      ++contradictions_;
  }
  for (size_t i = 1; i < first_edge_.size(); ++i) first_edge_[i] += first_edge_[i - 1];
  edges_.resize(first_edge_.back());
  std::vector<size_t> next(first_edge_.begin(), first_edge_.end() - 1);
  for (const Edge& edge : edges)
    if (possible(edge)) edges_[next[static_cast<size_t>(edge.to)]++] = edge;
  size_t kept = 0;
  for (size_t target = 0; target < operations_.size(); ++target) {
    const auto begin = edges_.begin() + static_cast<std::ptrdiff_t>(first_edge_[target]);
    const auto end = edges_.begin() + static_cast<std::ptrdiff_t>(first_edge_[target + 1]);
    const int32_t lane = operations_[target].lane;
    const auto key = [&](const Edge& edge) {
      return std::tuple(operations_[static_cast<size_t>(edge.from)].lane != lane, edge.from);
    };
    // Few: by insertion, without the memory that a stable sort asks for.
    constexpr std::ptrdiff_t kFew = 16;
    if (end - begin > kFew) {
      std::stable_sort(begin, end, [&](const Edge& a, const Edge& b) { return key(a) < key(b); });
    } else {
      for (auto edge = begin == end ? end : begin + 1; edge < end; ++edge)
        for (auto place = edge; place != begin && key(*place) < key(*(place - 1)); --place)
          std::iter_swap(place, place - 1);
    }
    const size_t begin_kept = kept;
    for (auto edge = begin; edge != end; ++edge)
      if (kept == begin_kept || edges_[kept - 1].from != edge->from) edges_[kept++] = *edge;
    first_edge_[target] = begin_kept;
  }
  first_edge_.back() = kept;
  edges_.resize(kept);
}

const Edge* DependencyGraph::latest(int32_t operation) const {
  const Edge* best = nullptr;
  int64_t best_end = std::numeric_limits<int64_t>::min();
  for (const Edge& edge : into(operation)) {
    const int64_t end = operations_[static_cast<size_t>(edge.from)].end_ns;
    if (end > best_end) best = &edge, best_end = end;
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

size_t DependencyGraph::first_behind(const std::vector<int32_t>& of_lane, int64_t time_ns, size_t near) const {
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
  for (size_t i = 0; i < operations_.size(); ++i) {
    const Operation& operation = operations_[i];
    if (operation.start_ns < from_ns || operation.end_ns > time_ns) continue;
    if (best == kNone || operation.end_ns > operations_[static_cast<size_t>(best)].end_ns)
      best = static_cast<int32_t>(i);
  }
  return best;
}

std::vector<int64_t> latest_ends(const DependencyGraph& graph, int32_t first, int32_t last) {
  const auto& operations = graph.operations();
  constexpr int64_t kNever = std::numeric_limits<int64_t>::max();
  std::vector<int64_t> latest(operations.size(), kNever);
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

std::vector<int64_t> replayed_ends(const DependencyGraph& graph, int32_t first, int32_t last,
                                   const std::vector<int64_t>& services) {
  const auto& operations = graph.operations();
  std::vector<int64_t> ends(services.size());
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

}  // namespace strobe::analyze
