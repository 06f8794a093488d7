#include "report/comparison.h"

#include <gmock/gmock.h>

#include "report/synthetic_timeline.h"

namespace strobe::report {
namespace {

using test::synthetic_timeline;
using test::SyntheticOptions;

TEST(Comparison, NamesTheSlowestStageAndWhatTheCoresDid) {
  SyntheticOptions options;
  options.cores_busy = 0.625;
  const auto timeline = synthetic_timeline(options);
  const ReportInput runs[] = {{"torch", &timeline}};
  const Table table = compare_runs(runs);
  EXPECT_EQ(table.text(0, "limited_by"), "infer");  // 61 ms on one worker: less than two cores allow
  EXPECT_NEAR(table.number(0, "cores_busy").value_or(-1), 0.625, 1e-6);
  EXPECT_DOUBLE_EQ(table.number(0, "speedup").value_or(-1), 1);
}

TEST(Comparison, CoresLimitWhereStagesTogetherWantMore) {
  SyntheticOptions options;
  // Alone each stage does 100 FPS; three of them want 30 ms of CPU a frame, so two cores allow 67.
  options.stages = {{"read", 10}, {"infer", 10}, {"write", 10}};
  const auto timeline = synthetic_timeline(options);
  const ReportInput runs[] = {{"torch", &timeline}};
  EXPECT_EQ(compare_runs(runs).text(0, "limited_by"), "cores");
}

TEST(Comparison, WaitingIsTheLatencyThatNoStageHas) {
  SyntheticOptions options;
  const auto timeline = synthetic_timeline(options);
  const ReportInput runs[] = {{"torch", &timeline}};
  const Table table = compare_runs(runs);
  // Queues of four before a stage of 61 ms: about (4 + 4 + 1) x 61 ms of waiting beside 71 ms of work.
  EXPECT_NEAR(table.number(0, "waiting_share").value_or(-1), 0.88, 0.04);
}

TEST(Comparison, WhatWasNotRecordedIsMissing) {
  SyntheticOptions options;
  options.afterwards = false;
  const auto timeline = synthetic_timeline(options);
  const ReportInput runs[] = {{"torch", &timeline}};
  const Table table = compare_runs(runs);
  EXPECT_FALSE(table.number(0, "cores_busy"));
  EXPECT_FALSE(table.number(0, "limit_fps"));
  EXPECT_EQ(table.text(0, "limited_by"), "infer");  // of the run itself
  EXPECT_THAT(table.notes, testing::Contains(testing::HasSubstr("torch: no stage was run alone")));

  trace::Timeline empty;
  empty.finish();
  const ReportInput nothing[] = {{"empty", &empty}};
  const Table blank = compare_runs(nothing);
  ASSERT_EQ(blank.row_count(), 1u);
  EXPECT_FALSE(blank.number(0, "end_to_end_fps"));
  EXPECT_EQ(blank.text(0, "limited_by"), "");
}

TEST(Comparison, SpeedUpIsOverTheFirstRun) {
  SyntheticOptions slow, fast;
  fast.engine = "openvino";
  fast.stages[2].mean_ms = 61 / 2.0;
  const auto a = synthetic_timeline(slow), b = synthetic_timeline(fast);
  const ReportInput runs[] = {{"torch", &a}, {"openvino", &b}};
  const Table table = compare_runs(runs);
  EXPECT_DOUBLE_EQ(table.number(0, "speedup").value_or(-1), 1);
  EXPECT_NEAR(table.number(1, "speedup").value_or(-1), 2, 0.15);
}

}  // namespace
}  // namespace strobe::report
