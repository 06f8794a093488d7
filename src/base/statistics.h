// Order statistics and moments used by every room; definitions in docs/analysis-definitions.md.
#pragma once

#include <span>
#include <vector>

namespace strobe {

// Quantile q in [0, 1] of ascending values: type 7 of Hyndman & Fan 1996 (linear between order statistics), NumPy's
// default. NaN for no values.
double quantile_sorted(std::span<const double> ascending, double q);
// The same of values in any order.
double quantile(std::vector<double> values, double q);
double mean(std::span<const double> values);
// Sample standard deviation (n - 1); 0 for fewer than two values.
double standard_deviation(std::span<const double> values);

}  // namespace strobe
