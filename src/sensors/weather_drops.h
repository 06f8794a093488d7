// Which drop in a beam outshines the target: the Monte-Carlo part of the weather model (Kilic et al., arXiv
// 2107.07004). Drops are spread evenly in the beam's cone up to the target, diameters exponentially above the smallest
// one.
#pragma once

#include <cstdint>
#include <optional>

#include "sensors/weather_particles.h"
#include "sensors/weather_random.h"

namespace strobe::sensors {

struct DropModel {
  DropSizes sizes;
  double alpha = 0;           // extinction, 1/m
  double reflectance = 0;     // ((m - 1) / (m + 1))^2 of the drops
  double beam_mm_per_m = 3;   // beam diameter in mm at 1 m: 1000 tan(divergence)
  double smallest_mm = 0.05;  // smallest drop that is drawn
  double min_range_m = 1.5;   // nearer drops are not seen
};

struct DropEcho {
  double range_m;
  double power;  // F exp(-2 alpha r) min((D / D_b(r))^2, 1) / r^2
};

enum class DropPick : uint8_t { kStrongest, kFarthest };

// The picked one of the drops in front of a target at range_m whose echo is stronger than threshold (> 0); nothing
// where there is none. Two ways with one distribution:
// every drop drawn, one after the other; the reference, in time proportional to range^3,
std::optional<DropEcho> pick_among_all_drops(const DropModel& model, double range_m, double threshold, DropPick pick,
                                             DropRandom& random);
// and only the few drawn that can pass the threshold.
//
// A drop at r passes only with a diameter above c r^2, c = D_b(1 m) sqrt(threshold / F) (that is without the loss of
// light on the way, which only asks for more), so each of the Nt drops is a candidate with the probability
//   q = integral_{Rmin}^{min(R, sqrt(F / threshold))} 3 r^2 / R^3 exp(-lambda max(0, c r^2 - D_0)) dr,
// a difference of error functions. Their number is Binomial(Nt, q), drawn first and nearly always 0; a candidate's
// range follows the integrand, its diameter is exponential above max(c r^2, D_0), and it stays where its true power
// passes. Nothing is cut off: the distribution is the same, up to the rounding of doubles.
std::optional<DropEcho> pick_among_drops(const DropModel& model, double range_m, double threshold, DropPick pick,
                                         DropRandom& random);

// Drops in the beam, on average.
double mean_drop_count(const DropModel& model, double range_m);

}  // namespace strobe::sensors
