// Links: strobe_sensors
// Weather on a sweep of 34,688 points as a roof-top LiDAR gives them: 32 rings, ranges from a log-normal distribution
// (median 8 m), with a quarter of the points on the car itself. For a real one, name it in STROBE_SWEEP.
#include <benchmark/benchmark.h>

#include <cmath>
#include <cstdlib>
#include <random>

#include "base/file.h"
#include "sensors/weather_files.h"

namespace {

using namespace strobe;
using namespace strobe::sensors;

SweepFile make_sweep() {
  if (const char* path = std::getenv("STROBE_SWEEP")) return *parse_sweep(*read_file(path), path, 0);
  SweepFile sweep;
  sweep.columns = 5;
  std::mt19937 random(1);
  std::lognormal_distribution<double> far(std::log(8), 0.8);
  std::exponential_distribution<double> bright(1 / 18.0);
  for (int i = 0; i < 34'688; ++i) {
    const int ring = i % 32;
    const double range = i % 4 == 0 ? 1.0 : std::min(far(random), 105.0);
    const double up = (-30 + 40.0 * ring / 31) * M_PI / 180, around = 2 * M_PI * i / 34'688;
    for (const double value : {range * std::cos(up) * std::cos(around), range * std::cos(up) * std::sin(around),
                               range * std::sin(up), std::floor(std::min(bright(random), 255.0)), double(ring)})
      sweep.values.push_back(static_cast<float>(value));
  }
  return sweep;
}

void run(benchmark::State& state, const WeatherOptions& options, int threads) {
  const SweepFile original = make_sweep();
  const Weather weather = *Weather::create(options);
  SweepFile sweep = original;
  std::vector<PointFate> fates(sweep.points().count());
  uint64_t frame = 0;
  WeatherSummary summary;
  for (auto _ : state) {
    sweep.values = original.values;  // 0.05 ms
    summary = *weather.apply(sweep.points(), frame++, threads, fates);
    benchmark::DoNotOptimize(sweep.values.data());
  }
  const auto points = static_cast<double>(summary.all.points);
  state.counters["points"] = points;
  state.counters["lost"] = static_cast<double>(summary.all.lost) / points;
  state.counters["scattered"] = static_cast<double>(summary.all.scattered) / points;
}

void monte_carlo(benchmark::State& state) {
  WeatherOptions options;
  options.rate_mm_h = static_cast<double>(state.range(0));
  run(state, options, static_cast<int>(state.range(1)));
}
BENCHMARK(monte_carlo)
    ->ArgNames({"mm_h", "threads"})
    ->ArgsProduct({{1, 10, 50}, {1, 2}})
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();

void every_drop(benchmark::State& state) {
  WeatherOptions options;
  options.rate_mm_h = static_cast<double>(state.range(0));
  options.every_drop = true;
  run(state, options, 1);
}
BENCHMARK(every_drop)->ArgName("mm_h")->Arg(10)->Unit(benchmark::kMillisecond);

void mean(benchmark::State& state) {
  WeatherOptions options;
  options.rate_mm_h = 10;
  options.mode = WeatherMode::kMean;
  run(state, options, static_cast<int>(state.range(0)));
}
BENCHMARK(mean)->ArgName("threads")->Arg(1)->Arg(2)->Unit(benchmark::kMillisecond)->UseRealTime();

// Part of the set-up of a first use: the extinction of 2,000 diameters.
void mie_table(benchmark::State& state) {
  static double scale = 1;
  for (auto _ : state) {
    scale += 1e-9;  // a table that is not known yet
    benchmark::DoNotOptimize(scattering(distribution(rain_drops(10)), kWaterIndex, scale));
  }
}
BENCHMARK(mie_table)->Unit(benchmark::kMillisecond)->UseRealTime();

}  // namespace

BENCHMARK_MAIN();
