// The pieces of a thread's time that each of its ranges has to itself.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "analyze/dependency_graph.h"
#include "strobe/trace/timeline.h"

namespace strobe::analyze {

// Time of a thread's range that only waits, and the device operation (its range) that it waits for; kNone: for room in
// a queue.
struct Wait {
  int64_t start_ns = 0, end_ns = 0;
  int32_t range = trace::kNone, source = trace::kNone;
};

// In time order. ranges: of the lane, in the order of the timeline; cuts and waits: ascending, those before the first
// range may be missing.
LargeVector<Operation> thread_operations(const trace::Ranges& ranges, std::span<const int32_t> of_lane, int32_t lane,
                                         std::span<const int64_t> cuts, std::span<const Wait> waits);

// One list in time order (by start, then end) of several in that order, into `to`; of equal ones those of the first
// list come first. Two threads where it is worth while.
void merge_by_time(const std::vector<std::span<const Operation>>& lists, Operation* to);

// Sorts by start, then end; what is sorted or nearly so costs little.
void sort_by_time(LargeVector<Operation>& operations);

}  // namespace strobe::analyze
