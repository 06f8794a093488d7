// How far latencies spread: the metrics of predictability (docs/analysis-definitions.md, section 6).
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "strobe/base/result.h"

namespace strobe::analyze {

// What is left out before anything is computed. Off by default: the tail is what is studied; the others exist to
// reproduce figures that were published with them.
enum class Trim : uint8_t {
  kNone,
  kP1P99,  // values outside the 1st and the 99th percentile
  kIqr,    // values further than 1.5 interquartile ranges from the quartiles
};
// "none", "p1-p99", "iqr". Errors: kUsage.
Result<Trim> parse_trim(const std::string& text);
// In the order of the values.
std::vector<double> trimmed(std::span<const double> values, Trim trim);

// All in the unit of the values; quantiles of type 7.
struct Spread {
  size_t count = 0;
  double p0 = 0, p1 = 0, p5 = 0, p25 = 0, p50 = 0, p75 = 0, p95 = 0, p99 = 0, p100 = 0, mean = 0;
  double p0_p99_range = 0;      // p99 - p0: "width"
  double normalized_range = 0;  // that / p50
  double r = 0;                 // (p99 - p50) / p50
  double spread = 0;            // p99 - p50
  double spread_p1 = 0;         // p99 - p1
  double iqr = 0;               // p75 - p25
  double cv = 0;                // sample standard deviation / mean
  double mad = 0;               // median of |x - p50|
  double tail_ratio = 0;        // p99 / p50
  double max_ratio = 0;         // p100 / p50
  double jitter = 0;            // mean of |x_k - x_(k-1)|
  double jitter_p99 = 0;        // its 99th percentile
};
// values in time order. Ratios over a median or mean of 0 are NaN, as is everything of no values.
Spread spread_of(std::span<const double> values);

// What a width became, against one measured before: "amplified" (factor > 1), "damped" (< 1), "unchanged" (1 within
// 1e-9).
struct WidthChange {
  double factor = 0;             // width / width of the reference
  double percentage_change = 0;  // 100 (factor - 1)
  std::string label;
};
WidthChange width_change(double width, double reference_width);

// Mean of |Q_a(u) - Q_b(u)| over u: the Wasserstein-1 distance of two samples, in their unit; exact for the two
// empirical distributions.
double wasserstein_1(std::span<const double> a, std::span<const double> b);

// Rank correlation with average ranks (Spearman); NaN for fewer than two pairs or a constant side.
double spearman(std::span<const double> a, std::span<const double> b);

}  // namespace strobe::analyze
