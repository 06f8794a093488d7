// How predictable latencies are: of each tenant, of a pipeline, or of any range that repeats.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "analyze/spread.h"
#include "base/table.h"
#include "strobe/base/result.h"
#include "strobe/trace/timeline.h"

namespace strobe::analyze {

// Latencies of one tenant, pipeline or range.
struct LatencyGroup {
  std::string name;
  std::vector<double> latency_ms;   // of finished frames, in the order of completion
  std::vector<double> interval_ms;  // from one completion to the next
  double period_ms = 0;             // in which results are expected; 0: not known
};

// Of a trace of tenants: a group a tenant, finished frames of the measured window. Of another: one group, the samples
// of `metric` ("frame", "range:NAME", ...; compare.h). Errors: kNotFound, kUsage.
Result<std::vector<LatencyGroup>> latency_groups(const trace::Timeline& timeline, const std::string& metric);

struct PredictabilityOptions {
  Trim trim = Trim::kNone;
  const std::vector<LatencyGroup>* reference = nullptr;  // groups of the same names, to compare widths with
  uint64_t seed = 1;
};

struct Predictability {
  // One row a group: group, count, p0_ms .. p99_ms, max_ms, p50_low_ms, p50_high_ms, p99_low_ms, p99_high_ms (95 %),
  // width_ms (p0_p99_range), normalized_range, r, spread_ms, spread_p1_ms, iqr_ms, cv, mad_ms, tail_ratio, max_ratio,
  // jitter_ms, jitter_p99_ms, output_jitter_ms (mean of |completion interval - period|); with a reference width_factor,
  // percentage_change, change, wasserstein_ms. p99 and what depends on it is missing below 100 frames.
  Table metrics;
  // One row a group and probability: group, probability, bound_ms, low_ms, high_ms; groups without a model in notes.
  Table tail;
  // Of tenants: where the frames near p99 spend more than those near p50: group, spread_ms, comm_ms, queue_ms,
  // decode_ms, device_wait_ms, cpu_wait_ms, work_ms, averaging_error_ms. The parts sum to spread + averaging error.
  std::optional<Table> tail_account;
};
Result<Predictability> predictability(const trace::Timeline& timeline, const std::vector<LatencyGroup>& groups,
                                      const PredictabilityOptions& options);

// One row a factor, over several runs: factor, share of the variance of log latency, share_of_p99 (of the p99 of each
// run's groups); then "(interactions)" and "(within runs)". Factors: the facts experiment.* and the group's name.
// Errors: those of variance_shares().
struct RunLatencies {
  std::map<std::string, std::string> factors;
  std::vector<LatencyGroup> groups;
  std::string name;
};
Result<Table> variation_sources(const std::vector<RunLatencies>& runs);
// The facts experiment.KEY of a timeline by KEY, but the cell's own name and the number of a repetition.
std::map<std::string, std::string> experiment_factors(const trace::Timeline& timeline);

}  // namespace strobe::analyze
