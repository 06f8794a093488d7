// Rain, snow and fog on a LiDAR sweep: points that are lost, points that are replaced by a drop, range noise and weaker
// returns of the others. The model is that of LISA (Kilic et al. 2021, arXiv 2107.07004), written anew from its
// equations; docs/weather.md has them and says where the rules differ.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sensors/weather_drops.h"
#include "sensors/weather_particles.h"
#include "strobe/base/result.h"

namespace strobe::sensors {

enum class WeatherKind : uint8_t { kDry, kRain, kSnow, kFog };
enum class WeatherRules : uint8_t {
  kLisa,        // extinction as LISA's present code has it: size parameter halved
  kPhysical,    // exact extinction
  kGoodin2019,  // rain after Goodin et al., Electronics 8 (2019): alpha = 0.01 R^0.6, its own noise; mean mode only
};
enum class WeatherMode : uint8_t {
  kMean,        // no single drops; nearer than min_range_m all is lost
  kMonteCarlo,  // drops drawn for each beam; rain and snow only
};

struct WeatherOptions {
  WeatherKind kind = WeatherKind::kRain;
  WeatherRules rules = WeatherRules::kLisa;
  WeatherMode mode = WeatherMode::kMonteCarlo;
  DropPick pick = DropPick::kStrongest;  // Monte-Carlo: the return that the sensor reports (kFarthest: the last one)
  Density density = Density::kLisa;
  std::string fog = "strong-advection";
  double rate_mm_h = 0;  // rain and snow, as water; 0 is dry
  uint64_t seed = 0;
  std::optional<double> alpha;  // 1/m, instead of that of the particles; drops stay as they are
  double max_range_m = 200;     // where a target of reflectivity 0.9 is just seen in clear air
  double min_range_m = 1.5;
  double divergence_rad = 3e-3;
  double range_accuracy_m = 0.09;  // at a signal-to-noise ratio of 1/2
  double smallest_drop_mm = 0.05;
  // Set by calibrated(): a reflectivity below this (0 is one) counts as this, and near points are not lost.
  double least_reflectivity = 0;
  bool keep_near = false;
  bool every_drop = false;  // the plain loop over all drops, a hundred times slower: the reference
};

// Points as they lie in a file: `columns` floats each, x, y, z in m and intensity first.
struct PointSweep {
  std::span<float> values;
  int columns = 4;
  float full_intensity = 1;  // that of reflectivity 1: 255 for nuScenes, 1 for KITTI
  size_t count() const { return values.size() / static_cast<size_t>(columns); }
};

enum class PointFate : uint8_t { kLost, kScattered, kKept };

struct FateCounts {
  int64_t points = 0, lost = 0, scattered = 0, kept = 0;
  int64_t lost_dry = 0;         // lost with the same rules in clear air
  double range_rms_m = 0;       // of kept points: root mean square of range after - before
  double intensity_before = 0;  // of kept points: sums of reflectivity
  double intensity_after = 0;
};
struct WeatherSummary {
  FateCounts all;
  FateCounts far;  // points beyond min_range_m only
};

class Weather {
 public:
  // Errors: kUsage (rate negative or not a number, a mode that the kind or the rules have not, no such fog, constants
  // out of range).
  static Result<Weather> create(const WeatherOptions& options);

  double alpha() const { return alpha_; }  // 1/m
  const WeatherOptions& options() const { return options_; }
  double least_power() const { return least_power_; }  // P_min: 0.9 / max_range_m^2, by pi less for goodin2019

  // Changes the sweep in place; a lost point becomes zeros in x, y, z and intensity. The result is a function of
  // options, frame and sweep alone, whatever the number of threads. fates: one for each point.
  // Errors: kBadData (a coordinate or intensity that is no finite number, an intensity outside of 0 .. full; names the
  // point); the sweep is untouched then.
  Result<WeatherSummary> apply(const PointSweep& sweep, uint64_t frame, int threads, std::span<PointFate> fates) const;

 private:
  explicit Weather(const WeatherOptions& options) : options_(options) {}
  struct Part;
  void apply_part(const PointSweep& sweep, uint64_t frame, size_t begin, size_t end, std::span<PointFate> fates,
                  Part& part) const;
  double power(double reflectivity, double range) const;
  bool is_lost_in_mean(double power, double range) const;
  PointFate fate_among_drops(double reflectivity, double power, double range, uint64_t frame, size_t point,
                             DropEcho& echo) const;
  double noise_deviation(double power, double range) const;

  WeatherOptions options_;
  DropModel drops_;
  double alpha_ = 0, least_power_ = 0;
};

// Options under which clear air loses no point of the sweep: max_range_m is just large enough for its weakest return
// (intensity 0 counts as half of its smallest step), and points nearer than min_range_m are not lost. Errors: as
// Weather::apply.
Result<WeatherOptions> calibrated(WeatherOptions options, const PointSweep& sweep);

// Takes out the points that are lost; returns how many values (floats) are left.
size_t remove_lost(const PointSweep& sweep, std::span<const PointFate> fates);

}  // namespace strobe::sensors
