#include "predict/residual_process.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace strobe::predict {
namespace {

constexpr int kReweightings = 2;
constexpr double kWild = 2;           // deviations of noise from which on a row counts less
constexpr double kLeastTrust = 1e-3;  // of the noise's precision

double square(double x) {
  return x * x;
}

}  // namespace

double ResidualProcess::network_kernel(const ProcessPoint& a, const ProcessPoint& b) const {
  double distance = 0;
  for (size_t i = 0; i < a.features.size(); ++i) distance += square(a.features[i] - b.features[i]);
  return std::exp(-0.5 * distance / square(scale_.network_length));
}

double ResidualProcess::covariance(const ProcessPoint& a, const ProcessPoint& b) const {
  const double near_batch = std::exp(-0.5 * square((a.log_batch - b.log_batch) / scale_.batch_length));
  const double near_network = network_kernel(a, b);
  return square(scale_.batch) * near_batch + square(scale_.network) * near_network +
         square(scale_.both) * near_network * near_batch;
}

std::vector<double> ResidualProcess::covariances() const {
  const size_t n = points_.size();
  std::vector<double> values(n * n);
  for (size_t i = 0; i < n; ++i) {
    for (size_t j = 0; j <= i; ++j) values[i * n + j] = values[j * n + i] = covariance(points_[i], points_[j]);
  }
  return values;
}

ResidualProcess::ResidualProcess(ProcessScale scale, std::vector<ProcessPoint> points,
                                 std::span<const double> residuals)
    : scale_(scale), points_(std::move(points)), residuals_(residuals.begin(), residuals.end()) {
  const size_t n = points_.size();
  if (n == 0) return;
  const std::vector<double> clean = covariances();
  std::vector<double> trust(n, 1);
  for (int round = 0; round <= kReweightings; ++round) {
    std::vector<double> noisy = clean;
    for (size_t i = 0; i < n; ++i) noisy[i * n + i] += square(scale_.noise) / trust[i];
    auto factor = Cholesky::of(std::move(noisy), n);
    if (!factor) return;  // cannot be: the noise makes it positive definite
    factor_ = std::make_shared<const Cholesky>(std::move(*factor));
    weights_ = factor_->solve(residuals_);
    if (round == kReweightings) return;
    for (size_t i = 0; i < n; ++i) {
      // The noise's share of the residual: r - K w = N w.
      const double off = std::abs(weights_[i]) * scale_.noise / trust[i];
      trust[i] = std::max(off <= kWild ? 1.0 : kWild / off, kLeastTrust);
    }
  }
}

Result<ResidualProcess> ResidualProcess::restore(ProcessScale scale, std::vector<ProcessPoint> points,
                                                 std::vector<double> weights) {
  if (points.size() != weights.size()) return bad_data("a residual process needs as many weights as points");
  for (const ProcessPoint& point : points) {
    if (point.features.size() != points.front().features.size()) {
      return bad_data("the points of a residual process differ in their number of features");
    }
  }
  ResidualProcess process;
  process.scale_ = scale;
  process.points_ = std::move(points);
  process.weights_ = std::move(weights);
  return process;
}

double ResidualProcess::mean(const ProcessPoint& at) const {
  double sum = 0;
  for (size_t i = 0; i < points_.size(); ++i) sum += weights_[i] * covariance(at, points_[i]);
  return sum;
}

double ResidualProcess::closeness(const ProcessPoint& at) const {
  double nearest = 0;
  for (const ProcessPoint& point : points_) nearest = std::max(nearest, network_kernel(at, point));
  return nearest;
}

std::vector<double> ResidualProcess::without_group(std::span<const size_t> groups) const {
  const size_t n = points_.size();
  std::vector<double> said(n, 0);
  if (!factor_) return said;
  // With the inverse A of K + N, the residuals that the rest of the points cannot tell of group g are
  // (A_gg)^-1 w_g (Rasmussen and Williams, equation 5.12 for single points; block inversion for groups).
  const std::vector<double> inverse = factor_->inverse();
  std::map<size_t, std::vector<size_t>> members;
  for (size_t i = 0; i < n; ++i) members[groups[i]].push_back(i);
  for (const auto& [group, rows] : members) {
    const size_t m = rows.size();
    std::vector<double> block(m * m), weights(m);
    for (size_t i = 0; i < m; ++i) {
      weights[i] = weights_[rows[i]];
      for (size_t j = 0; j < m; ++j) block[i * m + j] = inverse[rows[i] * n + rows[j]];
    }
    const auto factor = Cholesky::of(std::move(block), m);
    if (!factor) continue;
    const std::vector<double> left = factor->solve(weights);
    for (size_t i = 0; i < m; ++i) said[rows[i]] = residuals_[rows[i]] - left[i];
  }
  return said;
}

}  // namespace strobe::predict
