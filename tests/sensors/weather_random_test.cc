#include "sensors/weather_random.h"

#include <gtest/gtest.h>

#include <cmath>

namespace strobe::sensors {
namespace {

TEST(WeatherRandom, KnownAnswersOfPhilox) {
  // Of Random123's known-answer file, philox 4x32 10 rounds.
  EXPECT_EQ(philox({0, 0, 0, 0}, 0), (PhiloxBlock{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox({~0U, ~0U, ~0U, ~0U}, ~0ULL), (PhiloxBlock{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, 0x299f31d0a4093822),
            (PhiloxBlock{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(WeatherRandom, UniformNumbersHaveTheMomentsOfUniformNumbers) {
  double sum = 0, squares = 0, product = 0, before = 0.5;
  constexpr int kPoints = 2000, kEach = 50;
  for (uint32_t point = 0; point < kPoints; ++point) {
    DropRandom random(7, 3, point);
    for (int i = 0; i < kEach; ++i) {
      const double u = random.next();
      ASSERT_GT(u, 0);
      ASSERT_LT(u, 1);
      sum += u, squares += u * u, product += u * before, before = u;
    }
  }
  const double n = kPoints * kEach;
  EXPECT_NEAR(sum / n, 0.5, 4 * std::sqrt(1.0 / 12 / n));
  EXPECT_NEAR(squares / n, 1.0 / 3, 4 * std::sqrt(4.0 / 45 / n));
  EXPECT_NEAR(product / n, 0.25, 4 * 0.3 / std::sqrt(n));
}

}  // namespace
}  // namespace strobe::sensors
