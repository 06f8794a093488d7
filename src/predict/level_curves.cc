#include "predict/level_curves.h"

#include <algorithm>
#include <cmath>

namespace strobe::predict {
namespace {

// Random draws of the same level differ by as much in the logarithm of their size; an equally named network that
// differs by more is another one.
constexpr double kSlack = 0.25;

double between(double x, double x0, double y0, double x1, double y1) {
  return x1 > x0 ? y0 + (y1 - y0) * (x - x0) / (x1 - x0) : y0;
}

double residual_at(const LevelCurves::Curve& curve, int64_t batch, const LevelCurves::LogPhysics& physics) {
  const auto above = curve.log_values.lower_bound(batch);
  const auto last = above == curve.log_values.end() ? std::prev(above) : above;
  const auto first = above == curve.log_values.begin() || last->first <= batch ? last : std::prev(above);
  const double low = first->second - physics(first->first);
  if (first == last) return low;
  return between(std::log(static_cast<double>(batch)), std::log(static_cast<double>(first->first)), low,
                 std::log(static_cast<double>(last->first)), last->second - physics(last->first));
}

bool is_between(std::span<const double> at, std::span<const double> a, std::span<const double> b) {
  for (size_t i = 0; i < at.size(); ++i) {
    if (at[i] < std::min(a[i], b[i]) - kSlack || at[i] > std::max(a[i], b[i]) + kSlack) return false;
  }
  return true;
}

}  // namespace

void LevelCurves::set(const LevelPlace& place, std::span<const std::pair<int64_t, double>> log_values) {
  if (log_values.empty()) return;
  std::map<int64_t, std::vector<double>> repeated;
  for (const auto& [batch, value] : log_values) repeated[batch].push_back(value);
  Curve curve{.features = place.features, .log_values = {}};
  for (auto& [batch, values] : repeated) {
    std::sort(values.begin(), values.end());
    curve.log_values[batch] = (values[(values.size() - 1) / 2] + values[values.size() / 2]) / 2;
  }
  networks_[place.net][place.level] = std::move(curve);
}

std::optional<double> LevelCurves::residual(const LevelPlace& place, int64_t batch, const LogPhysics& physics,
                                            std::optional<int64_t> without) const {
  const auto network = networks_.find(place.net);
  if (network == networks_.end()) return std::nullopt;
  const Levels& levels = network->second;
  auto high = levels.lower_bound(place.level);
  if (high != levels.end() && without == high->first) ++high;
  if (high == levels.end()) return std::nullopt;
  auto low = high;
  if (high->first != place.level) {
    do {
      if (low == levels.begin()) return std::nullopt;
      --low;
    } while (without == low->first);
  }
  if (!is_between(place.features, low->second.features, high->second.features)) return std::nullopt;
  const double below = residual_at(low->second, batch, physics);
  if (low == high) return below;
  return between(static_cast<double>(place.level), static_cast<double>(low->first), below,
                 static_cast<double>(high->first), residual_at(high->second, batch, physics));
}

double interpolation_share(std::span<const LevelErrors> levels) {
  constexpr int kSteps = 20;
  constexpr double kExact = 1e-12;  // squared error of a level below which nothing can be told apart
  std::vector<double> log_posterior;
  for (int step = 0; step <= kSteps; ++step) {
    const double share = static_cast<double>(step) / kSteps;
    double squares = 0;
    for (const LevelErrors& level : levels) {
      double sum = kExact;
      for (size_t i = 0; i < level.model.size(); ++i) {
        const double error = (1 - share) * level.model[i] + share * level.interpolation[i];
        sum += error * error / static_cast<double>(level.model.size());
      }
      squares += sum;
    }
    // The deviation, with a prior uniform in its logarithm, is integrated out.
    log_posterior.push_back(-0.5 * static_cast<double>(levels.size()) * std::log(squares));
  }
  if (levels.empty()) return 0;
  const double most = *std::max_element(log_posterior.begin(), log_posterior.end());
  double weight = 0, sum = 0;
  for (int step = 0; step <= kSteps; ++step) {
    const double here = std::exp(log_posterior[static_cast<size_t>(step)] - most);
    weight += here;
    sum += here * step / kSteps;
  }
  return sum / weight;
}

}  // namespace strobe::predict
