#include "media/common/natural_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace strobe::media {
namespace {

TEST(NaturalOrder, NumbersByValue) {
  std::vector<std::string> names = {"f10.png", "f9.png", "f1.png", "f100.png", "f02.png", "f2.png", "e11.png", "f.png"};
  std::sort(names.begin(), names.end(), natural_less);
  EXPECT_EQ(names, (std::vector<std::string>{"e11.png", "f.png", "f1.png", "f2.png", "f02.png", "f9.png", "f10.png",
                                             "f100.png"}));
}

TEST(NaturalOrder, NumbersBeyond64Bits) {
  EXPECT_TRUE(natural_less("99999999999999999999998", "99999999999999999999999"));
  EXPECT_TRUE(natural_less("99999999999999999999999", "100000000000000000000000"));
}

// What std::sort needs of it.
TEST(NaturalOrder, IsAStrictOrder) {
  const std::vector<std::string> names = {"", "0", "00", "1", "01", "a", "a0", "a00b", "a0b", "a1", "ab", "\xc3\xa4"};
  for (const auto& a : names) {
    EXPECT_FALSE(natural_less(a, a)) << a;
    for (const auto& b : names) {
      if (a != b) {
        EXPECT_NE(natural_less(a, b), natural_less(b, a)) << a << " and " << b;
      }
      for (const auto& c : names) {
        if (natural_less(a, b) && natural_less(b, c)) {
          EXPECT_TRUE(natural_less(a, c)) << a << ", " << b << ", " << c;
        }
      }
    }
  }
}

}  // namespace
}  // namespace strobe::media
