#include "sensors/weather.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <numbers>
#include <thread>

namespace strobe::sensors {

namespace {

// A multiple of 4, which is a group of the noise; small enough to even out the threads, large enough to be worth one.
constexpr size_t kPart = 1024;
constexpr double kTargetReflectivity = 0.9;

Result<void> check_positive(const char* what, double value) {
  if (value > 0 && std::isfinite(value)) return {};
  return usage_error(fmt::format("{} {:g}: expected a number above 0", what, value));
}

Result<void> check(const WeatherOptions& o) {
  constexpr double kMostRain = 1e4;  // several times what ever fell; above it drops fill the beams
  if (!(o.rate_mm_h >= 0 && o.rate_mm_h <= kMostRain))
    return usage_error(fmt::format("rate {:g}: expected mm/h, 0 to {:g}", o.rate_mm_h, kMostRain));
  STROBE_TRY(check_positive("maximal range", o.max_range_m));
  STROBE_TRY(check_positive("beam divergence", o.divergence_rad));
  STROBE_TRY(check_positive("range accuracy", o.range_accuracy_m));
  STROBE_TRY(check_positive("smallest drop", o.smallest_drop_mm));
  STROBE_TRY(check_positive("nearest range", o.min_range_m));
  if (o.alpha && !(*o.alpha >= 0 && std::isfinite(*o.alpha)))
    return usage_error(fmt::format("extinction {:g}: expected 1/m, 0 or more", *o.alpha));
  if (o.rules == WeatherRules::kGoodin2019 && o.kind != WeatherKind::kRain && o.kind != WeatherKind::kDry)
    return usage_error("rules goodin2019 know rain only");
  if (o.rules == WeatherRules::kGoodin2019 && o.mode != WeatherMode::kMean)
    return usage_error("rules goodin2019 have no single drops: expected mode mean");
  if (o.kind == WeatherKind::kFog && o.mode != WeatherMode::kMean)
    return usage_error("fog's droplets are too small to be met one by one: expected mode mean");
  return {};
}

double reflectance(double index) {
  const double ratio = (index - 1) / (index + 1);
  return ratio * ratio;
}

Result<void> check_points(const PointSweep& sweep) {
  const auto stride = static_cast<size_t>(sweep.columns);
  for (size_t i = 0; i < sweep.count(); ++i) {
    const float* point = &sweep.values[i * stride];
    // A sum is finite only where its terms are; one test for the usual case.
    if (!std::isfinite(double{point[0]} + point[1] + point[2] + point[3])) {
      return bad_data(fmt::format("point {}: ({:g}, {:g}, {:g}) with intensity {:g}: expected finite numbers", i,
                                  point[0], point[1], point[2], point[3]));
    }
    if (point[3] < 0 || point[3] > sweep.full_intensity) {
      return bad_data(fmt::format("point {}: intensity {:g}: expected 0 to {:g}", i, point[3], sweep.full_intensity));
    }
  }
  return {};
}

double range_of(const float* point) {
  const double x = point[0], y = point[1], z = point[2];
  return std::sqrt(x * x + y * y + z * z);
}

// Uniform in (0, 1).
double unit(uint32_t word) {
  return (static_cast<double>(word) + 0.5) * 0x1p-32;
}

// Standard normals of the points begin .. begin + count, begin a multiple of 4 (Box & Muller 1958).
void draw_normals(uint64_t seed, uint64_t frame, size_t begin, size_t count, double* normals) {
  for (size_t i = 0; i < count; i += 4) {
    const PhiloxBlock words = noise_words(seed, frame, static_cast<uint32_t>((begin + i) / 4));
    for (size_t pair = 0; pair < 2; ++pair) {
      const double length = std::sqrt(-2 * std::log(unit(words[2 * pair])));
      const double angle = 2 * std::numbers::pi * unit(words[2 * pair + 1]);
      normals[i + 2 * pair] = length * std::cos(angle);
      normals[i + 2 * pair + 1] = length * std::sin(angle);
    }
  }
}

void add(FateCounts& sum, const FateCounts& more) {
  sum.points += more.points, sum.lost += more.lost, sum.scattered += more.scattered, sum.kept += more.kept;
  sum.lost_dry += more.lost_dry;
  sum.range_rms_m += more.range_rms_m;  // squares, until finish()
  sum.intensity_before += more.intensity_before, sum.intensity_after += more.intensity_after;
}

void finish(FateCounts& counts) {
  counts.range_rms_m = counts.kept > 0 ? std::sqrt(counts.range_rms_m / static_cast<double>(counts.kept)) : 0;
}

}  // namespace

struct Weather::Part {
  FateCounts near, far;
};

Result<Weather> Weather::create(const WeatherOptions& options) {
  STROBE_TRY(check(options));
  Weather weather(options);
  const WeatherOptions& o = weather.options_;
  const bool lisa = o.rules == WeatherRules::kLisa;
  const bool goodin = o.rules == WeatherRules::kGoodin2019;
  const double size_scale = lisa ? 0.5 : 1;
  DropModel& drops = weather.drops_;
  drops.beam_mm_per_m = 1000 * std::tan(o.divergence_rad);
  drops.smallest_mm = o.smallest_drop_mm;
  drops.min_range_m = o.min_range_m;
  const bool falls = o.rate_mm_h > 0 && (o.kind == WeatherKind::kRain || o.kind == WeatherKind::kSnow);
  if (falls) {
    const bool rain = o.kind == WeatherKind::kRain;
    drops.sizes = rain ? rain_drops(o.rate_mm_h) : snow_flakes(o.rate_mm_h, o.density);
    drops.reflectance = reflectance(rain ? kWaterIndex : kIceIndex);
  }
  if (o.alpha) {
    weather.alpha_ = *o.alpha;
  } else if (falls && goodin) {
    weather.alpha_ = 0.01 * std::pow(o.rate_mm_h, 0.6);
  } else if (falls) {
    // Snow, too, as spheres of water: its sizes are melted diameters.
    weather.alpha_ = scattering(distribution(drops.sizes), kWaterIndex, size_scale).alpha;
  } else if (o.kind == WeatherKind::kFog) {
    STROBE_ASSIGN(const Fog fog, find_fog(o.fog));
    weather.alpha_ = scattering(distribution(fog, o.density, lisa), kWaterIndex, size_scale).alpha;
  }
  drops.alpha = weather.alpha_;
  weather.least_power_ = kTargetReflectivity / (o.max_range_m * o.max_range_m * (goodin ? std::numbers::pi : 1));
  return weather;
}

double Weather::power(double reflectivity, double range) const {
  return std::max(reflectivity, options_.least_reflectivity) / (range * range);
}

bool Weather::is_lost_in_mean(double power, double range) const {
  if (options_.rules == WeatherRules::kGoodin2019) return power < least_power_;
  return (range <= options_.min_range_m && !options_.keep_near) || power <= least_power_;
}

PointFate Weather::fate_among_drops(double reflectivity, double power, double range, uint64_t frame, size_t point,
                                    DropEcho& echo) const {
  if (reflectivity <= 0 && options_.least_reflectivity <= 0) return PointFate::kLost;
  const bool seen = power >= least_power_;
  const bool last = options_.pick == DropPick::kFarthest;
  if (last && seen) return PointFate::kKept;
  if (drops_.reflectance > 0) {
    DropRandom random(options_.seed, frame, static_cast<uint32_t>(point));
    const double threshold = std::max(power, least_power_);
    const auto picked = options_.every_drop ? pick_among_all_drops(drops_, range, threshold, options_.pick, random)
                                            : pick_among_drops(drops_, range, threshold, options_.pick, random);
    if (picked) {
      echo = *picked;
      return PointFate::kScattered;
    }
  }
  return seen ? PointFate::kKept : PointFate::kLost;
}

double Weather::noise_deviation(double power, double range) const {
  if (options_.rules == WeatherRules::kGoodin2019) {
    const double wet = 1 - std::exp(-options_.rate_mm_h);
    return 0.02 * range * wet * wet;
  }
  return options_.range_accuracy_m / std::sqrt(2 * power / least_power_);
}

void Weather::apply_part(const PointSweep& sweep, uint64_t frame, size_t begin, size_t end, std::span<PointFate> fates,
                         Part& part) const {
  const auto stride = static_cast<size_t>(sweep.columns);
  double normals[kPart];
  draw_normals(options_.seed, frame, begin, end - begin, normals);
  const double full = sweep.full_intensity;
  for (size_t i = begin; i < end; ++i) {
    float* const point = &sweep.values[i * stride];
    const double range = range_of(point), reflectivity = point[3] / full;
    FateCounts& counts = range > options_.min_range_m ? part.far : part.near;
    ++counts.points;
    const double dry_power = power(reflectivity, range), through = std::exp(-2 * alpha_ * range);
    const double wet_power = dry_power * through;
    const bool mean = options_.mode == WeatherMode::kMean;
    DropEcho echo{};
    PointFate fate = PointFate::kLost;
    // A point at the origin is one that a sensor or an earlier step has lost: it has no direction.
    if (range > 0) {
      if (mean) {
        fate = is_lost_in_mean(wet_power, range) ? PointFate::kLost : PointFate::kKept;
        counts.lost_dry += is_lost_in_mean(dry_power, range);
      } else {
        fate = fate_among_drops(reflectivity, wet_power, range, frame, i, echo);
        counts.lost_dry += dry_power < least_power_ || dry_power <= 0;
      }
    } else {
      ++counts.lost_dry;
    }
    fates[i] = fate;
    double after = 0, reflectivity_after = 0;
    if (fate == PointFate::kLost) {
      ++counts.lost;
      std::fill_n(point, 4, 0.0F);
      continue;
    }
    if (fate == PointFate::kKept) {
      const double shift = noise_deviation(wet_power, range) * normals[i - begin];
      after = range + shift;
      reflectivity_after = reflectivity * through;
      ++counts.kept;
      counts.range_rms_m += shift * shift;
      counts.intensity_before += reflectivity;
      counts.intensity_after += reflectivity_after;
    } else {
      after = echo.range_m;
      reflectivity_after = echo.power * echo.range_m * echo.range_m;
      ++counts.scattered;
    }
    const double scale = after / range;
    for (int axis = 0; axis < 3; ++axis) point[axis] = static_cast<float>(point[axis] * scale);
    point[3] = static_cast<float>(reflectivity_after * full);
  }
}

Result<WeatherSummary> Weather::apply(const PointSweep& sweep, uint64_t frame, int threads,
                                      std::span<PointFate> fates) const {
  STROBE_TRY(check_points(sweep));
  const size_t count = sweep.count();
  std::vector<Part> parts((count + kPart - 1) / kPart);
  std::atomic<size_t> next{0};
  const auto work = [&] {
    for (size_t part = next++; part < parts.size(); part = next++) {
      apply_part(sweep, frame, part * kPart, std::min(count, (part + 1) * kPart), fates, parts[part]);
    }
  };
  std::vector<std::jthread> others;
  const size_t wanted = std::min<size_t>(static_cast<size_t>(std::max(threads, 1)), parts.size());
  for (size_t i = 1; i < wanted; ++i) others.emplace_back(work);
  work();
  others.clear();

  WeatherSummary summary;  // in the order of the parts: sums of doubles depend on it
  for (const Part& part : parts) {
    add(summary.far, part.far);
    add(summary.all, part.near);
    add(summary.all, part.far);
  }
  finish(summary.all);
  finish(summary.far);
  return summary;
}

Result<WeatherOptions> calibrated(WeatherOptions options, const PointSweep& sweep) {
  STROBE_TRY(check_points(sweep));
  const auto stride = static_cast<size_t>(sweep.columns);
  double step = 1;  // the smallest intensity there is is the step in which it is told
  for (size_t i = 0; i < sweep.count(); ++i) {
    const double reflectivity = sweep.values[i * stride + 3] / sweep.full_intensity;
    if (reflectivity > 0) step = std::min(step, reflectivity);
  }
  options.least_reflectivity = step / 2;
  options.keep_near = true;
  double farthest_squared = 0;
  for (size_t i = 0; i < sweep.count(); ++i) {
    const float* point = &sweep.values[i * stride];
    const double range = range_of(point), reflectivity = point[3] / sweep.full_intensity;
    farthest_squared = std::max(farthest_squared, range * range / std::max(reflectivity, options.least_reflectivity));
  }
  if (farthest_squared == 0) return options;
  const double target = kTargetReflectivity / (options.rules == WeatherRules::kGoodin2019 ? std::numbers::pi : 1);
  // The weakest return is to lie above the limit, not on it.
  options.max_range_m = std::sqrt(target * farthest_squared) * (1 + 1e-9);
  return options;
}

size_t remove_lost(const PointSweep& sweep, std::span<const PointFate> fates) {
  const auto stride = static_cast<size_t>(sweep.columns);
  size_t left = 0;
  for (size_t i = 0; i < sweep.count(); ++i) {
    if (fates[i] == PointFate::kLost) continue;
    if (left != i) std::copy_n(&sweep.values[i * stride], stride, &sweep.values[left * stride]);
    ++left;
  }
  return left * stride;
}

}  // namespace strobe::sensors
