#include "sensors/weather_mie.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "sensors/weather_particles.h"
#include "sensors/weather_test_data.h"

namespace strobe::sensors {
namespace {

TEST(WeatherMie, BohrenAndHuffmansExample) {
  // Appendix A: a sphere of radius 0.525 um at 0.6328 um, printed there as x = 5.213.
  const auto [extinction, back] = mie_efficiencies(1.55, 2 * std::numbers::pi * 0.525 / 0.6328);
  EXPECT_NEAR(extinction, 3.10543, 5e-6);
  EXPECT_NEAR(back, 2.92534, 5e-6);
}

TEST(WeatherMie, SmallSpheresScatterAsRayleigh) {
  for (const double index : {1.1, 1.3031, 1.55, 2.0}) {
    const double size = 0.01, k = (index * index - 1) / (index * index + 2);
    const double rayleigh = 8.0 / 3 * std::pow(size, 4) * k * k;
    EXPECT_NEAR(mie_efficiencies(index, size).extinction / rayleigh, 1, 2e-4);
  }
}

TEST(WeatherMie, LargeSpheresTakeTwiceTheirShadow) {
  // Q_ext oscillates around 2 + O(x^(-2/3)).
  EXPECT_NEAR(mie_efficiencies(1.328, 20000).extinction, 2, 0.01);
}

TEST(WeatherMie, EqualsMiepythonOverTheWholeGrid) {
  const auto path = strobe::test::shared_data(test::kWeatherMie);
  STROBE_REQUIRE_DATA(path);
  const auto rows = test::read_table(path);
  ASSERT_EQ(rows.size(), 2000U);
  const auto& diameters = diameter_grid_mm();
  for (size_t i = 0; i < rows.size(); ++i) {
    const auto& row = rows[i];
    ASSERT_NEAR(diameters[i] / test::number(row, "diameter_mm"), 1, 1e-6);
    const double size = std::numbers::pi * diameters[i] * 1e-3 / kWavelength_m;
    const auto water = mie_efficiencies(kWaterIndex, size), ice = mie_efficiencies(kIceIndex, size);
    EXPECT_NEAR(water.extinction / test::number(row, "water_qext"), 1, 1e-6) << "size " << size;
    EXPECT_NEAR(ice.extinction / test::number(row, "ice_qext"), 1, 1e-6) << "size " << size;
    // Back-scatter of a large sphere is all ripple: it hangs on the last digits of its size.
    const double slack = size < 100 ? 2e-6 : 2e-3;
    EXPECT_NEAR(water.backscatter / test::number(row, "water_qback"), 1, slack) << "size " << size;
    EXPECT_NEAR(ice.backscatter / test::number(row, "ice_qback"), 1, slack) << "size " << size;
  }
}

}  // namespace
}  // namespace strobe::sensors
