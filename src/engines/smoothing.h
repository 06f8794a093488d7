// FFmpeg's gblur, a recursive filter, as convolutions: what an engine that smooths pictures on a device needs of it.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

namespace strobe::engines {

// Along a line v[i] = x[i] + r v[i - 1] and back w[i] = v[i] + r w[i + 1], begun as if the first and the last value
// went on for ever. `forth` are the weights of x[i - reach] to x[i], where r^n is nothing any more before; the way back
// has them the other way round. `scale` is of both directions of a picture, there and back.
struct Smoothing {
  int64_t reach = 0;
  double scale = 1;
  std::vector<float> forth;

  explicit Smoothing(double sigma) {
    const double lambda = sigma * sigma / 2;
    const double r = (1 + 2 * lambda - std::sqrt(1 + 4 * lambda)) / (2 * lambda);
    constexpr double kNothing = 1e-8;
    reach = static_cast<int64_t>(std::ceil(std::log(kNothing) / std::log(r)));
    scale = std::pow(1 - r, 4);
    for (int64_t i = reach; i >= 0; --i) forth.push_back(static_cast<float>(std::pow(r, static_cast<double>(i))));
  }
  std::vector<float> back() const { return {forth.rbegin(), forth.rend()}; }
};

}  // namespace strobe::engines
