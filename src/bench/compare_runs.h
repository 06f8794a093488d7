// Two runs of a benchmark: is B slower than A, and how sure is that.
#pragma once

#include <string>

#include "analyze/bootstrap.h"
#include "base/table.h"
#include "bench/results.h"

namespace strobe::bench {

struct RunComparison {
  Table table;  // level, stage, a_ms, b_ms, ratio, ci95_low, ci95_high, batches_a, batches_b, verdict
  // The lowest end that any row's interval has among the rows that are checked; nothing where none has an interval.
  std::vector<std::pair<std::string, double>> lower_ends;  // "level/stage": low end of the ratio's interval
};

// Every stage that both runs have; metric: only this one ("LEVEL" of its batches, or "LEVEL:STAGE"), or all when empty.
// lower_ends: of the metric, without one of every level's batches. Errors: kNotFound (names what there is).
Result<RunComparison> compare_runs(const Run& a, const Run& b, const std::string& metric, analyze::Statistic statistic);

}  // namespace strobe::bench
