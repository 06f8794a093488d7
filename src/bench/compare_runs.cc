#include "bench/compare_runs.h"

#include <algorithm>

#include "base/suggest.h"

namespace strobe::bench {
namespace {

std::string metric_of(const StageSeries& series) {
  return series.stage.empty() ? series.level : series.level + ":" + series.stage;
}

}  // namespace

Result<RunComparison> compare_runs(const Run& a, const Run& b, const std::string& metric,
                                   analyze::Statistic statistic) {
  const auto of_a = stage_series(a.processes, a.warmup), of_b = stage_series(b.processes, b.warmup);
  RunComparison out;
  const std::string figure = analyze::statistic_name(statistic);
  out.table = Table("B against A, " + figure + " of the batches",
                    {{"level", "Path above the batches", 3, true},
                     {"stage", "Range inside the batch; (batch): the batch itself", 3, true},
                     {"a_ms", "", 3},
                     {"b_ms", "", 3},
                     {"ratio", "B / A", 3},
                     {"ci95_low", "95 % confidence interval of the ratio", 3},
                     {"ci95_high", "", 3},
                     {"batches_a", ""},
                     {"batches_b", ""},
                     {"verdict", "", 3, true}});
  std::vector<std::string> names;
  size_t only_one = 0;
  for (const auto& series : of_a) {
    const std::string name = metric_of(series);
    const auto other = std::find_if(of_b.begin(), of_b.end(), [&series](const StageSeries& one) {
      return one.level == series.level && one.stage == series.stage;
    });
    if (other == of_b.end()) {
      ++only_one;
      continue;
    }
    names.push_back(name);
    if (!metric.empty() && metric != name) continue;
    const double a_ms = analyze::value_of(series.cpu_ms, statistic), b_ms = analyze::value_of(other->cpu_ms, statistic);
    const size_t least = analyze::least_samples(statistic);
    std::optional<analyze::RatioInterval> interval;
    if (series.cpu_ms.size() >= least && other->cpu_ms.size() >= least && a_ms > 0 && b_ms > 0)
      interval = analyze::ratio_interval(series.cpu_ms, other->cpu_ms, statistic);
    std::string verdict = "too few batches to tell";
    if (interval) {
      verdict = interval->low > 1 ? "B is slower" : interval->high < 1 ? "B is faster" : "no difference shown";
      if (!metric.empty() || series.stage.empty()) out.lower_ends.emplace_back(name, interval->low);
    }
    out.table.add_row({series.level, series.stage.empty() ? "(batch)" : series.stage, a_ms, b_ms,
                       a_ms > 0 ? Cell(b_ms / a_ms) : Cell(), interval ? Cell(interval->low) : Cell(),
                       interval ? Cell(interval->high) : Cell(), static_cast<int64_t>(series.cpu_ms.size()),
                       static_cast<int64_t>(other->cpu_ms.size()), verdict});
  }
  if (out.table.row_count() == 0) {
    if (names.empty()) return not_found("the two runs have no stage in common");
    return not_found("no stage '" + metric + "' in both runs; " + suggest(metric, names));
  }
  only_one += static_cast<size_t>(std::count_if(of_b.begin(), of_b.end(), [&of_a](const StageSeries& series) {
    return std::none_of(of_a.begin(), of_a.end(), [&series](const StageSeries& one) {
      return one.level == series.level && one.stage == series.stage;
    });
  }));
  if (only_one > 0 && metric.empty())
    out.table.notes.push_back(std::to_string(only_one) + " stages are in one of the runs only");
  return out;
}

}  // namespace strobe::bench
