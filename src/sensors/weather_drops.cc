#include "sensors/weather_drops.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace strobe::sensors {

namespace {

double echo(const DropModel& model, double range, double diameter) {
  const double filled = diameter / (model.beam_mm_per_m * range);
  return model.reflectance * std::exp(-2 * model.alpha * range) * std::min(filled * filled, 1.0) / (range * range);
}

// The count is the mean rounded up or down, as LISA has it, not Poisson.
double draw_count(double mean, double uniform) {
  const double whole = std::floor(mean);
  return whole + (uniform < mean - whole ? 1 : 0);
}

void keep(std::optional<DropEcho>& best, const DropEcho& drop, DropPick pick) {
  if (!best || (pick == DropPick::kStrongest ? drop.power > best->power : drop.range_m > best->range_m)) best = drop;
}

// Where candidates lie: 3 r^2 below the range where the smallest drop passes, 3 r^2 exp(-a r^2 + lambda D_0) beyond it.
class CandidateRanges {
 public:
  CandidateRanges(const DropModel& model, double nearest, double farthest, double need_per_m2)
      : near_(nearest),
        far_(farthest),
        knee_(std::clamp(std::sqrt(model.smallest_mm / need_per_m2), nearest, farthest)),
        a_(model.sizes.lambda * need_per_m2),
        offset_(model.sizes.lambda * model.smallest_mm),
        flat_(knee_ * knee_ * knee_ - near_ * near_ * near_) {}

  // Above the whole mass, and cheaper: integral_k^inf 3 r^2 exp(-a r^2) dr < 3/(2a) exp(-a k^2) (k + 1/(2 a k)).
  double bound() const {
    return flat_ + 1.5 / a_ * std::exp(offset_ - a_ * knee_ * knee_) * (knee_ + 0.5 / (a_ * knee_));
  }
  double mass() {
    root_ = std::sqrt(a_);
    tail_ = std::max(0.0, primitive(far_) - primitive(knee_));
    return flat_ + tail_;
  }
  // After mass(): the range below which lies the share u of it.
  double quantile(double u) const {
    const double wanted = u * (flat_ + tail_);
    if (wanted <= flat_) return std::cbrt(near_ * near_ * near_ + wanted);
    const double target = primitive(knee_) + (wanted - flat_);
    double low = knee_, high = far_, r = (low + high) / 2;
    for (int i = 0; i < 100 && high - low > 1e-13 * high; ++i) {
      const double miss = primitive(r) - target;
      (miss < 0 ? low : high) = r;
      const double next = r - miss / (3 * r * r * std::exp(offset_ - a_ * r * r));
      r = next > low && next < high ? next : (low + high) / 2;
    }
    return r;
  }

 private:
  double primitive(double r) const {
    return std::exp(offset_) * 1.5 / a_ *
           (std::sqrt(std::numbers::pi) / (2 * root_) * std::erf(root_ * r) - r * std::exp(-a_ * r * r));
  }

  double near_, far_, knee_, a_, offset_, flat_;
  double root_ = 0, tail_ = 0;
};

}  // namespace

double mean_drop_count(const DropModel& model, double range_m) {
  const double radius_m = model.beam_mm_per_m * range_m / 2000;
  const double volume = std::numbers::pi / 3 * range_m * radius_m * radius_m;
  return volume * model.sizes.n0 * std::exp(-model.sizes.lambda * model.smallest_mm) / model.sizes.lambda;
}

std::optional<DropEcho> pick_among_all_drops(const DropModel& model, double range_m, double threshold, DropPick pick,
                                             DropRandom& random) {
  if (range_m <= model.min_range_m) return {};
  const double count = draw_count(mean_drop_count(model, range_m), random.next());
  std::optional<DropEcho> best;
  for (double i = 0; i < count; ++i) {
    const double range = range_m * std::cbrt(random.next());
    const double diameter = model.smallest_mm - std::log(random.next()) / model.sizes.lambda;
    if (range <= model.min_range_m) continue;
    const double power = echo(model, range, diameter);
    if (power > threshold) keep(best, {range, power}, pick);
  }
  return best;
}

std::optional<DropEcho> pick_among_drops(const DropModel& model, double range_m, double threshold, DropPick pick,
                                         DropRandom& random) {
  if (range_m <= model.min_range_m) return {};
  // Even a drop that fills the beam is too weak beyond this range.
  const double farthest = std::min(range_m, std::sqrt(model.reflectance / threshold));
  if (farthest <= model.min_range_m) return {};
  const double mean = mean_drop_count(model, range_m);
  if (!(mean > 0)) return {};
  const double need_per_m2 = model.beam_mm_per_m * std::sqrt(threshold / model.reflectance);
  CandidateRanges ranges(model, model.min_range_m, farthest, need_per_m2);
  const double volume = range_m * range_m * range_m;
  const double none = random.next();  // candidates there are where it lies below 1 - (1 - q)^Nt <= Nt q
  if (none > (mean + 1) * ranges.bound() / volume) return {};

  const double count = draw_count(mean, random.next());
  const double q = std::min(ranges.mass() / volume, 1 - 1e-15);
  if (count == 0 || q <= 0) return {};
  // Binomial by inversion, from the side where 0 lies last: `none` is small where there are candidates.
  const double odds = q / (1 - q);
  const double log_none = count * std::log1p(-q);
  double probability = std::exp(log_none), above = -std::expm1(log_none);
  double candidates = 0;
  while (none < above && candidates < count) {
    probability *= (count - candidates) / (candidates + 1) * odds;
    above -= probability;
    ++candidates;
  }
  std::optional<DropEcho> best;
  for (double i = 0; i < candidates; ++i) {
    const double range = ranges.quantile(random.next());
    const double least = std::max(model.smallest_mm, need_per_m2 * range * range);
    const double power = echo(model, range, least - std::log(random.next()) / model.sizes.lambda);
    if (power > threshold) keep(best, {range, power}, pick);
  }
  return best;
}

}  // namespace strobe::sensors
