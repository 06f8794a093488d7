#include "analyze/critical_path_hta_graph.h"

#include <algorithm>

namespace strobe::analyze::hta {

const char* name_of(EdgeKind kind) {
  static constexpr const char* kNames[kEdgeKinds] = {
      "critical_path_operator", "critical_path_dependency", "critical_path_kernel_launch_delay",
      "critical_path_kernel_kernel_delay", "critical_path_sync_dependency"};
  return kNames[static_cast<size_t>(kind)];
}

void Graph::touch(int32_t node) {
  int32_t& place = place_[static_cast<size_t>(node)];
  if (place >= 0) return;
  place = static_cast<int32_t>(nodes_.size());
  nodes_.push_back(node);
}

void Graph::add(int32_t from, int32_t to, EdgeKind kind, int64_t weight, int32_t owner) {
  touch(from);
  touch(to);
  const uint64_t key = static_cast<uint64_t>(static_cast<uint32_t>(from)) << 32 | static_cast<uint32_t>(to);
  const auto [known, is_new] = edge_between_.try_emplace(key, static_cast<int32_t>(edges_.size()));
  // Parents that end before their children would give negative weights.
  const Edge edge{from, to, kind, std::max<int64_t>(0, weight), owner};
  if (is_new)
    edges_.push_back(edge);
  else
    edges_[static_cast<size_t>(known->second)] = edge;
}

Result<std::vector<int32_t>> Graph::longest_path() const {
  const size_t count = nodes_.size();
  // Edges by source and by target, each in the order of adding.
  const auto grouped = [&](int32_t Edge::*end, std::vector<size_t>& first) {
    first.assign(count + 1, 0);
    const auto place = [&](const Edge& edge) { return static_cast<size_t>(place_[static_cast<size_t>(edge.*end)]); };
    for (const Edge& edge : edges_) ++first[place(edge) + 1];
    for (size_t i = 0; i < count; ++i) first[i + 1] += first[i];
    std::vector<int32_t> list(edges_.size());
    std::vector<size_t> next(first.begin(), first.end() - 1);
    for (size_t i = 0; i < edges_.size(); ++i) list[next[place(edges_[i])]++] = static_cast<int32_t>(i);
    return list;
  };
  std::vector<size_t> first_out, first_in;
  const std::vector<int32_t> out = grouped(&Edge::from, first_out), in = grouped(&Edge::to, first_in);

  std::vector<size_t> waits_for(count);
  std::vector<int32_t> order;
  order.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    waits_for[i] = first_in[i + 1] - first_in[i];
    if (waits_for[i] == 0) order.push_back(static_cast<int32_t>(i));
  }
  std::vector<int64_t> distance(count, 0);
  std::vector<int32_t> best(count, -1);  // edge
  int32_t last = -1;
  for (size_t done = 0; done < order.size(); ++done) {
    const auto node = static_cast<size_t>(order[done]);
    for (size_t i = first_in[node]; i < first_in[node + 1]; ++i) {
      const Edge& edge = edges_[static_cast<size_t>(in[i])];
      const int64_t through = distance[static_cast<size_t>(place_[static_cast<size_t>(edge.from)])] + edge.weight;
      if (best[node] < 0 || through > distance[node]) distance[node] = through, best[node] = in[i];
    }
    if (last < 0 || distance[node] > distance[static_cast<size_t>(last)]) last = static_cast<int32_t>(node);
    for (size_t i = first_out[node]; i < first_out[node + 1]; ++i) {
      const auto next = static_cast<size_t>(place_[static_cast<size_t>(edges_[static_cast<size_t>(out[i])].to)]);
      if (--waits_for[next] == 0) order.push_back(static_cast<int32_t>(next));
    }
  }
  if (order.size() < count)
    return bad_data("by these rules the trace's dependencies go in a circle, so there is no longest path");
  std::vector<int32_t> path;
  while (last >= 0 && best[static_cast<size_t>(last)] >= 0) {
    path.push_back(best[static_cast<size_t>(last)]);
    last = place_[static_cast<size_t>(edges_[static_cast<size_t>(path.back())].from)];
  }
  std::reverse(path.begin(), path.end());
  return path;
}

}  // namespace strobe::analyze::hta
