#include "sensors/weather.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "sensors/weather_test_data.h"

namespace strobe::sensors {
namespace {

struct Outcome {
  WeatherSummary summary;
  std::vector<float> values;
  std::vector<PointFate> fates;
};

Outcome apply(const WeatherOptions& options, std::vector<float> values, int columns, uint64_t frame = 0,
              int threads = 1) {
  Outcome outcome;
  outcome.values = std::move(values);
  const PointSweep sweep{outcome.values, columns, columns == 5 ? 255.0F : 1.0F};
  outcome.fates.resize(sweep.count());
  outcome.summary = *(*Weather::create(options)).apply(sweep, frame, threads, outcome.fates);
  return outcome;
}

WeatherOptions reference_options(const test::Row& row) {
  WeatherOptions options;
  const std::string &model = row.at("model"), &mode = row.at("mode");
  options.kind = model.starts_with("rain") ? WeatherKind::kRain
                 : model == "snow"         ? WeatherKind::kSnow
                                           : WeatherKind::kFog;
  if (model == "rain_goodin2019") options.rules = WeatherRules::kGoodin2019;
  options.mode = mode == "average" ? WeatherMode::kMean : WeatherMode::kMonteCarlo;
  if (mode == "mc_last") options.pick = DropPick::kFarthest;
  if (!row.at("rate_mm_h").empty()) options.rate_mm_h = test::number(row, "rate_mm_h");
  options.alpha = test::number(row, "alpha_per_m");
  options.seed = static_cast<uint64_t>(test::number(row, "seed"));
  return options;
}

TEST(Weather, EqualsLisaOnTheRealSweep) {
  const auto table = strobe::test::shared_data(test::kWeatherReference);
  const auto sweep = strobe::test::shared_data(test::kRealSweep);
  STROBE_REQUIRE_DATA(table);
  STROBE_REQUIRE_DATA(sweep);
  const auto values = test::read_floats(sweep);
  int rows = 0;
  for (const auto& row : test::read_table(table)) {
    const std::string& bin = row.at("range_bin");
    if (bin != "all" && bin != "r>1.5") continue;
    SCOPED_TRACE(row.at("model") + " " + row.at("mode") + " " + row.at("rate_mm_h") + " " + bin);
    ++rows;
    const Outcome outcome = apply(reference_options(row), values, 5);
    const FateCounts& counts = bin == "all" ? outcome.summary.all : outcome.summary.far;
    const double n = test::number(row, "n");
    EXPECT_EQ(static_cast<double>(counts.points), n);
    EXPECT_EQ(counts.lost + counts.scattered + counts.kept, counts.points);
    const double lost = test::number(row, "frac_lost"), scattered = test::number(row, "frac_scattered");
    const double rms = test::number(row, "kept_range_err_rms_m");
    const double kept = static_cast<double>(counts.kept);
    if (row.at("mode") == "average") {
      EXPECT_NEAR(static_cast<double>(counts.lost), lost * n, 0.1);  // the table has 6 digits
      EXPECT_EQ(counts.scattered, 0);
    } else {
      // Both sides are samples.
      EXPECT_NEAR(static_cast<double>(counts.lost) / n, lost, 4 * std::sqrt(2 * lost * (1 - lost) / n));
      EXPECT_NEAR(static_cast<double>(counts.scattered) / n, scattered,
                  4 * std::sqrt(2 * scattered * (1 - scattered) / n));
    }
    // The noise of a few weak returns makes up most of the mean square: its kurtosis is about 40 here.
    EXPECT_NEAR(counts.range_rms_m / rms, 1, 4 * std::sqrt(2 * 40 / (4 * kept)));
    const double slack = row.at("mode") == "average" ? 2e-6 : 2e-3;
    EXPECT_NEAR(counts.intensity_after / counts.intensity_before, test::number(row, "kept_intensity_ratio"), slack);
  }
  EXPECT_GT(rows, 100);
}

TEST(Weather, ScatteredPointsLieWhereLisaHasThem) {
  const auto table = strobe::test::shared_data(test::kWeatherReference);
  const auto sweep = strobe::test::shared_data(test::kRealSweep);
  STROBE_REQUIRE_DATA(table);
  STROBE_REQUIRE_DATA(sweep);
  const auto values = test::read_floats(sweep);
  for (const auto& row : test::read_table(table)) {
    if (row.at("mode") == "average" || row.at("range_bin") != "r>1.5" || test::number(row, "frac_scattered") < 0.01)
      continue;
    SCOPED_TRACE(row.at("model") + " " + row.at("mode") + " " + row.at("rate_mm_h"));
    const Outcome outcome = apply(reference_options(row), values, 5);
    double sum = 0, squares = 0, intensity = 0, count = 0;
    for (size_t i = 0; i < outcome.fates.size(); ++i) {
      if (outcome.fates[i] != PointFate::kScattered) continue;
      const float* p = &outcome.values[5 * i];
      const double range = std::sqrt(double{p[0]} * p[0] + double{p[1]} * p[1] + double{p[2]} * p[2]);
      sum += range, squares += range * range, intensity += p[3] / 255, count += 1;
    }
    const double mean = sum / count, deviation = std::sqrt(squares / count - mean * mean);
    EXPECT_NEAR(mean, test::number(row, "scat_range_mean_m"), 4 * deviation * std::sqrt(2 / count));
    EXPECT_NEAR(intensity / count / test::number(row, "scat_intensity_mean"), 1, 0.35);
  }
}

TEST(Weather, AFewDropsDoAsWellAsAllOfThem) {
  const auto path = strobe::test::shared_data(test::kRealSweep);
  STROBE_REQUIRE_DATA(path);
  auto values = test::read_floats(path);
  WeatherOptions options;
  options.rate_mm_h = 10;
  options.every_drop = true;
  const auto plain = apply(options, values, 5, 0, 2).summary.all;
  options.every_drop = false;
  const auto fast = apply(options, values, 5, 1, 2).summary.all;
  const auto n = static_cast<double>(plain.points);
  for (const auto& [a, b] : {std::pair{plain.lost, fast.lost}, std::pair{plain.scattered, fast.scattered}}) {
    const double p = static_cast<double>(a + b) / 2 / n;
    EXPECT_NEAR(static_cast<double>(a) / n, static_cast<double>(b) / n, 4 * std::sqrt(2 * p * (1 - p) / n));
  }
}

std::vector<float> random_points(size_t count) {
  std::vector<float> values;
  DropRandom random(5, 0, 0);
  for (size_t i = 0; i < count; ++i) {
    for (int axis = 0; axis < 3; ++axis) values.push_back(static_cast<float>(100 * random.next() - 50));
    values.push_back(static_cast<float>(std::floor(100 * random.next()) / 100));
  }
  return values;
}

TEST(Weather, TheSameForAnyNumberOfThreads) {
  const auto values = random_points(10'007);
  for (const WeatherMode mode : {WeatherMode::kMonteCarlo, WeatherMode::kMean}) {
    WeatherOptions options;
    options.rate_mm_h = 40;
    options.mode = mode;
    options.seed = 11;
    const Outcome one = apply(options, values, 4, 3, 1);
    for (const int threads : {2, 3, 8, 64}) {
      const Outcome many = apply(options, values, 4, 3, threads);
      EXPECT_EQ(one.values, many.values);
      EXPECT_EQ(one.fates, many.fates);
      EXPECT_EQ(one.summary.all.range_rms_m, many.summary.all.range_rms_m);
    }
    EXPECT_NE(one.values, apply(options, values, 4, 4, 1).values);  // another frame
    options.seed = 12;
    EXPECT_NE(one.values, apply(options, values, 4, 3, 1).values);
  }
}

TEST(Weather, APointsNoiseIsItsOwn) {
  // The points before one do not change what happens to it.
  const auto values = random_points(64);
  WeatherOptions options;
  options.rate_mm_h = 40;
  const Outcome all = apply(options, values, 4);
  std::vector<float> other = random_points(64);
  for (size_t i = 0; i < 32 * 4; i += 4) other[i] += 10;
  const Outcome changed = apply(options, other, 4);
  EXPECT_TRUE(std::equal(all.values.begin() + 128, all.values.end(), changed.values.begin() + 128));
}

TEST(Weather, DryAirTakesOnlyWhatTheThresholdTakes) {
  // Reflectivity 0.9 is seen up to 200 m.
  const std::vector<float> values = {199.9F, 0, 0, 0.9F, 0, 200.1F, 0, 0.9F, 0, 0, 10, 0, 0, 0, 0, 0.5F, 1, 0, 0, 0.5F};
  WeatherOptions options;
  options.kind = WeatherKind::kDry;
  options.mode = WeatherMode::kMean;
  const Outcome mean = apply(options, values, 4);
  using enum PointFate;
  EXPECT_EQ(mean.fates, (std::vector{kKept, kLost, kLost, kLost, kLost}));  // beyond, black, no return, too near
  EXPECT_EQ(mean.summary.all.lost_dry, 4);
  options.mode = WeatherMode::kMonteCarlo;
  const Outcome drops = apply(options, values, 4);
  EXPECT_EQ(drops.fates, (std::vector{kKept, kLost, kLost, kLost, kKept}));
  options.kind = WeatherKind::kRain;  // of rate 0
  EXPECT_EQ(apply(options, values, 4).values, drops.values);
}

TEST(Weather, NoiseHasTheStatedDeviation) {
  // SNR 1/2 * 8: reflectivity 0.9 at 100 m has SNR 4, so the deviation is 0.09 / sqrt(8).
  std::vector<float> values;
  for (int i = 0; i < 20000; ++i) values.insert(values.end(), {0, 0, 100, 0.9F});
  WeatherOptions options;
  options.kind = WeatherKind::kDry;
  const Outcome outcome = apply(options, values, 4);
  double sum = 0, squares = 0, fourth = 0;
  for (size_t i = 2; i < values.size(); i += 4) {
    const double error = outcome.values[i] - 100.0;
    sum += error, squares += error * error, fourth += error * error * error * error;
  }
  const double expected = 0.09 / std::sqrt(8.0), n = 20000;
  EXPECT_NEAR(sum / n, 0, 4 * expected / std::sqrt(n));
  EXPECT_NEAR(std::sqrt(squares / n) / expected, 1, 4 / std::sqrt(2 * n));
  EXPECT_NEAR(outcome.summary.all.range_rms_m, std::sqrt(squares / n), 1e-6);
  EXPECT_NEAR(fourth / n / std::pow(squares / n, 2), 3, 4 * std::sqrt(24 / n));
}

TEST(Weather, CalibratedClearAirLosesNothing) {
  const auto path = strobe::test::shared_data(test::kRealSweep);
  STROBE_REQUIRE_DATA(path);
  auto values = test::read_floats(path);
  for (const WeatherRules rules : {WeatherRules::kLisa, WeatherRules::kPhysical, WeatherRules::kGoodin2019}) {
    for (const WeatherMode mode : {WeatherMode::kMean, WeatherMode::kMonteCarlo}) {
      if (rules == WeatherRules::kGoodin2019 && mode == WeatherMode::kMonteCarlo) continue;
      WeatherOptions options;
      options.rules = rules;
      options.mode = mode;
      options = *calibrated(options, {values, 5, 255});
      EXPECT_EQ(apply(options, values, 5).summary.all.lost, 0);
      options.rate_mm_h = 25;
      const auto wet = apply(options, values, 5).summary.all;
      EXPECT_EQ(wet.lost_dry, 0);
      EXPECT_GT(wet.lost, 0);
    }
  }
}

TEST(Weather, RefusesWhatItCannotMean) {
  const auto error = [](WeatherOptions options) {
    const auto weather = Weather::create(options);
    return weather ? std::string() : weather.error().to_string();
  };
  WeatherOptions options;
  options.rate_mm_h = -1;
  EXPECT_EQ(error(options), "rate -1: expected mm/h, 0 to 10000");
  options.rate_mm_h = std::numeric_limits<double>::quiet_NaN();
  EXPECT_NE(error(options), "");
  options = {};
  options.kind = WeatherKind::kFog;
  EXPECT_NE(error(options).find("expected mode mean"), std::string::npos);
  options.mode = WeatherMode::kMean;
  options.fog = "smoke";
  EXPECT_NE(error(options).find("no fog 'smoke'"), std::string::npos);
  options = {};
  options.rules = WeatherRules::kGoodin2019;
  EXPECT_NE(error(options), "");
  options.max_range_m = 0;
  EXPECT_NE(error(options), "");
}

TEST(Weather, RefusesPointsThatAreNone) {
  const Weather weather = *Weather::create({});
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    for (size_t at = 0; at < 8; ++at) {
      std::vector<float> values(8, 0.5F);
      values[at] = bad;
      std::vector<PointFate> fates(2);
      const auto done = weather.apply({values, 4, 1}, 0, 1, fates);
      ASSERT_FALSE(done);
      EXPECT_EQ(done.error().kind(), ErrorKind::kBadData);
      EXPECT_NE(done.error().to_string().find("point " + std::to_string(at / 4)), std::string::npos);
    }
  }
  std::vector<float> bright = {1, 2, 3, 1.5F};
  std::vector<PointFate> fates(1);
  EXPECT_FALSE(weather.apply({bright, 4, 1}, 0, 1, fates));
}

TEST(Weather, LostPointsGoAndTheOthersStayInOrder) {
  std::vector<float> values = {1, 1, 1, 1, 7, 2, 2, 2, 2, 8, 3, 3, 3, 3, 9};
  const std::vector fates = {PointFate::kKept, PointFate::kLost, PointFate::kScattered};
  ASSERT_EQ(remove_lost({values, 5, 255}, fates), 10U);
  values.resize(10);
  EXPECT_EQ(values, (std::vector<float>{1, 1, 1, 1, 7, 3, 3, 3, 3, 9}));
}

}  // namespace
}  // namespace strobe::sensors
