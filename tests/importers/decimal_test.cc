#include "importers/decimal.h"

#include <gtest/gtest.h>

namespace strobe::importers {
namespace {

TEST(ScaledDecimal, IsExact) {
  EXPECT_EQ(scaled_decimal("1712195495519689.047", 3), 1712195495519689047);
  EXPECT_EQ(scaled_decimal("0.0005", 3), 1);
  EXPECT_EQ(scaled_decimal("0.00049", 3), 0);
  EXPECT_EQ(scaled_decimal("-1.5", 0), -2);
  EXPECT_EQ(scaled_decimal("2.5e3", 0), 2500);
  EXPECT_EQ(scaled_decimal("25e-1", 3), 2500);
  EXPECT_EQ(scaled_decimal(".5", 1), 5);
  EXPECT_EQ(scaled_decimal("7", 9), 7000000000);
  EXPECT_EQ(scaled_decimal("0e999999999999", 3), 0);
  EXPECT_EQ(scaled_decimal("1e-999999999999", 3), 0);
}

TEST(ScaledDecimal, RefusesWhatIsNoNumberOrTooLarge) {
  for (const char* text : {"", "-", ".", "e5", "1x", "1e", "nan", "1 ", "1e30", "9999999999999999999"})
    EXPECT_FALSE(scaled_decimal(text, 3)) << text;
}

}  // namespace
}  // namespace strobe::importers
