#pragma once

#include <optional>
#include <vector>

#include "analyze/bootstrap.h"

namespace strobe::bench {

// The mean of values in time order with its 95 % interval (analyze/bootstrap.h); nothing for fewer than
// analyze::least_samples() or a mean that is not positive.
std::optional<analyze::RatioInterval> mean_interval(const std::vector<double>& values);

}  // namespace strobe::bench
