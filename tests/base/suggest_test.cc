#include "base/suggest.h"

#include <gtest/gtest.h>

namespace strobe {
namespace {

const std::vector<std::string> kNames = {"run", "report", "layers"};

TEST(Suggest, TheNearestNameWhereOneIsNear) {
  EXPECT_EQ(suggest("rnu", kNames), "did you mean run?");
  EXPECT_EQ(suggest("layer", kNames), "did you mean layers?");
  EXPECT_EQ(suggest("repotr", kNames), "did you mean report?");
}

TEST(Suggest, AllNamesWhereNoneIsNear) {
  EXPECT_EQ(suggest("visualise", kNames), "there are: run, report, layers");
  EXPECT_EQ(suggest("x", {}), "there are: ");
}

TEST(Suggest, ALineHoldsADozenNames) {
  std::vector<std::string> names;
  for (int i = 0; i < 20; ++i) names.push_back("kernel_" + std::to_string(i));
  names[1] = std::string(3000, 'k');
  const std::string text = suggest("gemm", names);
  EXPECT_LT(text.size(), 300U);
  EXPECT_NE(text.find("kernel_11 and 8 more"), std::string::npos) << text;
}

}  // namespace
}  // namespace strobe
