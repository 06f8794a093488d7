#include "predict/conformal.h"

#include <algorithm>
#include <cmath>

namespace strobe::predict {

double conformal_quantile(std::vector<double> errors, double coverage) {
  if (errors.empty()) return 0;
  std::sort(errors.begin(), errors.end());
  const auto rank = static_cast<size_t>(std::ceil(coverage * static_cast<double>(errors.size() + 1)));
  return errors[std::clamp<size_t>(rank, 1, errors.size()) - 1];
}

}  // namespace strobe::predict
