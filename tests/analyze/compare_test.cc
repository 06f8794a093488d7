#include "analyze/compare.h"

#include <gmock/gmock.h>

#include <cmath>
#include <random>

#include "analyze/device_maker.h"
#include "importers/importer.h"
#include "support/test_data.h"

namespace strobe::analyze {
namespace {

using test::DeviceMaker;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

std::vector<double> transformed(std::vector<double> values, double factor, double added) {
  for (double& value : values) value = factor * value + added;
  return values;
}

// What NumPy says of a = [10, 12, 11, 13, 9, 14, 10, 12, 15, 11] and b = 1.2 a + 1.
TEST(Compare, FiguresEqualNumpys) {
  const std::vector<double> a{10, 12, 11, 13, 9, 14, 10, 12, 15, 11}, b = transformed(a, 1.2, 1);
  const Comparison comparison = compare("frame", a, b, {});
  EXPECT_EQ(comparison.a.n, 10U);
  EXPECT_DOUBLE_EQ(comparison.a.mean_ns, 11.7);
  EXPECT_DOUBLE_EQ(comparison.a.std_ns, 1.888562063228706);
  EXPECT_DOUBLE_EQ(comparison.a.p50_ns, 11.5);
  EXPECT_DOUBLE_EQ(comparison.a.p90_ns, 14.1);
  EXPECT_DOUBLE_EQ(comparison.a.p99_ns, 14.91);
  EXPECT_DOUBLE_EQ(*comparison.ratio, 1.2854700854700853);
  ASSERT_TRUE(comparison.interval);
  EXPECT_EQ(comparison.verdict, "slower");
  CompareOptions p50;
  p50.statistic = Statistic::kP50;
  EXPECT_DOUBLE_EQ(*compare("frame", a, b, p50).ratio, 1.2869565217391303);
  CompareOptions p99;
  p99.statistic = Statistic::kP99;
  const Comparison few = compare("frame", a, b, p99);
  EXPECT_DOUBLE_EQ(*few.ratio, 1.267069081153588);
  EXPECT_FALSE(few.interval);  // ten samples have no 99th percentile
  EXPECT_EQ(few.verdict, "too few samples");
  EXPECT_THAT(comparison_table(few).notes, ElementsAre(HasSubstr("it takes 100 on either side")));
}

TEST(Compare, VerdictsAndRepeatability) {
  std::mt19937_64 random(3);
  std::normal_distribution<double> noise;
  std::vector<double> a, b;
  for (int i = 0; i < 200; ++i) {
    a.push_back(100 + noise(random));
    b.push_back(100 + noise(random));
  }
  EXPECT_EQ(compare("frame", a, transformed(b, 1.02, 0), {}).verdict, "slower");
  EXPECT_EQ(compare("frame", a, transformed(b, 0.98, 0), {}).verdict, "faster");
  const Comparison same = compare("frame", a, a, {});
  EXPECT_EQ(same.verdict, "no difference");
  EXPECT_LT(same.interval->low, 1);
  EXPECT_GT(same.interval->high, 1);
  EXPECT_EQ(same.interval->low, compare("frame", a, a, {}).interval->low);
  const Table table = comparison_table(same);
  EXPECT_EQ(*table.number(0, "a_n"), 200);
  EXPECT_EQ(*table.number(0, "ratio"), 1);
  EXPECT_EQ(table.text(0, "verdict"), "no difference");
}

TEST(BlockLength, IsOneWithoutCorrelationAndGrowsWithIt) {
  std::mt19937_64 random(11);
  std::normal_distribution<double> noise;
  const auto series = [&](double phi) {
    std::vector<double> values;
    double x = 0;
    for (int i = 0; i < 2000; ++i) values.push_back(x = phi * x + noise(random));
    return values;
  };
  EXPECT_LE(block_length(series(0)), 2U);
  const size_t some = block_length(series(0.5)), much = block_length(series(0.9));
  EXPECT_GE(some, 5U);
  EXPECT_GT(much, 2 * some);
  EXPECT_EQ(block_length(std::vector<double>(100, 7.0)), 1U);
}

// How often the 95 % interval holds the true ratio, 1: 93..97 of 100 are wanted. Of 1,000 trials the count itself has a
// standard deviation of 0.7 %.
struct CoverageCase {
  const char* name;
  double phi;  // of an AR(1) series; -1: independent lognormal values
  size_t a_count, b_count;
  Statistic statistic;
};
class Coverage : public testing::TestWithParam<CoverageCase> {};

TEST_P(Coverage, Is95Percent) {
  const CoverageCase& c = GetParam();
  std::mt19937_64 random(7);
  std::normal_distribution<double> noise;
  const auto draw = [&](size_t count) {
    std::vector<double> values;
    double x = noise(random);
    const double fresh = std::sqrt(1 - c.phi * c.phi);
    for (size_t i = 0; i < count; ++i) {
      if (c.phi < 0) {
        values.push_back(std::exp(0.5 * noise(random)));
      } else {
        values.push_back(100 + 5 * x);
        x = c.phi * x + fresh * noise(random);
      }
    }
    return values;
  };
  constexpr int kTrials = 1000;
  int held = 0;
  for (int trial = 0; trial < kTrials; ++trial) {
    const std::vector<double> a = draw(c.a_count), b = draw(c.b_count);
    const RatioInterval interval = ratio_interval(a, b, c.statistic, 300, static_cast<uint64_t>(trial));
    held += interval.low <= 1 && 1 <= interval.high ? 1 : 0;
  }
  EXPECT_GE(held, 930);
  EXPECT_LE(held, 970);
}

INSTANTIATE_TEST_SUITE_P(All, Coverage,
                         testing::Values(CoverageCase{"independent", 0, 100, 100, Statistic::kMean},
                                         CoverageCase{"few", 0, 15, 20, Statistic::kMean},
                                         CoverageCase{"skewed", -1, 300, 200, Statistic::kMean},
                                         CoverageCase{"skewed_median", -1, 300, 200, Statistic::kP50},
                                         CoverageCase{"ar_30", 0.3, 500, 500, Statistic::kMean},
                                         CoverageCase{"ar_50", 0.5, 500, 500, Statistic::kMean},
                                         CoverageCase{"ar_70", 0.7, 500, 500, Statistic::kMean},
                                         CoverageCase{"ar_50_median", 0.5, 500, 500, Statistic::kP50},
                                         CoverageCase{"skewed_p99", -1, 1000, 1000, Statistic::kP99}),
                         [](const auto& c) { return std::string(c.param.name); });

// Batches and the reading of quantiles at resampled shares give what resampling every value would: near 1 / sqrt(n).
TEST(RatioInterval, OfManyValues) {
  std::mt19937_64 random(5);
  std::normal_distribution<double> noise;
  std::vector<double> a, b;
  for (int i = 0; i < 40'000; ++i) {
    a.push_back(100 + 5 * noise(random));
    b.push_back(100 + 5 * noise(random));
  }
  // Standard error of the mean 5 / 200 = 0.025 on either side: of the ratio 0.035 %, the interval +-0.069 %.
  const RatioInterval of_mean = ratio_interval(a, b, Statistic::kMean);
  EXPECT_NEAR(of_mean.high - of_mean.low, 2 * 0.00069, 0.0002);
  // Of the median sqrt(pi / 2) times as much.
  const RatioInterval of_median = ratio_interval(a, b, Statistic::kP50);
  EXPECT_NEAR(of_median.high - of_median.low, 2 * 0.00087, 0.0003);
  EXPECT_LT(of_median.low, of_median.ratio);
  EXPECT_GT(of_median.high, of_median.ratio);
}

trace::Timeline pipeline() {
  DeviceMaker maker;
  maker.timeline.facts["pipeline.stages"] = "read,infer";
  const int32_t main = maker.lane(1), thread = maker.lane(2);
  maker.range("run", main, 100, 1000);
  for (int64_t i = 0; i < 3; ++i) {
    maker.range("read", thread, 110 + 200 * i, 120 + 200 * i, i);
    maker.range("infer", thread, 130 + 200 * i, 200 + 200 * i + 10 * i, i);
  }
  return maker.finish();
}

TEST(Samples, OfFramesRangesAndSteps) {
  const trace::Timeline run = pipeline();
  EXPECT_THAT(*samples_of(run, "frame"), ElementsAre(90, 100, 110));
  EXPECT_THAT(*samples_of(run, "end_to_end"), ElementsAre(100, 210, 210));  // 200 - 100, 410 - 200, 620 - 410
  EXPECT_THAT(*samples_of(run, "range:read"), ElementsAre(10, 10, 10));

  DeviceMaker maker;
  const int32_t thread = maker.lane(1), stream = maker.stream(7);
  maker.range("ProfilerStep#1", thread, 0, 100);
  maker.range("ProfilerStep#2", thread, 110, 190);
  maker.op("aten::conv", thread, 5, 20);
  maker.kernel("aten::conv", stream, 10, 50);  // the same name, another kind
  const trace::Timeline steps = maker.finish();
  EXPECT_THAT(*samples_of(steps, "frame"), ElementsAre(100, 80));
  EXPECT_THAT(*samples_of(steps, "end_to_end"), ElementsAre(110, 80));
  EXPECT_THAT(*samples_of(steps, "operator:aten::conv"), ElementsAre(15));
  EXPECT_THAT(*samples_of(steps, "range:aten::conv"), ElementsAre(15)) << "what a framework says of itself";
  EXPECT_THAT(*samples_of(steps, "range:ProfilerStep"), ElementsAre(100, 80)) << "numbered instances";
  EXPECT_THAT(*samples_of(steps, "range:ProfilerStep#2"), ElementsAre(80));
  EXPECT_FALSE(samples_of(steps, "range:Profiler"));
  EXPECT_THAT(*samples_of(steps, "kernel:aten::conv"), ElementsAre(40));

  const auto refusal = [&](const char* metric) { return samples_of(steps, metric).error().to_string(); };
  EXPECT_THAT(refusal("speed"), AllOf(HasSubstr("no metric 'speed'"), HasSubstr("range:NAME")));
  EXPECT_THAT(refusal("range:"), HasSubstr("no metric 'range:'"));
  EXPECT_THAT(refusal("operator:aten::con"), HasSubstr("did you mean aten::conv?"));
  EXPECT_THAT(refusal("api:x"), HasSubstr("no api in this trace"));
  EXPECT_THAT(samples_of(trace::Timeline(), "frame").error().to_string(), HasSubstr("no finished frame"));
}

TEST(LargestChanges, ByHand) {
  const auto timeline = [](int64_t conv_ns, bool with_relu) {
    DeviceMaker maker;
    const int32_t thread = maker.lane(1);
    for (int64_t i = 0; i < 12; ++i) {
      maker.op("aten::conv", thread, 1000 * i, 1000 * i + conv_ns + i % 3);
      maker.op("aten::add", thread, 1000 * i + 500, 1000 * i + 510);
    }
    if (with_relu) maker.op("aten::relu", thread, 20'000, 20'030);
    maker.range("ProfilerStep#" + std::to_string(conv_ns), thread, 30'000, 30'000 + conv_ns);
    return maker.finish();
  };
  const Table table = largest_changes(timeline(100, true), timeline(200, false), {});
  ASSERT_EQ(table.row_count(), 4U);
  EXPECT_EQ(table.text(0, "metric"), "operator:aten::conv");
  EXPECT_EQ(*table.number(0, "change_ns"), 1200);
  EXPECT_NEAR(*table.number(0, "ratio"), 201.0 / 101, 1e-12);
  EXPECT_EQ(table.text(0, "verdict"), "slower");
  EXPECT_EQ(table.text(1, "metric"), "frame");  // steps with different numbers
  EXPECT_EQ(table.text(1, "verdict"), "too few samples");
  EXPECT_EQ(table.text(2, "metric"), "operator:aten::relu");
  EXPECT_EQ(table.text(2, "verdict"), "only in A");
  EXPECT_FALSE(table.number(2, "b_mean_ns"));
  EXPECT_EQ(table.text(3, "verdict"), "no difference");
  CompareOptions one;
  one.top = 1;
  EXPECT_THAT(largest_changes(timeline(100, true), timeline(200, false), one).notes,
              ElementsAre(HasSubstr("the first 1 of 4 names")));
}

// The operators that HolisticTraceAnalysis' own test names as added.
TEST(LargestChanges, NamesTheAddedOperatorsOfARealPair) {
  const auto folder = test::shared_data("traces/kineto");
  STROBE_REQUIRE_DATA(folder);
  const auto a = importers::import_trace(folder / "compare_base.json.gz", {});
  const auto b = importers::import_trace(folder / "compare_test.json.gz", {});
  ASSERT_TRUE(a && b);
  CompareOptions all;
  all.top = 0;
  const Table table = largest_changes(*a, *b, all);
  std::vector<std::string> added;
  for (size_t row = 0; row < table.row_count(); ++row)
    if (table.text(row, "verdict") == "only in B") added.push_back(table.text(row, "metric"));
  EXPECT_THAT(added, testing::UnorderedElementsAre("operator:AddmmBackward0", "operator:All2All_Pooled_Req",
                                                   "operator:CatBackward0"));
}

}  // namespace
}  // namespace strobe::analyze
