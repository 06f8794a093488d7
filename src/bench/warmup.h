// Where a run of batches becomes stationary.
#pragma once

#include <cstddef>
#include <span>

#include "bench/ranges.h"
#include "strobe/bench/perf.h"

namespace strobe::bench {

struct Truncation {
  size_t drop = 0;      // values to leave out at the front
  bool settled = true;  // false: the best cut is the latest that is looked at, so the values may never have settled
};

// MSER-5 (White, Cobb & Spratt 2000; K. P. White 1997): the cut d, within the first half, that minimises the squared
// deviations of what is left over the square of its number, on means of 5 values; of fewer than 50 values on the values
// themselves, of fewer than 4 none. Timings have far outliers, which that statistic overweighs: values count as at most
// two robust standard deviations (1.4826 MAD) from the median.
Truncation mser(std::span<const double> values);

// An automatic warm-up as counts: MSER on the batches' times of each level, from the front and from the back, the
// largest of all levels; others as they are. settled becomes false where one of the levels is not.
Warmup resolve(const Warmup& wanted, const RangeTimes& ranges, bool* settled = nullptr);

}  // namespace strobe::bench
