#include "bench_compare.h"

#include <fmt/format.h>

#include "ask.h"
#include "bench/compare_runs.h"

namespace strobe::app {

Result<int> compare_benchmarks(const BenchComparison& wanted) {
  STROBE_ASSIGN(const bench::Run a, bench::read_run(wanted.a));
  STROBE_ASSIGN(const bench::Run b, bench::read_run(wanted.b));
  STROBE_ASSIGN(auto comparison, bench::compare_runs(a, b, wanted.metric, wanted.statistic));
  if (wanted.fail_above > 0 && comparison.lower_ends.empty())
    return bad_data(fmt::format("too few batches to check --fail-above: it takes {} on either side",
                                analyze::least_samples(wanted.statistic)));
  bool failed = false;
  for (const auto& [name, low] : comparison.lower_ends) {
    if (wanted.fail_above <= 0 || low <= wanted.fail_above) continue;
    failed = true;
    comparison.table.notes.push_back(
        fmt::format("{}: the whole interval lies above --fail-above {}", name, wanted.fail_above));
  }
  print_table(comparison.table, wanted.format);
  return failed ? 1 : 0;
}

}  // namespace strobe::app
