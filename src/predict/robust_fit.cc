#include "predict/robust_fit.h"

#include <algorithm>
#include <cmath>

#include "predict/cholesky.h"

namespace strobe::predict {
namespace {

constexpr double kStep = 1e-6;    // of the forward differences
constexpr double kEnough = 1e-9;  // relative fall of the loss at which the fit ends
constexpr double kMaxDamping = 1e12;

class Fit {
 public:
  explicit Fit(const RobustFit& fit) : fit_(fit), rows_(fit.observed.size()), count_(fit.priors.size()) {}

  std::vector<double> run() {
    std::vector<double> at(count_);
    for (size_t i = 0; i < count_; ++i) at[i] = fit_.priors[i].centre;
    if (rows_ == 0) return at;
    std::vector<double> predicted = predict(at);
    double loss = loss_of(at, predicted);
    double damping = 1e-3;
    for (int step = 0; step < fit_.max_steps; ++step) {
      linearise(at, predicted);
      bool better = false;
      double fall = 0;
      while (!better && damping < kMaxDamping) {
        std::vector<double> next = at;
        if (!propose(damping, next)) {
          damping *= 10;
          continue;
        }
        std::vector<double> there = predict(next);
        const double loss_there = loss_of(next, there);
        if (std::isfinite(loss_there) && loss_there < loss) {
          fall = (loss - loss_there) / loss;
          at = std::move(next);
          predicted = std::move(there);
          loss = loss_there;
          damping = std::max(damping / 10, 1e-12);
          better = true;
        } else {
          damping *= 10;
        }
      }
      if (!better || fall < kEnough) break;
    }
    return at;
  }

 private:
  std::vector<double> predict(std::span<const double> at) const {
    std::vector<double> predicted(rows_);
    fit_.model(at, predicted);
    return predicted;
  }

  double loss_of(std::span<const double> at, std::span<const double> predicted) const {
    double loss = 0;
    for (size_t i = 0; i < rows_; ++i) {
      const double z = std::abs(predicted[i] - fit_.observed[i]) / fit_.noise;
      loss += z <= fit_.huber ? z * z : fit_.huber * (2 * z - fit_.huber);
    }
    for (size_t i = 0; i < count_; ++i) {
      const double z = (at[i] - fit_.priors[i].centre) / fit_.priors[i].deviation;
      loss += z * z;
    }
    return loss;
  }

  // The normal equations at a point: (J'WJ + prior) step = -gradient.
  void linearise(std::span<const double> at, std::span<const double> predicted) {
    std::vector<std::vector<double>> slopes(count_);
    std::vector<double> moved(at.begin(), at.end());
    for (size_t j = 0; j < count_; ++j) {
      moved[j] = at[j] + kStep;
      slopes[j] = predict(moved);
      moved[j] = at[j];
      for (size_t i = 0; i < rows_; ++i) slopes[j][i] = (slopes[j][i] - predicted[i]) / kStep / fit_.noise;
    }
    std::vector<double> residual(rows_), weight(rows_);
    for (size_t i = 0; i < rows_; ++i) {
      residual[i] = (predicted[i] - fit_.observed[i]) / fit_.noise;
      weight[i] = std::abs(residual[i]) <= fit_.huber ? 1 : fit_.huber / std::abs(residual[i]);
    }
    curvature_.assign(count_ * count_, 0);
    gradient_.assign(count_, 0);
    for (size_t j = 0; j < count_; ++j) {
      for (size_t k = 0; k <= j; ++k) {
        double sum = 0;
        for (size_t i = 0; i < rows_; ++i) sum += weight[i] * slopes[j][i] * slopes[k][i];
        curvature_[j * count_ + k] = sum;
      }
      const double inverse = 1 / (fit_.priors[j].deviation * fit_.priors[j].deviation);
      curvature_[j * count_ + j] += inverse;
      gradient_[j] = (at[j] - fit_.priors[j].centre) * inverse;
      for (size_t i = 0; i < rows_; ++i) gradient_[j] += weight[i] * residual[i] * slopes[j][i];
    }
  }

  bool propose(double damping, std::vector<double>& at) const {
    std::vector<double> damped = curvature_;
    for (size_t j = 0; j < count_; ++j) damped[j * count_ + j] *= 1 + damping;
    const auto factor = Cholesky::of(std::move(damped), count_);
    if (!factor) return false;
    const std::vector<double> step = factor->solve(gradient_);
    for (size_t j = 0; j < count_; ++j) at[j] -= step[j];
    return true;
  }

  const RobustFit& fit_;
  size_t rows_, count_;
  std::vector<double> curvature_, gradient_;
};

}  // namespace

std::vector<double> fit_robustly(const RobustFit& fit) {
  return Fit(fit).run();
}

}  // namespace strobe::predict
