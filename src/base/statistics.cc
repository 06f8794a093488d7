#include "base/statistics.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace strobe {

double quantile_sorted(std::span<const double> ascending, double q) {
  if (ascending.empty()) return std::numeric_limits<double>::quiet_NaN();
  const double position = std::clamp(q, 0.0, 1.0) * static_cast<double>(ascending.size() - 1);
  const auto low = static_cast<size_t>(position);
  const size_t high = std::min(low + 1, ascending.size() - 1);
  return ascending[low] + (position - static_cast<double>(low)) * (ascending[high] - ascending[low]);
}

double quantile(std::vector<double> values, double q) {
  std::sort(values.begin(), values.end());
  return quantile_sorted(values, q);
}

double mean(std::span<const double> values) {
  if (values.empty()) return std::numeric_limits<double>::quiet_NaN();
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double standard_deviation(std::span<const double> values) {
  if (values.size() < 2) return 0;
  const double middle = mean(values);
  double sum = 0;
  for (const double value : values) sum += (value - middle) * (value - middle);
  return std::sqrt(sum / static_cast<double>(values.size() - 1));
}

}  // namespace strobe
