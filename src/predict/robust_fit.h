// Maximum a posteriori of the parameters of a model whose errors are mostly normal and sometimes wild: Huber's loss on
// the residuals, a normal prior on each parameter, minimised by Levenberg and Marquardt's method with iteratively
// reweighted residuals (Huber, Robust Statistics, 1981). Deterministic.
#pragma once

#include <functional>
#include <span>
#include <vector>

namespace strobe::predict {

// A parameter as the fit sees it; positive quantities are passed as their logarithm.
struct Prior {
  double centre = 0;
  double deviation = 1;
};

struct RobustFit {
  std::span<const Prior> priors;     // one a parameter; the fit starts at their centres
  std::span<const double> observed;  // one a row
  // Writes the model's value of each row into `predicted`.
  std::function<void(std::span<const double> parameters, std::span<double> predicted)> model;
  double noise = 1;    // standard deviation of a row, in the unit of the observed values
  double huber = 1.5;  // residuals beyond as many deviations count linearly
  int max_steps = 60;
};

// The parameters at the minimum. Where there are no rows, the priors' centres.
std::vector<double> fit_robustly(const RobustFit& fit);

}  // namespace strobe::predict
