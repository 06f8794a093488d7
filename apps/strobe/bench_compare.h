// `strobe compare` of two benchmarks.
#pragma once

#include <string>

#include "analyze/bootstrap.h"
#include "report/table_format.h"
#include "strobe/base/result.h"

namespace strobe::app {

struct BenchComparison {
  std::string a, b;    // folders of `strobe bench`, or their benchmark_mean.json
  std::string metric;  // LEVEL or LEVEL:STAGE; empty: all
  analyze::Statistic statistic = analyze::Statistic::kMean;
  double fail_above = 0;  // 0: no check
  report::Format format = report::Format::kText;
};
// Prints the table. Exit code 1 when the whole interval of a checked ratio lies above fail_above; checked are the
// metric or, without one, the batches of every level.
Result<int> compare_benchmarks(const BenchComparison& wanted);

}  // namespace strobe::app
