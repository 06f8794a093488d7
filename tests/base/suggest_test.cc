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

}  // namespace
}  // namespace strobe
