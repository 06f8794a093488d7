// How sure a ratio of two statistics is: a moving-block bootstrap of samples that may be correlated in time.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "strobe/base/result.h"

namespace strobe::analyze {

enum class Statistic : uint8_t { kMean, kP50, kP99 };
// "mean", "p50", "p99". Errors: kUsage naming them.
Result<Statistic> parse_statistic(const std::string& name);
const char* statistic_name(Statistic statistic);

// Fewer samples give no interval: 10; 100 for the 99th percentile, which fewer do not have.
size_t least_samples(Statistic statistic);

// The statistic of values in time order.
double value_of(std::span<const double> values, Statistic statistic);

// Length of the blocks that keep the correlation of a series: Politis & White 2004 with Patton's correction of 2009,
// for the circular block bootstrap; 1 for an uncorrelated one.
size_t block_length(std::span<const double> values);

struct RatioInterval {
  double ratio = 0;          // statistic of b / statistic of a
  double low = 0, high = 0;  // percentile interval of the ratio's bootstrap distribution
  size_t block_a = 1, block_b = 1;
};

// The 95 % interval of b / a. Each series is resampled in circular blocks (of twice block_length() where that is not
// 1), independently of the other. The percentiles are widened for the number n of blocks of the series that has fewer
// (Hesterberg 2015): from 2.5 % to Phi(-sqrt(n / (n - 1)) t(0.975, n - 1)). Of more than 5,000 values the mean is
// resampled from means of equal batches; of more than 20,000 a quantile q by resampling the share of values below it
// and reading the quantile at that share (Woodruff 1952). The same values and seed give the same result. Both series
// must have least_samples() and a positive statistic.
RatioInterval ratio_interval(std::span<const double> a, std::span<const double> b, Statistic statistic,
                             int resamples = 2000, uint64_t seed = 1);

struct ValueInterval {
  double low = 0, high = 0;
};
// The same of one series' own statistic.
ValueInterval value_interval(std::span<const double> values, Statistic statistic, int resamples = 2000,
                             uint64_t seed = 1);

// What the statistic was in each resample of the series, in the order in which they were drawn: to put several series
// together before an interval is taken between quantiles tail and 1 - tail.
struct Resamples {
  std::vector<double> values;
  double tail = 0.025;  // widened for few blocks, as above
};
Resamples resamples_of(std::span<const double> values, Statistic statistic, int resamples, uint64_t seed);

}  // namespace strobe::analyze
