// Figures of everything that has a name and a duration.
#pragma once

#include <string>

#include "analyze/name_filter.h"
#include "base/table.h"
#include "strobe/base/result.h"
#include "strobe/trace/timeline.h"

namespace strobe::analyze {

enum class StatsBy : uint8_t { kRange, kKernel, kApi, kMemcpy, kOperator, kStage, kAnnotation, kCategory, kDomain };
// Errors: kUsage naming all of them.
Result<StatsBy> parse_stats_by(const std::string& name);

struct StatsOptions {
  StatsBy by = StatsBy::kRange;
  size_t top = 0;  // rows; 0: all
  NameFilter filter;
};

// The choices as a list for people: "range (annotation and operator), annotation, ...".
std::string stats_by_choices();

// One row a name (of kCategory and kDomain: of the category or domain that annotations and operators are in), most time
// first: name, count, total_ns, mean_ns, std_ns, min_ns, p50_ns, p90_ns, p95_ns, p99_ns,
// max_ns, jitter_ns, share (of the sum over all names of the kind), self_ns (total without direct children; missing for
// what does not nest). Ranges that were still open at the end are left out, which a note says. The lifetimes of
// processes that `strobe record` puts down as ranges of the domain "os" are no ranges of a program: only kDomain has
// them.
Table stats(const trace::Timeline& timeline, const StatsOptions& options);

// Adds to a table the first `top` rows (0: all) of those with the given totals, most first, ties by name.
std::vector<size_t> most_first(const std::vector<int64_t>& total, const std::vector<std::string>& name, size_t top);

}  // namespace strobe::analyze
