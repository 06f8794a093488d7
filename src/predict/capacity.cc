#include "predict/capacity.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "predict/training_memory.h"

namespace strobe::predict {
namespace {

constexpr double kCopies = 3;  // parameters, gradients, momentum

double log_likelihood(std::span<const Trial> trials, const Capacity& capacity) {
  double sum = 0;
  for (const Trial& trial : trials) {
    const double z = (trial.log_footprint - capacity.log_threshold) / capacity.width;
    // -log(1 + e^z) of what passed, -log(1 + e^-z) of what failed.
    const double against = trial.passed ? z : -z;
    sum -= std::max(against, 0.0) + std::log1p(std::exp(-std::abs(against)));
  }
  return sum;
}

}  // namespace

double log_footprint(const LayerList& layers, double reserved) {
  return std::log(std::max(reserved + kCopies * parameter_bytes(layers), 1.0));
}

double Capacity::chance(double log_footprint) const {
  return 1 / (1 + std::exp((log_footprint - log_threshold) / width));
}

std::optional<Capacity> learn_capacity(std::span<const Trial> trials) {
  std::vector<Trial> sorted(trials.begin(), trials.end());
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const Trial& a, const Trial& b) { return a.log_footprint < b.log_footprint; });
  const auto passed = std::count_if(sorted.begin(), sorted.end(), [](const Trial& trial) { return trial.passed; });
  const auto count = static_cast<int64_t>(sorted.size());
  if (passed == 0 || passed == count) return std::nullopt;
  // right: trials told rightly when the first i are said to run.
  int64_t right = count - passed, best = -1;
  std::vector<size_t> best_cuts;
  for (size_t i = 0; i <= sorted.size(); ++i) {
    if (i > 0) right += sorted[i - 1].passed ? 1 : -1;
    const bool between = i > 0 && i < sorted.size() && sorted[i - 1].log_footprint < sorted[i].log_footprint;
    if (!between || right < best) continue;
    if (right > best) best_cuts.clear();
    best = right;
    best_cuts.push_back(i);
  }
  if (best_cuts.empty()) return std::nullopt;  // all need the same
  const size_t cut = best_cuts[best_cuts.size() / 2];
  Capacity capacity;
  capacity.log_threshold = (sorted[cut - 1].log_footprint + sorted[cut].log_footprint) / 2;
  double most = -INFINITY;
  double width = capacity.width;
  for (const double candidate : {0.005, 0.01, 0.02, 0.03, 0.05, 0.07, 0.1, 0.15, 0.2, 0.3, 0.5}) {
    capacity.width = candidate;
    if (const double likelihood = log_likelihood(sorted, capacity); likelihood > most) {
      most = likelihood;
      width = candidate;
    }
  }
  capacity.width = width;
  return capacity;
}

}  // namespace strobe::predict
