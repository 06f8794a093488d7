// Figures of groups of durations, for millions of values: one scatter into groups, then selection in place.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "base/table.h"

namespace strobe::analyze {

struct Sample {
  int64_t count = 0;
  int64_t total_ns = 0, min_ns = 0, max_ns = 0;
  double mean_ns = 0;
  double std_ns = 0;  // sample standard deviation (n - 1); 0 for one value
  double p50_ns = 0, p90_ns = 0, p95_ns = 0, p99_ns = 0;
  double jitter_ns = 0;  // mean of |x_k - x_(k-1)|; 0 for one value
};

// Of values in time order, which it puts into another order.
Sample summarize(std::span<int64_t> ns);

// The figures of each group: values[i] belongs to group_of[i] < group_count; values stand in time order. Two threads
// where there is much to do.
std::vector<Sample> summarize_groups(std::span<const uint32_t> group_of, std::span<const int64_t> values,
                                     size_t group_count);

// Calls work(i) for 0 <= i < count, on two threads when `much`. Calls must not depend on each other.
void for_each_group(size_t count, bool much, const std::function<void(size_t)>& work);

// Columns count .. jitter_ns of a sample, and its cells in that order.
std::vector<Column> sample_columns();
void add_sample(const Sample& sample, std::vector<Cell>& row);

}  // namespace strobe::analyze
