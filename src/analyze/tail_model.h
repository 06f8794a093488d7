// A model of the tail: how late a frame may be that is rarer than any that was seen (probabilistic worst case).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace strobe::analyze {

// Generalised Pareto distribution of what lies above the 95th percentile, fitted by probability-weighted moments
// (Hosking & Wallis 1987, plotting positions (i - 0.35) / n). P(excess > y) = (1 - shape y / scale)^(1 / shape), in
// their sign: shape < 0 is a heavy tail, 0 an exponential one, > 0 one that ends.
struct TailModel {
  bool accepted = false;
  std::string refusal;  // why there is none: too few values, or the test rejects
  double threshold = 0, scale = 0, shape = 0;
  size_t count = 0, excesses = 0;
  double anderson_darling = 0, p_value = 0;  // of the fit, by parametric bootstrap
  struct Bound {
    double probability = 0;               // a frame is later with at most this one
    double value = 0, low = 0, high = 0;  // with its 95 % interval, by parametric bootstrap
  };
  std::vector<Bound> bounds;
};

// values in any order, in any unit; refused for fewer than 1,000 or where the test rejects at 5 %. Takes the values as
// independent: of a series with long bursts the interval is too narrow.
TailModel tail_model(std::span<const double> values, std::span<const double> probabilities, uint64_t seed = 1);

}  // namespace strobe::analyze
