#include "analyze/spread.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/statistics.h"

namespace strobe::analyze {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

std::vector<double> sorted(std::span<const double> values) {
  std::vector<double> copy(values.begin(), values.end());
  std::sort(copy.begin(), copy.end());
  return copy;
}

double over(double numerator, double denominator) {
  return denominator == 0 ? kNan : numerator / denominator;
}

std::vector<double> ranks(std::span<const double> values) {
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return values[a] < values[b]; });
  std::vector<double> rank(values.size());
  for (size_t i = 0; i < order.size();) {
    size_t end = i;
    while (end < order.size() && values[order[end]] == values[order[i]]) ++end;
    const double average = static_cast<double>(i + end + 1) / 2;  // ranks count from 1
    for (; i < end; ++i) rank[order[i]] = average;
  }
  return rank;
}

double pearson(std::span<const double> a, std::span<const double> b) {
  const double mean_a = mean(a), mean_b = mean(b);
  double ab = 0, aa = 0, bb = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    ab += (a[i] - mean_a) * (b[i] - mean_b);
    aa += (a[i] - mean_a) * (a[i] - mean_a);
    bb += (b[i] - mean_b) * (b[i] - mean_b);
  }
  return over(ab, std::sqrt(aa * bb));
}

}  // namespace

Result<Trim> parse_trim(const std::string& text) {
  if (text == "none") return Trim::kNone;
  if (text == "p1-p99") return Trim::kP1P99;
  if (text == "iqr") return Trim::kIqr;
  return usage_error("--trim " + text + ": expected none, p1-p99 or iqr");
}

std::vector<double> trimmed(std::span<const double> values, Trim trim) {
  std::vector<double> kept(values.begin(), values.end());
  if (trim == Trim::kNone || values.empty()) return kept;
  const std::vector<double> ascending = sorted(values);
  double low = quantile_sorted(ascending, 0.01), high = quantile_sorted(ascending, 0.99);
  if (trim == Trim::kIqr) {
    const double q1 = quantile_sorted(ascending, 0.25), q3 = quantile_sorted(ascending, 0.75);
    low = q1 - 1.5 * (q3 - q1);
    high = q3 + 1.5 * (q3 - q1);
  }
  std::erase_if(kept, [&](double value) { return value < low || value > high; });
  return kept;
}

Spread spread_of(std::span<const double> values) {
  Spread all;
  all.count = values.size();
  const std::vector<double> ascending = sorted(values);
  const auto q = [&](double share) { return quantile_sorted(ascending, share); };
  all.p0 = q(0), all.p1 = q(0.01), all.p5 = q(0.05), all.p25 = q(0.25), all.p50 = q(0.5);
  all.p75 = q(0.75), all.p95 = q(0.95), all.p99 = q(0.99), all.p100 = q(1);
  all.mean = values.empty() ? kNan : mean(values);
  all.p0_p99_range = all.p99 - all.p0;
  all.normalized_range = over(all.p0_p99_range, all.p50);
  all.r = over(all.p99 - all.p50, all.p50);
  all.spread = all.p99 - all.p50;
  all.spread_p1 = all.p99 - all.p1;
  all.iqr = all.p75 - all.p25;
  all.cv = values.empty() ? kNan : over(standard_deviation(values), all.mean);
  std::vector<double> off, steps;
  for (size_t i = 0; i < values.size(); ++i) {
    off.push_back(std::abs(values[i] - all.p50));
    if (i > 0) steps.push_back(std::abs(values[i] - values[i - 1]));
  }
  all.mad = quantile(std::move(off), 0.5);
  all.tail_ratio = over(all.p99, all.p50);
  all.max_ratio = over(all.p100, all.p50);
  all.jitter = steps.empty() ? kNan : mean(steps);
  all.jitter_p99 = quantile(std::move(steps), 0.99);
  return all;
}

WidthChange width_change(double width, double reference_width) {
  WidthChange change;
  change.factor = over(width, reference_width);
  change.percentage_change = 100 * (change.factor - 1);
  constexpr double kSame = 1e-9;
  change.label = std::isnan(change.factor)              ? "unknown"
                 : std::abs(change.factor - 1) <= kSame ? "unchanged"
                 : change.factor > 1                    ? "amplified"
                                                        : "damped";
  return change;
}

double wasserstein_1(std::span<const double> a, std::span<const double> b) {
  if (a.empty() || b.empty()) return kNan;
  const std::vector<double> of_a = sorted(a), of_b = sorted(b);
  // The inverse distribution functions are steps; between two steps of either their difference is constant.
  double distance = 0, done = 0;
  size_t i = 0, j = 0;
  while (i < of_a.size() && j < of_b.size()) {
    const double end_a = static_cast<double>(i + 1) / static_cast<double>(of_a.size());
    const double end_b = static_cast<double>(j + 1) / static_cast<double>(of_b.size());
    const double end = std::min(end_a, end_b);
    distance += (end - done) * std::abs(of_a[i] - of_b[j]);
    done = end;
    if (end_a <= end) ++i;
    if (end_b <= end) ++j;
  }
  return distance;
}

double spearman(std::span<const double> a, std::span<const double> b) {
  if (a.size() != b.size() || a.size() < 2) return kNan;
  const std::vector<double> ranks_a = ranks(a), ranks_b = ranks(b);
  return pearson(ranks_a, ranks_b);
}

}  // namespace strobe::analyze
