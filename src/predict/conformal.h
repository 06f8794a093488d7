// Intervals from how far off predictions were on data that they had not seen: cross-conformal prediction (Vovk 2015,
// Annals of Mathematics and Artificial Intelligence 74) with errors in units of a scale that each prediction brings.
#pragma once

#include <vector>

namespace strobe::predict {

inline constexpr double kIntervalCoverage = 0.9;

// The error that a share of `coverage` of the errors does not exceed, counted as if one more were to come:
// the ceil(coverage (n + 1))-th smallest of n, or the largest. 0 without errors.
double conformal_quantile(std::vector<double> errors, double coverage = kIntervalCoverage);

}  // namespace strobe::predict
