// Is B slower than A: two traces, one measure or all names, with an interval that says how sure it is.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analyze/bootstrap.h"
#include "base/table.h"
#include "strobe/base/result.h"
#include "strobe/trace/timeline.h"

namespace strobe::analyze {

struct CompareOptions {
  Statistic statistic = Statistic::kMean;
  int resamples = 2000;
  uint64_t seed = 1;
  size_t top = 20;  // of largest_changes
};

struct ComparedSide {
  size_t n = 0;
  double mean_ns = 0, std_ns = 0, min_ns = 0, p50_ns = 0, p90_ns = 0, p99_ns = 0, max_ns = 0;
};

struct Comparison {
  std::string metric;
  Statistic statistic = Statistic::kMean;
  ComparedSide a, b;
  std::optional<double> ratio;            // of the statistic, B / A
  std::optional<RatioInterval> interval;  // missing: too few samples
  std::string verdict;  // "faster", "slower", "no difference" (the interval holds 1), "too few samples"
};

// The samples of a metric in time order, nanoseconds: "range:NAME", "operator:NAME", "kernel:NAME", "api:NAME",
// "memcpy:NAME" (durations), "frame" (latencies of finished frames; without a pipeline: durations of ProfilerSteps),
// "end_to_end" (from one finished frame to the next; from one ProfilerStep's start to the next, the last one's
// duration). Errors: kUsage for another metric, kNotFound for a name that is not there.
Result<std::vector<double>> samples_of(const trace::Timeline& timeline, const std::string& metric);

Comparison compare(std::string metric, const std::vector<double>& a, const std::vector<double>& b,
                   const CompareOptions& options);

// One row: metric, statistic, a_n, a_mean_ns, ..., b_max_ns, ratio, ci95_low, ci95_high, verdict.
Table comparison_table(const Comparison& comparison);

// One row a name of either trace, the largest change of total time first: metric, a_count, b_count, a_mean_ns,
// b_mean_ns, a_total_ns, b_total_ns, change_ns, ratio (of the statistic), ci95_low, ci95_high, verdict ("only in A",
// "only in B" for names of one trace).
Table largest_changes(const trace::Timeline& a, const trace::Timeline& b, const CompareOptions& options);

}  // namespace strobe::analyze
