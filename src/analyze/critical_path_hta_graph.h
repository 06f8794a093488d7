// The weighted graph of HolisticTraceAnalysis' rules and its longest path. Nodes and edges keep the order in which they
// were added: of equally long paths it decides.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "strobe/base/result.h"

namespace strobe::analyze::hta {

enum class EdgeKind : uint8_t {
  kOperator,    // inside an operator or a kernel
  kDependency,  // between operators of the outermost level, or of the runtime's lock
  kLaunch,      // call -> kernel
  kKernelGap,   // kernel -> the next one of its stream
  kSync,        // kernel -> kernel or call that waited for it
};
inline constexpr size_t kEdgeKinds = 5;
// As HolisticTraceAnalysis calls it: "critical_path_operator", ...
const char* name_of(EdgeKind kind);

class Graph {
 public:
  struct Edge {
    int32_t from = 0, to = 0;
    EdgeKind kind = EdgeKind::kOperator;
    int64_t weight = 0;
    int32_t owner = -1;  // the event whose time it is
  };

  explicit Graph(size_t most_nodes) : place_(most_nodes, -1) {}

  // A second edge between two nodes replaces what the first one was, at its place.
  void add(int32_t from, int32_t to, EdgeKind kind, int64_t weight, int32_t owner);
  size_t node_count() const { return nodes_.size(); }
  const std::vector<Edge>& edges() const { return edges_; }
  // Indices of edges, in order. Errors: kBadData for a graph with a cycle.
  Result<std::vector<int32_t>> longest_path() const;

 private:
  void touch(int32_t node);

  std::vector<int32_t> place_;  // by node: in nodes_
  std::vector<int32_t> nodes_;  // in the order of appearance
  std::vector<Edge> edges_;
  std::unordered_map<uint64_t, int32_t> edge_between_;
};

}  // namespace strobe::analyze::hta
