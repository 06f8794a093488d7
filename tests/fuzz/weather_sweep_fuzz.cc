// Links: strobe_sensors
// Bytes as a LiDAR sweep, with rain and fog on what is one: the counts add up, and what is written is finite.
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "sensors/weather_files.h"

using namespace strobe::sensors;

static void rain_on(SweepFile sweep, const WeatherOptions& options) {
  std::vector<PointFate> fates(sweep.points().count());
  const auto weather = Weather::create(options);
  if (!weather) std::abort();
  const auto done = weather->apply(sweep.points(), 0, 1, fates);
  if (!done) return;
  const FateCounts& all = done->all;
  if (all.lost + all.scattered + all.kept != static_cast<int64_t>(fates.size())) std::abort();
  for (size_t i = 0; i < fates.size(); ++i)
    for (size_t axis = 0; axis < 4; ++axis)
      if (std::isnan(sweep.values[i * static_cast<size_t>(sweep.columns) + axis])) std::abort();
  sweep.values.resize(remove_lost(sweep.points(), fates));
  if (static_cast<int64_t>(sweep.points().count()) != all.scattered + all.kept) std::abort();
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  for (const char* name : {"a.bin", "a.pcd.bin"}) {
    const auto sweep = parse_sweep(bytes, name, 0);
    if (!sweep) continue;
    WeatherOptions options;
    options.rate_mm_h = 30;
    options.alpha = 0.003;  // the table of efficiencies is no part of this
    rain_on(*sweep, options);
    options.mode = WeatherMode::kMean;
    options.rules = WeatherRules::kGoodin2019;
    rain_on(*sweep, options);
    SweepFile copy = *sweep;
    if (const auto calm = calibrated(options, copy.points())) rain_on(*sweep, *calm);
  }
  return 0;
}
