#include "analyze/intervals.h"

#include <algorithm>

namespace strobe::analyze {

Intervals merged(Intervals intervals) {
  const auto earlier = [](const Interval& a, const Interval& b) { return a.start < b.start; };
  if (!std::is_sorted(intervals.begin(), intervals.end(), earlier))
    std::sort(intervals.begin(), intervals.end(), earlier);
  size_t count = 0;
  for (const Interval& next : intervals) {
    if (count > 0 && next.start <= intervals[count - 1].end)
      intervals[count - 1].end = std::max(intervals[count - 1].end, next.end);
    else
      intervals[count++] = next;
  }
  intervals.resize(count);
  return intervals;
}

int64_t length(const Intervals& merged) {
  int64_t sum = 0;
  for (const Interval& part : merged) sum += part.end - part.start;
  return sum;
}

Intervals intersection(const Intervals& a, const Intervals& b) {
  Intervals both;
  for (size_t i = 0, k = 0; i < a.size() && k < b.size();) {
    const int64_t start = std::max(a[i].start, b[k].start), end = std::min(a[i].end, b[k].end);
    if (start < end) both.push_back({start, end});
    (a[i].end < b[k].end ? i : k) += 1;
  }
  return both;
}

int64_t covered(const Intervals& merged, int64_t start, int64_t end) {
  auto part = std::partition_point(merged.begin(), merged.end(), [&](const Interval& i) { return i.end <= start; });
  int64_t sum = 0;
  for (; part != merged.end() && part->start < end; ++part)
    sum += std::min(part->end, end) - std::max(part->start, start);
  return sum;
}

}  // namespace strobe::analyze
