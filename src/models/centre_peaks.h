// Numbers of a map that are worth a look, found many at a time.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

namespace strobe::models {

inline float logistic(float x) {
  return 1 / (1 + std::exp(-x));
}
// The number whose logistic is the probability; infinite for 0 and 1.
inline float logit_of(float probability) {
  return std::log(probability / (1 - probability));
}

bool any_at_least(const float* values, size_t count, float least);

// Calls action(index, value) for values >= least, in order. Maps are mostly empty: blocks are passed over whole.
template <typename Action>
void each_above(std::span<const float> values, float least, Action action) {
  constexpr size_t kBlock = 64;
  for (size_t begin = 0; begin < values.size(); begin += kBlock) {
    const size_t count = std::min(kBlock, values.size() - begin);
    if (!any_at_least(values.data() + begin, count, least)) continue;
    for (size_t i = begin; i < begin + count; ++i)
      if (values[i] >= least) action(static_cast<int64_t>(i), values[i]);
  }
}

struct Peak {
  float value = 0;
  int32_t channel = 0, row = 0, column = 0;
};
// Places of a map (channels x rows x columns) that are at least `least` and not less than their eight neighbours (Zhou
// et al. 2019, CenterNet: a 3x3 max pool that leaves them as they are); the `most` largest, largest first.
std::vector<Peak> find_peaks(const float* map, int64_t channels, int64_t rows, int64_t columns, float least,
                             size_t most);

}  // namespace strobe::models
