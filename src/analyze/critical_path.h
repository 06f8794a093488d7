// The critical path: the chain of operations that decided how long a window of the trace took. Two sets of rules, see
// docs/critical-path.md: our own (a walk back over a DependencyGraph, whose segments tile the window exactly) and those
// of HolisticTraceAnalysis 0.6.1, for comparison with it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analyze/dependency_graph.h"
#include "base/table.h"
#include "strobe/base/result.h"
#include "strobe/trace/timeline.h"

namespace strobe::analyze {

// A piece of the path. Those of a path of our own rules stand in time order without gap or overlap.
struct PathSegment {
  int64_t start_ns = 0, end_ns = 0;
  bool is_wait = false;
  int32_t range = trace::kNone;  // whose time it is; of a wait: of the range that begins after it
  int32_t lane = trace::kNone;
  int32_t operation = trace::kNone;  // of the DependencyGraph, where one was walked
  std::string_view name;             // of the range; of a wait: what it waits for
  bool is_explained = true;          // something recorded says what this time was
};

struct CriticalPath {
  std::string title;
  int64_t length_ns = 0;
  size_t nodes = 0, edges = 0;                          // of the graph, inside the window
  std::vector<std::pair<std::string, size_t>> by_type;  // edges of the graph
  std::vector<PathSegment> segments;                    // whose names are the timeline's or stand in `names`
  std::set<std::string, std::less<>> names;
  std::vector<int32_t> events;  // ranges on the path, ascending
  // Of HolisticTraceAnalysis' rules: of the path.
  size_t path_nodes = 0, path_edges = 0;
  std::vector<std::pair<std::string, size_t>> path_by_type;
  // One row a name: name, path_ns, share, count, waiting_ns, slack_ns, drag_ns.
  Table rows;
};

// Which part of a trace. Nothing set: from the first operation to the end of the last.
struct WindowChoice {
  std::string range;                  // the name; or, where no range is called so, a part of it
  int64_t instance = 0;               // of several ranges with that name, in time order
  std::optional<int64_t> frame = {};  // a frame of a pipeline's run
  bool strict = false;                // of a frame: follow also what held it up, into other frames
  std::string tenant = {};            // of a frame: whose, in a trace of several tenants
};

// Our own rules. Errors: kNotFound (no such range, instance or frame; nothing recorded).
Result<CriticalPath> critical_path(const trace::Timeline& timeline, const WindowChoice& choice);

// The rules of HolisticTraceAnalysis 0.6.1. An empty range stands for the whole trace. Errors: as above; kUnsupported
// with a frame; kBadData where its rules give a graph with a cycle.
Result<CriticalPath> critical_path_hta(const trace::Timeline& timeline, const WindowChoice& choice);

// One row a segment, in time order: start_ns, duration_ns, kind ("service", "wait"), name, lane.
Table path_segments(const trace::Timeline& timeline, const CriticalPath& path);

// One row a range on the path, in time order: start_ns, duration_ns, name, lane, path_ns.
Table path_events(const trace::Timeline& timeline, const CriticalPath& path);

// The dependency analysis that an imported log already held; nothing where there is none.
const Table* imported_dependency_table(const trace::Timeline& timeline);

// What is common to both rules: the ranges that a choice may mean, in time order (those of host threads first), and
// the error when there are none or too few.
std::vector<int32_t> ranges_named(const trace::Timeline& timeline, const std::string& name);
Result<int32_t> choose_instance(const trace::Timeline& timeline, const std::vector<int32_t>& candidates,
                                const WindowChoice& choice);

}  // namespace strobe::analyze
