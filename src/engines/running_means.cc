#include "engines/running_means.h"

#include <algorithm>

namespace strobe::engines {

int64_t RunningMeans::last_run_ns(size_t kernel, int64_t mean_us) {
  constexpr int64_t kCutOff = 500;  // on the average, by whole microseconds
  const int64_t sum = runs_ * (1000 * mean_us + kCutOff);
  const int64_t spent = std::max<int64_t>(1, sum - told_ns_[kernel]);
  told_ns_[kernel] += spent;
  return spent;
}

}  // namespace strobe::engines
