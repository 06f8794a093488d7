#include "bench/warmup.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace strobe::bench {
namespace {

// Noise of the given deviation around 10, the first `slow` values on a slope that begins at 30.
std::vector<double> run(size_t count, size_t slow, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<double> values;
  for (size_t i = 0; i < count; ++i) {
    // The sum of 12 uniforms is near a normal deviate, and the same with every library.
    double normal = -6;
    for (int k = 0; k < 12; ++k) normal += static_cast<double>(random()) / 4294967296.0;
    values.push_back(10 + 0.5 * normal +
                     (i < slow ? 20.0 * static_cast<double>(slow - i) / static_cast<double>(slow) : 0));
  }
  return values;
}

TEST(Mser, FindsTheEndOfASlope) {
  for (unsigned seed = 1; seed <= 20; ++seed) {
    const Truncation cut = mser(run(400, 60, seed));
    EXPECT_TRUE(cut.settled) << seed;
    EXPECT_GE(cut.drop, 50U) << seed;
    EXPECT_LE(cut.drop, 150U) << seed;
    EXPECT_EQ(cut.drop % 5, 0U) << seed;
  }
}

TEST(Mser, OneSlowBatchOfAShortRun) {
  std::vector<double> values = run(20, 0, 3);
  values[0] = 300;
  const Truncation cut = mser(values);
  EXPECT_GE(cut.drop, 1U);
  EXPECT_LE(cut.drop, 6U);
}

TEST(Mser, KeepsWhatIsStationary) {
  size_t dropped = 0;
  for (unsigned seed = 1; seed <= 40; ++seed) dropped += mser(run(400, 0, seed)).drop;
  EXPECT_LT(dropped / 40, 40U);  // a tenth
  EXPECT_EQ(mser(std::vector<double>(100, 7.0)).drop, 0U);
}

TEST(Mser, AFarOutlierIsNoWarmup) {
  std::vector<double> values = run(400, 0, 5);
  const size_t without = mser(values).drop;
  values[150] = 1000;
  EXPECT_LT(mser(values).drop, 150U);
  EXPECT_LE(mser(values).drop, without + 20);
}

TEST(Mser, ARunThatNeverSettlesSaysSo) {
  std::vector<double> falling;
  for (int i = 0; i < 200; ++i) falling.push_back(1000 - 5.0 * i);
  EXPECT_FALSE(mser(falling).settled);
}

TEST(Mser, TooFewValuesAreKept) {
  EXPECT_EQ(mser({}).drop, 0U);
  EXPECT_EQ(mser(std::vector<double>{9, 1, 1}).drop, 0U);
}

TEST(Warmup, IsTheLargestOfAllLevelsAtEitherEnd) {
  RangeTimes ranges;
  const auto add = [&ranges](const std::string& level, int64_t index, double ms) {
    ranges.push_back({.path = level + "/batch_" + std::to_string(index), .cpu_ms = ms, .batch = BatchMark{index, 1}});
  };
  for (int64_t i = 0; i < 40; ++i) {
    add("demo/a", i, i < 3 ? 50 : 10 + 0.01 * static_cast<double>(i % 3));
    add("demo/b", i, i >= 38 ? 50 : 10 + 0.01 * static_cast<double>(i % 3));
  }
  bool settled = false;
  const Warmup found = resolve({.automatic = true}, ranges, &settled);
  EXPECT_TRUE(settled);
  EXPECT_EQ(found.front, 3);
  EXPECT_EQ(found.back, 2);
  EXPECT_EQ(resolve({4, 4}, ranges).front, 4);
}

TEST(Warmup, IsReadFromWords) {
  EXPECT_EQ(parse_warmup("3")->back, 3);
  EXPECT_TRUE(parse_warmup("auto")->automatic);
  for (const char* text : {"", "-1", "1.5", "many"}) EXPECT_FALSE(parse_warmup(text)) << text;
}

}  // namespace
}  // namespace strobe::bench
