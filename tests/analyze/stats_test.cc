#include "analyze/stats.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "analyze/device_maker.h"
#include "analyze/sample.h"
#include "base/statistics.h"

namespace strobe::analyze {
namespace {

using test::DeviceMaker;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(Stats, ByHand) {
  DeviceMaker maker;
  const int32_t thread = maker.lane(1);
  maker.range("step", thread, 0, 100);  // children: 10..30 and 40..80, so 40 of its own
  maker.range("load", thread, 10, 30);  // 20
  maker.range("load", thread, 40, 80);  // 40, of which 45..55 is an operator
  maker.op("aten::conv", thread, 45, 55);
  maker.range("step", thread, 200, 250);                                // 50
  maker.range("late", thread, 300, 400, trace::kNoFrame, false, true);  // open
  const trace::Timeline timeline = maker.finish();
  const Table table = stats(timeline, {StatsBy::kAnnotation, 0, {}});
  ASSERT_EQ(table.row_count(), 2U);
  EXPECT_EQ(table.text(0, "name"), "step");
  EXPECT_EQ(*table.number(0, "count"), 2);
  EXPECT_EQ(*table.number(0, "total_ns"), 150);
  EXPECT_EQ(*table.number(0, "mean_ns"), 75);
  EXPECT_NEAR(*table.number(0, "std_ns"), 35.35533905932738, 1e-12);  // sqrt(25^2 + 25^2)
  EXPECT_EQ(*table.number(0, "min_ns"), 50);
  EXPECT_EQ(*table.number(0, "p50_ns"), 75);
  EXPECT_EQ(*table.number(0, "p90_ns"), 95);
  EXPECT_EQ(*table.number(0, "p95_ns"), 97.5);
  EXPECT_EQ(*table.number(0, "p99_ns"), 99.5);
  EXPECT_EQ(*table.number(0, "max_ns"), 100);
  EXPECT_EQ(*table.number(0, "jitter_ns"), 50);
  EXPECT_NEAR(*table.number(0, "share"), 150.0 / 210, 1e-15);
  EXPECT_EQ(*table.number(0, "self_ns"), 90);  // 40 + 50
  EXPECT_EQ(table.text(1, "name"), "load");
  EXPECT_EQ(*table.number(1, "self_ns"), 50);  // 20 + 30
  EXPECT_THAT(table.notes, ElementsAre(HasSubstr("1 range was still open")));

  const Table ranges = stats(timeline, {});  // what programs and frameworks say
  ASSERT_EQ(ranges.row_count(), 3U);
  EXPECT_EQ(ranges.text(2, "name"), "aten::conv");
  EXPECT_NEAR(*ranges.number(0, "share"), 150.0 / 220, 1e-15);

  const Table operators = stats(timeline, {StatsBy::kOperator, 0, {}});
  ASSERT_EQ(operators.row_count(), 1U);
  EXPECT_EQ(operators.text(0, "name"), "aten::conv");
  EXPECT_FALSE(operators.number(0, "jitter_ns"));  // one value has none
  EXPECT_THAT(stats(timeline, {StatsBy::kKernel, 0, {}}).notes,
              ElementsAre("no kernel in this trace; there are 1 operator, 5 annotation"));
}

TEST(Stats, TopAndFilter) {
  DeviceMaker maker;
  const int32_t thread = maker.lane(1);
  maker.range("a1", thread, 0, 10);
  maker.range("a2", thread, 20, 50);
  maker.range("b1", thread, 60, 160);
  const trace::Timeline timeline = maker.finish();
  const Table filtered = stats(timeline, {StatsBy::kRange, 0, *NameFilter::parse("^a[0-9]$")});
  ASSERT_EQ(filtered.row_count(), 2U);
  EXPECT_EQ(filtered.text(0, "name"), "a2");
  EXPECT_NEAR(*filtered.number(0, "share"), 30.0 / 140, 1e-15);  // of all names
  EXPECT_THAT(filtered.notes, ElementsAre("1 name is left out by the filter"));
  const Table top = stats(timeline, {StatsBy::kRange, 1, {}});
  ASSERT_EQ(top.row_count(), 1U);
  EXPECT_EQ(top.text(0, "name"), "b1");
  EXPECT_THAT(NameFilter::parse("a(").error().to_string(), HasSubstr("'a(' is no regular expression"));
  EXPECT_THAT(parse_stats_by("x").error().to_string(),
              HasSubstr("expected one of range (annotation and operator), kernel"));
}

TEST(Stats, OfStagesAreThoseOfTheRunOnly) {
  DeviceMaker maker;
  maker.timeline.facts["pipeline.stages"] = "read,infer";
  const int32_t main = maker.lane(1), thread = maker.lane(2);
  maker.range("read", thread, 0, 10, 1);  // warm-up
  maker.range("run", main, 20, 200);
  maker.range("read", thread, 30, 50, 2);
  maker.range("infer", thread, 60, 100, 2);
  const Table table = stats(maker.finish(), {StatsBy::kStage, 0, {}});
  ASSERT_EQ(table.row_count(), 2U);
  EXPECT_EQ(table.text(0, "name"), "infer");
  EXPECT_EQ(*table.number(1, "count"), 1);
  EXPECT_EQ(*table.number(1, "total_ns"), 20);
  EXPECT_FALSE(table.number(1, "self_ns"));
}

// Against sorting everything.
TEST(Sample, EqualsTheDefinitionsOnRandomGroups) {
  std::mt19937 random(5);
  for (int round = 0; round < 30; ++round) {
    const size_t groups = 1 + random() % 7, count = random() % 400;
    std::vector<uint32_t> group_of;
    std::vector<int64_t> values;
    std::map<uint32_t, std::vector<double>> expected;
    for (size_t i = 0; i < count; ++i) {
      group_of.push_back(static_cast<uint32_t>(random() % groups));
      values.push_back(static_cast<int64_t>(random() % (round % 2 == 0 ? 5 : 1000000)));
      expected[group_of.back()].push_back(static_cast<double>(values.back()));
    }
    const std::vector<Sample> samples = summarize_groups(group_of, values, groups);
    for (uint32_t group = 0; group < groups; ++group) {
      std::vector<double>& x = expected[group];
      const Sample& sample = samples[group];
      ASSERT_EQ(static_cast<size_t>(sample.count), x.size());
      if (x.empty()) continue;
      double jitter = 0;
      for (size_t i = 1; i < x.size(); ++i) jitter += std::abs(x[i] - x[i - 1]) / static_cast<double>(x.size() - 1);
      EXPECT_NEAR(sample.jitter_ns, jitter, 1e-9 * (1 + jitter));
      EXPECT_NEAR(sample.mean_ns, mean(x), 1e-6);
      EXPECT_NEAR(sample.std_ns, standard_deviation(x), 1e-6);
      std::sort(x.begin(), x.end());
      EXPECT_EQ(static_cast<double>(sample.min_ns), x.front());
      EXPECT_EQ(static_cast<double>(sample.max_ns), x.back());
      EXPECT_NEAR(sample.p50_ns, quantile_sorted(x, 0.5), 1e-6);
      EXPECT_NEAR(sample.p90_ns, quantile_sorted(x, 0.9), 1e-6);
      EXPECT_NEAR(sample.p95_ns, quantile_sorted(x, 0.95), 1e-6);
      EXPECT_NEAR(sample.p99_ns, quantile_sorted(x, 0.99), 1e-6);
    }
  }
}

TEST(Stats, ByCategoryAndDomain) {
  DeviceMaker maker;
  const int32_t thread = maker.lane(1);
  trace::Timeline& timeline = maker.timeline;
  const auto categorized = [&](const char* name, int64_t start, int64_t end, const char* category, const char* domain) {
    maker.range(name, thread, start, end);
    timeline.ranges.categorize_last(timeline.strings.intern(category), timeline.strings.intern(domain));
  };
  categorized("process", 0, 1000, "", "os");
  categorized("decode", 10, 30, "io", "cv");
  categorized("resize", 40, 50, "cpu", "cv");
  categorized("read", 60, 70, "io", "");
  maker.range("plain", thread, 80, 90);
  const trace::Timeline done = maker.finish();

  const Table by_category = stats(done, {StatsBy::kCategory, 0, {}});
  ASSERT_EQ(by_category.row_count(), 2U);
  EXPECT_EQ(by_category.text(0, "name"), "io");
  EXPECT_EQ(*by_category.number(0, "total_ns"), 30);
  EXPECT_EQ(*by_category.number(0, "count"), 2);
  const Table by_domain = stats(done, {StatsBy::kDomain, 0, {}});
  ASSERT_EQ(by_domain.row_count(), 2U);
  EXPECT_EQ(by_domain.text(0, "name"), "os");
  EXPECT_EQ(by_domain.text(1, "name"), "cv");
  EXPECT_EQ(*by_domain.number(1, "total_ns"), 30);
  // The lifetime of a process is none of its ranges.
  const Table by_range = stats(done, {StatsBy::kRange, 0, {}});
  ASSERT_EQ(by_range.row_count(), 4U);
  for (size_t row = 0; row < by_range.row_count(); ++row) EXPECT_NE(by_range.text(row, "name"), "process");
}

// Both threads of the large case.
TEST(Sample, ManyValues) {
  std::vector<uint32_t> group_of;
  std::vector<int64_t> values;
  for (int64_t i = 0; i < 300'003; ++i) {
    group_of.push_back(static_cast<uint32_t>(i % 3));
    values.push_back(i % 3 == 1 ? i : 7);
  }
  const std::vector<Sample> samples = summarize_groups(group_of, values, 3);
  EXPECT_EQ(samples[0].total_ns, 700'007);
  EXPECT_EQ(samples[2].std_ns, 0);
  EXPECT_EQ(samples[1].count, 100'001);
  EXPECT_EQ(samples[1].p50_ns, 150'001);  // 1, 4, ..., 300001
  EXPECT_EQ(samples[1].jitter_ns, 3);
}

}  // namespace
}  // namespace strobe::analyze
