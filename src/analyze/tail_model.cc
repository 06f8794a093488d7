#include "analyze/tail_model.h"

#include <algorithm>
#include <cmath>
#include <random>

#include "base/statistics.h"

namespace strobe::analyze {
namespace {

constexpr size_t kFewest = 1000;
constexpr double kThreshold = 0.95, kLevel = 0.05;
constexpr int kResamples = 400;
constexpr double kExponential = 1e-9;  // shapes nearer to 0 than this are taken for it

struct Fit {
  double scale = 0, shape = 0;
};

// Of ascending excesses.
Fit fit(const std::vector<double>& excesses) {
  const auto n = static_cast<double>(excesses.size());
  double a0 = 0, a1 = 0;
  for (size_t i = 0; i < excesses.size(); ++i) {
    a0 += excesses[i];
    a1 += excesses[i] * (1 - (static_cast<double>(i) + 1 - 0.35) / n);
  }
  a0 /= n;
  a1 /= n;
  const double denominator = a0 - 2 * a1;
  return {2 * a0 * a1 / denominator, a0 / denominator - 2};
}

double below(const Fit& of, double excess) {
  if (std::abs(of.shape) < kExponential) return 1 - std::exp(-excess / of.scale);
  const double base = 1 - of.shape * excess / of.scale;
  return base <= 0 ? 1 : 1 - std::pow(base, 1 / of.shape);
}

// The excess that is passed with probability p.
double excess_at(const Fit& of, double p) {
  if (std::abs(of.shape) < kExponential) return -of.scale * std::log(p);
  return of.scale / of.shape * (1 - std::pow(p, of.shape));
}

double anderson_darling(const Fit& of, const std::vector<double>& excesses) {
  const size_t n = excesses.size();
  double sum = 0;
  constexpr double kTiny = 1e-12;
  for (size_t i = 0; i < n; ++i) {
    const double low = std::clamp(below(of, excesses[i]), kTiny, 1 - kTiny);
    const double high = std::clamp(below(of, excesses[n - 1 - i]), kTiny, 1 - kTiny);
    sum += static_cast<double>(2 * i + 1) * (std::log(low) + std::log(1 - high));
  }
  return -static_cast<double>(n) - sum / static_cast<double>(n);
}

}  // namespace

TailModel tail_model(std::span<const double> values, std::span<const double> probabilities, uint64_t seed) {
  TailModel model;
  model.count = values.size();
  if (values.size() < kFewest) {
    model.refusal = "needs " + std::to_string(kFewest) + " values, there are " + std::to_string(values.size());
    return model;
  }
  std::vector<double> ascending(values.begin(), values.end());
  std::sort(ascending.begin(), ascending.end());
  model.threshold = quantile_sorted(ascending, kThreshold);
  std::vector<double> excesses;
  for (const double value : ascending)
    if (value > model.threshold) excesses.push_back(value - model.threshold);
  model.excesses = excesses.size();
  constexpr size_t kFewestExcesses = 20;
  if (excesses.size() < kFewestExcesses || excesses.front() == excesses.back()) {
    model.refusal = "the values above the 95th percentile are too few or all the same";
    return model;
  }
  const Fit fitted = fit(excesses);
  model.scale = fitted.scale;
  model.shape = fitted.shape;
  if (!(fitted.scale > 0) || !std::isfinite(fitted.shape)) {
    model.refusal = "no generalised Pareto tail fits";
    return model;
  }
  model.anderson_darling = anderson_darling(fitted, excesses);
  const double share = static_cast<double>(excesses.size()) / static_cast<double>(values.size());
  const auto bound = [&](const Fit& of, double p) { return model.threshold + excess_at(of, std::min(1.0, p / share)); };

  // Samples of the fitted tail, fitted again: how well it could fit, and how far its bounds vary.
  std::mt19937_64 random(seed);
  const auto uniform = [&] { return (static_cast<double>(random() >> 11) + 0.5) * 0x1.0p-53; };
  std::vector<std::vector<double>> drawn(probabilities.size());
  int worse = 0;
  std::vector<double> sample(excesses.size());
  for (int i = 0; i < kResamples; ++i) {
    for (double& excess : sample) excess = excess_at(fitted, uniform());
    std::sort(sample.begin(), sample.end());
    const Fit again = fit(sample);
    if (anderson_darling(again, sample) >= model.anderson_darling) ++worse;
    for (size_t p = 0; p < probabilities.size(); ++p) drawn[p].push_back(bound(again, probabilities[p]));
  }
  model.p_value = static_cast<double>(worse) / kResamples;
  if (model.p_value < kLevel) {
    model.refusal = "the Anderson-Darling test rejects a generalised Pareto tail";
    return model;
  }
  model.accepted = true;
  for (size_t p = 0; p < probabilities.size(); ++p) {
    std::sort(drawn[p].begin(), drawn[p].end());
    model.bounds.push_back({probabilities[p], bound(fitted, probabilities[p]), quantile_sorted(drawn[p], 0.025),
                            quantile_sorted(drawn[p], 0.975)});
  }
  return model;
}

}  // namespace strobe::analyze
