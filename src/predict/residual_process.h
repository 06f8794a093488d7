// What a physical model leaves over, as a Gaussian process on the logarithm of measured / modelled. Its covariance has
// three parts (Rasmussen and Williams, Gaussian Processes for Machine Learning, 2006, chapters 2 and 4):
//   batch^2 kb + network^2 kn + both^2 kn kb,  kb = exp(-(log b - log b')^2 / 2 lb^2),  kn = exp(-|x - x'|^2 / 2 ln^2)
// with b the batch and x features of the network. What depends on the batch alone carries over to any network; what is
// the network's own carries over to similar ones and vanishes far from them, where the physical model stands alone.
// Rows that lie far off the process are weighted down, as in Huber's loss.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "predict/cholesky.h"
#include "strobe/base/result.h"

namespace strobe::predict {

struct ProcessScale {
  double batch = 0.1;  // standard deviations of the three parts, and of a measurement
  double network = 0.06;
  double both = 0.05;
  double noise = 0.04;
  double batch_length = 0.5;    // lb, in log batch
  double network_length = 0.3;  // ln, in the unit of the features
};

// Where a residual was seen.
struct ProcessPoint {
  std::vector<double> features;  // of the network
  double log_batch = 0;
};

class ResidualProcess {
 public:
  ResidualProcess() = default;  // knows nothing: its mean is 0
  ResidualProcess(ProcessScale scale, std::vector<ProcessPoint> points, std::span<const double> residuals);
  // As it was saved. Errors: kBadData where the sizes differ.
  static Result<ResidualProcess> restore(ProcessScale scale, std::vector<ProcessPoint> points,
                                         std::vector<double> weights);

  double mean(const ProcessPoint& at) const;
  double covariance(const ProcessPoint& a, const ProcessPoint& b) const;  // before any residual was seen
  // How near the nearest known network is: kn, 0 (none like it) .. 1 (the same).
  double closeness(const ProcessPoint& at) const;
  // What the process says at each of its points when the points of the same group are withheld; `groups` names the
  // group of each point.
  std::vector<double> without_group(std::span<const size_t> groups) const;

  const ProcessScale& scale() const { return scale_; }
  const std::vector<ProcessPoint>& points() const { return points_; }
  const std::vector<double>& weights() const { return weights_; }

 private:
  double network_kernel(const ProcessPoint& a, const ProcessPoint& b) const;
  std::vector<double> covariances() const;  // between the points, without noise

  ProcessScale scale_;
  std::vector<ProcessPoint> points_;
  std::vector<double> weights_;  // (K + N)^-1 residuals
  // For without_group(); not saved.
  std::shared_ptr<const Cholesky> factor_;
  std::vector<double> residuals_;
};

}  // namespace strobe::predict
