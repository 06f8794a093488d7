#include "sensors/weather_particles.h"

#include <gtest/gtest.h>

#include <cmath>

#include "sensors/weather_test_data.h"

namespace strobe::sensors {
namespace {

// Names of the reference table.
SizeDistribution table_distribution(const test::Row& row, bool lisa_radius) {
  const std::string& model = row.at("model");
  if (model == "rain") return distribution(rain_drops(test::number(row, "rate_mm_h")));
  if (model == "snow") return distribution(snow_flakes(test::number(row, "rate_mm_h"), Density::kLisa));
  static const std::map<std::string, std::string> kNames = {{"haze_coast", "coastal-haze"},
                                                            {"haze_continental", "continental-haze"},
                                                            {"strong_advection_fog", "strong-advection"},
                                                            {"moderate_advection_fog", "moderate-advection"},
                                                            {"strong_spray", "strong-spray"},
                                                            {"moderate_spray", "moderate-spray"},
                                                            {"chu_hogg", "chu-hogg"}};
  return distribution(*find_fog(kNames.at(model)), Density::kLisa, lisa_radius);
}

TEST(WeatherParticles, ExactExtinctionEqualsTheTableToItsDigits) {
  const auto path = strobe::test::shared_data(test::kWeatherExtinction);
  STROBE_REQUIRE_DATA(path);
  for (const auto& row : test::read_table(path)) {
    // The table's coastal haze has LISA's radius.
    const auto [alpha, beta] = scattering(table_distribution(row, true), kWaterIndex);
    EXPECT_NEAR(alpha / test::number(row, "alpha_exact_per_m"), 1, 5e-6) << row.at("model") << row.at("rate_mm_h");
    EXPECT_NEAR(beta / test::number(row, "beta_exact_per_m_sr_like"), 1, 1e-5) << row.at("model");
    if (!row.at("alpha_ice_per_m").empty()) {
      const auto ice = scattering(table_distribution(row, true), kIceIndex);
      EXPECT_NEAR(ice.alpha / test::number(row, "alpha_ice_per_m"), 1, 5e-6);
    }
  }
}

TEST(WeatherParticles, HalvedSizeParameterIsLisasExtinction) {
  const auto path = strobe::test::shared_data(test::kWeatherExtinction);
  STROBE_REQUIRE_DATA(path);
  for (const auto& row : test::read_table(path)) {
    if (row.at("model") == "haze_coast") continue;  // 1e-20 in single precision is noise
    const double alpha = scattering(table_distribution(row, true), kWaterIndex, 0.5).alpha;
    // LISA adds up in single precision.
    EXPECT_NEAR(alpha / test::number(row, "alpha_pylisa"), 1, 2.5e-3) << row.at("model") << row.at("rate_mm_h");
  }
}

TEST(WeatherParticles, RainIsNearTheMeasuredAttenuation) {
  for (const double rate : {1.0, 5.0, 10.0, 25.0}) {
    const double alpha = scattering(distribution(rain_drops(rate)), kWaterIndex).alpha;
    const double db_per_km = alpha * 1000 * 10 / std::log(10);
    EXPECT_NEAR(db_per_km / (1.45 * std::pow(rate, 0.64)), 1, 0.15) << rate;  // Ulbrich & Atlas 1985
  }
}

TEST(WeatherParticles, LiteratureDensityIsTheStatedNumberOfDrops) {
  for (const Fog& fog : fogs()) {
    const auto sizes = distribution(fog, Density::kLiterature, false);
    double count = 0;  // Simpson's rule on a log grid of its own, down to where haze has its drops
    const double low = std::log(1e-9), high = std::log(10.0);
    constexpr int kSteps = 20000;
    for (int i = 0; i <= kSteps; ++i) {
      const double diameter = std::exp(low + (high - low) * i / kSteps);
      count += (i == 0 || i == kSteps ? 1 : i % 2 == 1 ? 4 : 2) * sizes(diameter) * diameter;
    }
    count *= (high - low) / kSteps / 3;
    EXPECT_NEAR(count * 1e-6 / fog.rho, 1, 1e-6) << fog.name;
    EXPECT_DOUBLE_EQ(distribution(fog, Density::kLisa, false)(0.01), 2 * sizes(0.01)) << fog.name;
  }
  EXPECT_DOUBLE_EQ(snow_flakes(5, Density::kLisa).n0, 2 * snow_flakes(5, Density::kLiterature).n0);
}

TEST(WeatherParticles, UnknownFogNamesThoseThereAre) {
  const auto fog = find_fog("pea-soup");
  ASSERT_FALSE(fog);
  EXPECT_EQ(fog.error().kind(), ErrorKind::kUsage);
  EXPECT_NE(fog.error().to_string().find("chu-hogg"), std::string::npos);
}

}  // namespace
}  // namespace strobe::sensors
