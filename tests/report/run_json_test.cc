#include "report/run_json.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "report/comparison.h"

namespace strobe::report {
namespace {

// One thread of a program without stages, one counter that two threads have.
trace::Timeline program() {
  trace::Timeline timeline;
  timeline.processes.push_back({7, timeline.strings.intern("python3")});
  for (const int32_t tid : {7, 8}) {
    trace::Lane lane;
    lane.pid = 7;
    lane.tid = tid;
    lane.name = timeline.strings.intern("worker");
    timeline.lanes.push_back(lane);
  }
  auto& ranges = timeline.ranges;
  ranges.start_ns = {0};
  ranges.end_ns = {1000};
  ranges.name = {timeline.strings.intern("step")};
  ranges.lane = {0};
  ranges.frame = {trace::kNoFrame};
  ranges.parent = {trace::kNone};
  ranges.is_async = {0};
  ranges.open = {0};
  auto& counters = timeline.counters;
  counters.time_ns = {0, 10};
  counters.name = {timeline.strings.intern("cpu"), timeline.strings.intern("cpu")};
  counters.pid = {7, 7};
  counters.value = {1, 2};
  counters.lane = {0, 1};
  timeline.duration_ns = 1000;
  Table log("Processes", {{"pid", ""}});
  log.add_row({int64_t{7}});
  timeline.tables.push_back(log);
  timeline.finish();
  return timeline;
}

TEST(RunJson, OfAProgramWithoutStagesHasTheAnalysesAndNoComplaints) {
  const trace::Timeline timeline = program();
  const ReportInput run{"t", &timeline};
  const auto json = run_json(run);
  EXPECT_FALSE(json["is_pipeline"]);
  ASSERT_EQ(json["answers"].size(), 2U);
  EXPECT_EQ(json["answers"][0]["title"], "Statistics by range");
  EXPECT_EQ(json["answers"][0]["rows"][0][0], "step");
  EXPECT_EQ(json["answers"][1]["title"], "Processes");
  EXPECT_TRUE(compare_runs({&run, 1}).notes.empty());
}

TEST(RunJson, CountersOfThreadsAreNotMixed) {
  const trace::Timeline timeline = program();
  const auto json = run_json({"t", &timeline});
  ASSERT_EQ(json["counters"].size(), 2U);
  EXPECT_EQ(json["counters"][0]["name"], "cpu, worker 7");
  EXPECT_EQ(json["counters"][1]["name"], "cpu, worker 8");
  EXPECT_EQ(json["counters"][1]["samples"], 1);
}

}  // namespace
}  // namespace strobe::report
