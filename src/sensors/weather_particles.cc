#include "sensors/weather_particles.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <mutex>
#include <numbers>
#include <thread>
#include <utility>

#include "base/suggest.h"
#include "sensors/weather_mie.h"

namespace strobe::sensors {

namespace {

constexpr size_t kDiameters = 2000;
constexpr double kSmallest_mm = 1e-5, kLargest_mm = 10;

using Efficiencies = std::vector<MieEfficiencies>;

Efficiencies compute_efficiencies(double index, double size_scale) {
  const auto& diameters = diameter_grid_mm();
  Efficiencies result(diameters.size());
  const size_t threads = std::clamp<size_t>(std::thread::hardware_concurrency(), 1, 8);
  // Cost grows with diameter: dealing them out in turn keeps the shares even.
  const auto share = [&](size_t first) {
    for (size_t i = first; i < diameters.size(); i += threads) {
      result[i] = mie_efficiencies(index, size_scale * std::numbers::pi * diameters[i] * 1e-3 / kWavelength_m);
    }
  };
  std::vector<std::jthread> others;
  for (size_t i = 1; i < threads; ++i) others.emplace_back(share, i);
  share(0);
  others.clear();
  return result;
}

const Efficiencies& efficiencies(double index, double size_scale) {
  static std::mutex mutex;
  static std::map<std::pair<double, double>, Efficiencies> known;
  const std::lock_guard lock(mutex);
  auto [it, is_new] = known.try_emplace({index, size_scale});
  if (is_new) it->second = compute_efficiencies(index, size_scale);
  return it->second;
}

}  // namespace

DropSizes rain_drops(double rate_mm_h) {
  return {8000, 4.1 * std::pow(rate_mm_h, -0.21)};
}

DropSizes snow_flakes(double rate_mm_h, Density density) {
  const double n0 = density == Density::kLisa ? 7600 : 3800;
  return {n0 * std::pow(rate_mm_h, -0.87), 2.55 * std::pow(rate_mm_h, -0.48)};
}

const std::vector<Fog>& fogs() {
  static const std::vector<Fog> all = {
      {"strong-advection", 20, 3, 1, 10, 10},
      {"moderate-advection", 20, 3, 1, 8, 8},
      {"strong-spray", 100, 6, 1, 4, 4},
      {"moderate-spray", 100, 6, 1, 2, 2},
      {"chu-hogg", 20, 2, 0.5, 1, 1},
      {"continental-haze", 100, 2, 0.5, 0.07, 0.07},
      {"coastal-haze", 100, 1, 0.5, 0.05, 5e-5},  // LISA's radius is off by a factor 1000 there
  };
  return all;
}

Result<Fog> find_fog(const std::string& name) {
  std::vector<std::string> names;
  for (const Fog& fog : fogs()) {
    if (fog.name == name) return fog;
    names.emplace_back(fog.name);
  }
  return usage_error("no fog '" + name + "'; " + suggest(name, names));
}

SizeDistribution distribution(const DropSizes& sizes) {
  return [sizes](double diameter) { return sizes.n0 * std::exp(-sizes.lambda * diameter); };
}

SizeDistribution distribution(const Fog& fog, Density density, bool lisa_radius) {
  const double radius = lisa_radius ? fog.lisa_mode_radius_um : fog.mode_radius_um;
  const double b = fog.a / (fog.g * std::pow(radius, fog.g));
  const double shape = (fog.a + 1) / fog.g;
  // Per cm^3 and um of radius to per m^3 and mm is 1e9; dr = dD / 2 is what LISA leaves out.
  const double jacobian = density == Density::kLisa ? 1 : 0.5;
  const double scale = jacobian * 1e9 * fog.g * fog.rho * std::exp(shape * std::log(b) - std::lgamma(shape));
  return [fog, b, scale](double diameter) {
    const double r = diameter * 500;  // um
    return scale * std::pow(r, fog.a) * std::exp(-b * std::pow(r, fog.g));
  };
}

const std::vector<double>& diameter_grid_mm() {
  static const std::vector<double> grid = [] {
    std::vector<double> result(kDiameters);
    const double step = std::log(kLargest_mm / kSmallest_mm) / (kDiameters - 1);
    for (size_t i = 0; i < kDiameters; ++i) result[i] = kSmallest_mm * std::exp(step * static_cast<double>(i));
    return result;
  }();
  return grid;
}

Scattering scattering(const SizeDistribution& sizes, double index, double size_scale) {
  const auto& diameters = diameter_grid_mm();
  const Efficiencies& mie = efficiencies(index, size_scale);
  Scattering sum;
  double before = 0;
  for (size_t i = 0; i < diameters.size(); ++i) {
    const double area = diameters[i] * diameters[i] * sizes(diameters[i]);
    if (i > 0) {
      const double half_width = (diameters[i] - diameters[i - 1]) / 2;
      sum.alpha += half_width * (before * mie[i - 1].extinction + area * mie[i].extinction);
      sum.beta += half_width * (before * mie[i - 1].backscatter + area * mie[i].backscatter);
    }
    before = area;
  }
  constexpr double kScale = 1e-6 * std::numbers::pi / 4;
  return {kScale * sum.alpha, kScale * sum.beta};
}

}  // namespace strobe::sensors
