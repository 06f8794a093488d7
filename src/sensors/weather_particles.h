// What hangs in the air: how many drops of which size, and how much light they take out of a beam.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "strobe/base/result.h"

namespace strobe::sensors {

inline constexpr double kWavelength_m = 905e-9;  // of the usual LiDAR laser
inline constexpr double kWaterIndex = 1.328, kIceIndex = 1.3031;

// Drops per m^3 and mm of diameter, N(D) = n0 exp(-lambda D), D in mm.
struct DropSizes {
  double n0 = 0;      // m^-3 mm^-1
  double lambda = 1;  // mm^-1
};

// How many drops a model counts.
enum class Density : uint8_t {
  kLisa,        // as LISA (Kilic et al. 2021): snow with n0 = 7600 R^-0.87, fog twice the stated number of drops
  kLiterature,  // snow with n0 = 3800 R^-0.87; fog with the Jacobian 1/2 of N(D) = n(r = D / 2)
};

// Rain: Marshall & Palmer 1948. Snow (on melted diameter): Gunn & Marshall 1958. rate: mm of water an hour, > 0.
DropSizes rain_drops(double rate_mm_h);
DropSizes snow_flakes(double rate_mm_h, Density density);

// Modified gamma distribution of radii (Deirmendjian; parameters of Rasshofer, Spies & Spies 2011), r in um:
// n(r) = g rho b^((a+1)/g) r^a exp(-b r^g) / Gamma((a+1)/g), b = a / (g Rc^g).
struct Fog {
  std::string_view name;
  double rho;  // drops per cm^3
  double a, g;
  double mode_radius_um;       // Rc
  double lisa_mode_radius_um;  // where LISA's code has another
};
const std::vector<Fog>& fogs();
// Errors: kUsage with the names.
Result<Fog> find_fog(const std::string& name);

// Drops per m^3 and mm of diameter at a diameter in mm.
using SizeDistribution = std::function<double(double diameter_mm)>;
SizeDistribution distribution(const DropSizes& sizes);
SizeDistribution distribution(const Fog& fog, Density density, bool lisa_radius);

// The diameters of the integrals: 2,000, log spaced, 1e-5 .. 10 mm.
const std::vector<double>& diameter_grid_mm();

struct Scattering {
  double alpha = 0;  // extinction, 1/m
  double beta = 0;   // the same integral with Q_back
};
// alpha = 1e-6 pi/4 integral D^2 Q(D) N(D) dD, by the trapezoid rule. size_scale: factor of the size parameter,
// 1 except where LISA's own 1/2 is asked for. The efficiencies are computed once a program and kept.
Scattering scattering(const SizeDistribution& sizes, double index, double size_scale = 1);

}  // namespace strobe::sensors
