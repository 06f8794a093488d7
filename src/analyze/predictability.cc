#include "analyze/predictability.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numeric>

#include "analyze/bootstrap.h"
#include "analyze/cells.h"
#include "analyze/compare.h"
#include "analyze/tail_model.h"
#include "analyze/tenant_frames.h"
#include "analyze/tenant_trace.h"
#include "analyze/variance_shares.h"

namespace strobe::analyze {

using trace::Timeline;

namespace {

constexpr size_t kFewestForP99 = 100, kDenseForP99 = 1000;

double ms(int64_t ns) {
  return static_cast<double>(ns) / 1e6;
}

Cell finite(double value) {
  return cell_if(std::isfinite(value), value);
}

// Indices of each tenant's finished frames of the window, by completion.
std::vector<std::vector<size_t>> finished_by_tenant(const TenantTrace& trace) {
  std::vector<std::vector<size_t>> all(trace.tenants.size());
  for (size_t i = 0; i < trace.frames.size(); ++i)
    if (trace.frames[i].counts && trace.frames[i].finished())
      all[static_cast<size_t>(trace.frames[i].tenant)].push_back(i);
  for (auto& frames : all)
    std::stable_sort(frames.begin(), frames.end(),
                     [&](size_t a, size_t b) { return trace.frames[a].done_ns < trace.frames[b].done_ns; });
  return all;
}

std::vector<Column> metric_columns(bool compared) {
  std::vector<Column> columns = {
      {"group", "tenant, or what was measured", 0},
      {"count", "finished frames", 0},
      {"p0_ms", "", 3},
      {"p1_ms", "", 3},
      {"p25_ms", "", 3},
      {"p50_ms", "", 3},
      {"p75_ms", "", 3},
      {"p95_ms", "", 3},
      {"p99_ms", "", 3},
      {"max_ms", "", 3},
      {"mean_ms", "", 3},
      {"p50_low_ms", "95 % interval of the median", 3},
      {"p50_high_ms", "", 3},
      {"p99_low_ms", "95 % interval of p99", 3},
      {"p99_high_ms", "", 3},
      {"width_ms", "p99 - p0", 3},
      {"normalized_range", "width / p50", 4},
      {"r", "(p99 - p50) / p50", 4},
      {"spread_ms", "p99 - p50", 3},
      {"spread_p1_ms", "p99 - p1", 3},
      {"iqr_ms", "p75 - p25", 3},
      {"cv", "standard deviation / mean", 4},
      {"mad_ms", "median distance from the median", 3},
      {"tail_ratio", "p99 / p50", 3},
      {"max_ratio", "max / p50", 3},
      {"jitter_ms", "mean change from frame to frame", 3},
      {"jitter_p99_ms", "", 3},
      {"output_jitter_ms", "mean distance of the interval between results from the period", 3},
  };
  if (compared)
    for (const Column& column :
         {Column{"width_factor", "width / width of the reference", 3},
          Column{"percentage_change", "100 (factor - 1)", 2}, Column{"change", "amplified, damped or unchanged", 0},
          Column{"wasserstein_ms", "mean distance of the quantiles from the reference's", 3}})
      columns.push_back(column);
  return columns;
}

const LatencyGroup* find_group(const std::vector<LatencyGroup>& groups, const std::string& name) {
  for (const LatencyGroup& group : groups)
    if (group.name == name) return &group;
  return groups.size() == 1 ? &groups.front() : nullptr;
}

void add_metrics(const LatencyGroup& group, const PredictabilityOptions& options, Table& table) {
  const std::vector<double> values = trimmed(group.latency_ms, options.trim);
  const Spread all = spread_of(values);
  const bool has_p99 = values.size() >= kFewestForP99;
  const auto tail = [&](double value) { return has_p99 ? finite(value) : Cell(); };
  std::vector<Cell> row = {group.name,      static_cast<int64_t>(values.size()),
                           finite(all.p0),  finite(all.p1),
                           finite(all.p25), finite(all.p50),
                           finite(all.p75), finite(all.p95),
                           tail(all.p99),   finite(all.p100),
                           finite(all.mean)};
  const auto add_interval = [&](Statistic statistic) {
    if (values.size() < least_samples(statistic)) {
      row.insert(row.end(), 2, Cell());
      return;
    }
    const ValueInterval interval = value_interval(values, statistic, 2000, options.seed);
    row.insert(row.end(), {finite(interval.low), finite(interval.high)});
  };
  add_interval(Statistic::kP50);
  add_interval(Statistic::kP99);
  for (const double value : {all.p0_p99_range, all.normalized_range, all.r, all.spread, all.spread_p1})
    row.push_back(tail(value));
  for (const double value : {all.iqr, all.cv, all.mad}) row.push_back(finite(value));
  row.push_back(tail(all.tail_ratio));
  for (const double value : {all.max_ratio, all.jitter, all.jitter_p99}) row.push_back(finite(value));
  double output_jitter = std::nan("");
  if (group.period_ms > 0 && !group.interval_ms.empty()) {
    output_jitter = 0;
    for (const double interval : group.interval_ms)
      output_jitter += std::abs(interval - group.period_ms) / static_cast<double>(group.interval_ms.size());
  }
  row.push_back(finite(output_jitter));
  if (options.reference != nullptr) {
    const LatencyGroup* reference = find_group(*options.reference, group.name);
    const std::vector<double> before =
        reference != nullptr ? trimmed(reference->latency_ms, options.trim) : std::vector<double>();
    if (has_p99 && before.size() >= kFewestForP99) {
      const WidthChange change = width_change(all.p0_p99_range, spread_of(before).p0_p99_range);
      row.insert(row.end(), {finite(change.factor), finite(change.percentage_change), change.label,
                             finite(wasserstein_1(values, before))});
    } else {
      row.insert(row.end(), 4, Cell());
      table.notes.push_back(group.name + ": no width to compare with: the reference has " +
                            std::to_string(before.size()) + " frames of it");
    }
  }
  table.add_row(std::move(row));
  if (!has_p99)
    table.notes.push_back(fmt::format("{}: {} frames, p99 needs {}", group.name, values.size(), kFewestForP99));
  else if (values.size() < kDenseForP99)
    table.notes.push_back(
        fmt::format("{}: p99 of {} frames is sparse (below {})", group.name, values.size(), kDenseForP99));
  if (options.trim != Trim::kNone)
    table.notes.push_back(fmt::format("{}: {} of {} frames were trimmed away before anything was computed", group.name,
                                      group.latency_ms.size() - values.size(), group.latency_ms.size()));
}

Table tail_table(const std::vector<LatencyGroup>& groups, uint64_t seed) {
  Table table("Rarer than seen", {{"group", "", 0},
                                  {"probability", "of a frame that takes longer", 6},
                                  {"bound_ms", "", 3},
                                  {"low_ms", "95 % interval", 3},
                                  {"high_ms", "", 3}});
  constexpr std::array kProbabilities = {1e-3, 1e-4, 1e-6};
  for (const LatencyGroup& group : groups) {
    const TailModel model = tail_model(group.latency_ms, kProbabilities, seed);
    for (const TailModel::Bound& bound : model.bounds)
      table.add_row({group.name, bound.probability, bound.value, bound.low, bound.high});
    if (!model.accepted) table.notes.push_back(group.name + ": no bound beyond what was seen: " + model.refusal);
  }
  return table;
}

// Mean of the parts over the frames whose rank lies within `width` of quantile q.
FramePartTimes mean_parts_near(const std::vector<std::pair<double, FramePartTimes>>& by_latency, double q,
                               double width) {
  const auto n = static_cast<double>(by_latency.size());
  const auto low = static_cast<size_t>(std::clamp(std::floor((q - width) * (n - 1)), 0.0, n - 1));
  const auto high = static_cast<size_t>(std::clamp(std::ceil((q + width) * (n - 1)), 0.0, n - 1));
  FramePartTimes sum{};
  for (size_t i = low; i <= high; ++i)
    for (size_t p = 0; p < sum.size(); ++p) sum[p] += by_latency[i].second[p] / static_cast<double>(high - low + 1);
  return sum;
}

Table account_of_tail(const TenantTrace& trace, const Timeline& timeline) {
  std::vector<Column> columns = {{"group", "tenant", 0}, {"spread_ms", "p99 - p50", 3}};
  for (size_t p = 0; p < kFrameParts.size(); ++p) columns.push_back({kFrameParts[p], kFramePartsHelp[p], 3});
  columns.push_back({"averaging_error_ms", "sum of the parts - spread", 3});
  Table table("What makes the tail", columns);
  const auto frames = finished_by_tenant(trace);
  for (size_t t = 0; t < frames.size(); ++t) {
    if (frames[t].size() < kFewestForP99) continue;
    std::vector<std::pair<double, FramePartTimes>> by_latency;
    std::vector<double> latencies;
    for (const size_t i : frames[t]) {
      latencies.push_back(ms(trace.frames[i].latency_ns()));
      by_latency.emplace_back(latencies.back(), frame_part_times(trace, timeline, i));
    }
    std::sort(by_latency.begin(), by_latency.end());
    const FramePartTimes tail = mean_parts_near(by_latency, 0.99, 0.005),
                         middle = mean_parts_near(by_latency, 0.5, 0.05);
    const double spread = spread_of(latencies).spread;
    std::vector<Cell> row = {trace.tenants[t].name, spread};
    double sum = 0;
    for (size_t p = 0; p < kFrameParts.size(); ++p) {
      row.emplace_back(tail[p] - middle[p]);
      sum += tail[p] - middle[p];
    }
    row.emplace_back(sum - spread);
    table.add_row(std::move(row));
  }
  return table;
}

}  // namespace

Result<std::vector<LatencyGroup>> latency_groups(const Timeline& timeline, const std::string& metric) {
  std::vector<LatencyGroup> groups;
  if (!is_tenant_trace(timeline) || metric != "frame") {
    STROBE_ASSIGN(std::vector<double> ns, samples_of(timeline, metric));
    LatencyGroup group{.name = metric, .latency_ms = {}, .interval_ms = {}};
    for (const double value : ns) group.latency_ms.push_back(value / 1e6);
    groups.push_back(std::move(group));
    return groups;
  }
  STROBE_ASSIGN(const TenantTrace trace, tenant_trace(timeline));
  const auto frames = finished_by_tenant(trace);
  for (size_t t = 0; t < frames.size(); ++t) {
    LatencyGroup group{.name = trace.tenants[t].name, .latency_ms = {}, .interval_ms = {}};
    if (trace.tenants[t].rate_hz > 0) group.period_ms = 1e3 / trace.tenants[t].rate_hz;
    for (size_t i = 0; i < frames[t].size(); ++i) {
      const TenantFrame& frame = trace.frames[frames[t][i]];
      group.latency_ms.push_back(ms(frame.latency_ns()));
      if (i > 0) group.interval_ms.push_back(ms(frame.done_ns - trace.frames[frames[t][i - 1]].done_ns));
    }
    groups.push_back(std::move(group));
  }
  return groups;
}

Result<Predictability> predictability(const Timeline& timeline, const std::vector<LatencyGroup>& groups,
                                      const PredictabilityOptions& options) {
  Predictability all{Table("Predictability", metric_columns(options.reference != nullptr)),
                     tail_table(groups, options.seed), std::nullopt};
  for (const LatencyGroup& group : groups) add_metrics(group, options, all.metrics);
  if (is_tenant_trace(timeline)) {
    STROBE_ASSIGN(const TenantTrace trace, tenant_trace(timeline));
    all.tail_account = account_of_tail(trace, timeline);
  }
  return all;
}

std::map<std::string, std::string> experiment_factors(const Timeline& timeline) {
  constexpr std::string_view kPrefix = "experiment.";
  std::map<std::string, std::string> factors;
  for (const auto& [key, value] : timeline.facts)
    if (key.starts_with(kPrefix) && key != "experiment.cell" && key != "experiment.repeat")
      factors[key.substr(kPrefix.size())] = value;
  return factors;
}

Result<Table> variation_sources(const std::vector<RunLatencies>& runs) {
  std::vector<FactorCell> of_latency, of_p99;
  for (const RunLatencies& run : runs)
    for (const LatencyGroup& group : run.groups) {
      FactorCell cell{.factors = run.factors, .values = {}};
      cell.factors["tenant"] = group.name;
      for (const double value : group.latency_ms)
        if (value > 0) cell.values.push_back(std::log(value));
      if (group.latency_ms.size() >= kFewestForP99)
        of_p99.push_back({cell.factors, {std::log(spread_of(group.latency_ms).p99)}});
      of_latency.push_back(std::move(cell));
    }
  STROBE_ASSIGN(const VarianceShares shares, variance_shares(of_latency));
  const auto tails = variance_shares(of_p99);
  Table table("Where variation comes from", {{"factor", "", 0},
                                             {"share", "of the variance of log latency", 4},
                                             {"share_of_p99", "of the variance of the runs' log p99", 4}});
  const auto tail_share = [&](const std::string& factor) {
    if (tails)
      for (const auto& [name, share] : tails->shares)
        if (name == factor) return Cell(share);
    return Cell();
  };
  for (const auto& [factor, share] : shares.shares) table.add_row({factor, share, tail_share(factor)});
  table.add_row({"(interactions)", shares.interactions, tails ? Cell(tails->interactions) : Cell()});
  table.add_row({"(within runs)", shares.within, tails ? Cell(tails->within) : Cell()});
  table.notes.push_back(fmt::format("{} frames of {} runs and tenants", shares.values, shares.cells));
  if (!tails)
    table.notes.push_back(
        fmt::format("no shares of p99, of runs with at least {} frames: {}", kFewestForP99, tails.error().message()));
  return table;
}

}  // namespace strobe::analyze
