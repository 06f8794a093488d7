// Sets of time as sorted, disjoint intervals.
#pragma once

#include <cstdint>
#include <vector>

namespace strobe::analyze {

struct Interval {
  int64_t start, end;
  bool operator==(const Interval&) const = default;
};
using Intervals = std::vector<Interval>;

// Sorted and disjoint; intervals that touch become one.
Intervals merged(Intervals intervals);
int64_t length(const Intervals& merged);
// What both cover, of two merged sets.
Intervals intersection(const Intervals& a, const Intervals& b);
// Time of [start, end) that a merged set covers. In O(log n + intervals in it).
int64_t covered(const Intervals& merged, int64_t start, int64_t end);

}  // namespace strobe::analyze
