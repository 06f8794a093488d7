#include "base/statistics.h"

#include <gtest/gtest.h>

#include <cmath>

namespace strobe {
namespace {

// Values of numpy.quantile([1, 2, 4, 8, 16], q) (type 7).
TEST(Quantile, EqualsNumPysDefault) {
  const std::vector<double> values{16, 1, 8, 2, 4};
  EXPECT_DOUBLE_EQ(quantile(values, 0), 1);
  EXPECT_DOUBLE_EQ(quantile(values, 0.5), 4);
  EXPECT_DOUBLE_EQ(quantile(values, 0.9), 12.8);
  EXPECT_DOUBLE_EQ(quantile(values, 0.99), 15.68);
  EXPECT_DOUBLE_EQ(quantile(values, 1), 16);
}

TEST(Quantile, OfOneValueIsThatValueAndOfNoneIsNoNumber) {
  EXPECT_DOUBLE_EQ(quantile({3}, 0.99), 3);
  EXPECT_TRUE(std::isnan(quantile({}, 0.5)));
}

TEST(Moments, EqualHandComputedOnes) {
  const std::vector<double> values{2, 4, 4, 4, 5, 5, 7, 9};
  EXPECT_DOUBLE_EQ(mean(values), 5);
  EXPECT_DOUBLE_EQ(standard_deviation(values), std::sqrt(32.0 / 7));
  EXPECT_DOUBLE_EQ(standard_deviation(std::vector<double>{1}), 0);
}

}  // namespace
}  // namespace strobe
