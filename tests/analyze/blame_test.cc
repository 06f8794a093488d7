// Blame of small traces, against what can be seen in them by hand.
#include "analyze/blame.h"

#include <gtest/gtest.h>

#include "analyze/critical_path.h"
#include "tenant_maker.h"

namespace strobe::analyze {
namespace {

using test::TenantMaker;

double cell(const BlameAnalysis& analysis, const std::vector<BlameCell>& cells, int32_t tenant, const std::string& by,
            const std::string& resource) {
  for (const BlameCell& one : cells)
    if (blamed_name(analysis.trace, one.by, tenant) == by &&
        blamed_resource_name(analysis.trace, one.resource) == resource)
      return one.ns / 1000;
  return 0;
}

BlameAnalysis blame_of(const trace::Timeline& timeline) {
  auto trace = tenant_trace(timeline);
  EXPECT_TRUE(trace) << (trace ? "" : trace.error().to_string());
  return blame(std::move(*trace));
}

// a: its layer is ready at 100 and b holds the device until 250, then nobody until 260; b's frame 2 waits for its
// thread.
TEST(Blame, WaitForTheHolderOfAnExclusiveDevice) {
  TenantMaker maker("a,b");
  maker.timeline.facts["tenants.resource.device"] = "exclusive=1";
  const int32_t a = maker.lane(1), b = maker.lane(2);
  maker.frame("a", a, 1, 0, 400);
  maker.stage("a", a, 1, "infer", 50, 400);
  maker.operation("conv", a, "device", "compute", 100, 260, 400);
  maker.frame("b", b, 1, 10, 250);
  maker.stage("b", b, 1, "infer", 10, 250);
  maker.operation("conv", b, "device", "compute", 30, 30, 250);
  maker.frame("b", b, 2, 200, 500);
  maker.stage("b", b, 2, "infer", 255, 500);
  maker.operation("conv", b, "device", "compute", 300, 400, 500);
  const BlameAnalysis analysis = blame_of(maker.finish());
  ASSERT_EQ(analysis.frames.size(), 3U);
  const FrameBlame &first = analysis.frames[0], &second = analysis.frames[2];
  EXPECT_DOUBLE_EQ(cell(analysis, first.direct, 0, "b", "device"), 150);
  EXPECT_DOUBLE_EQ(cell(analysis, first.direct, 0, "idle", "device"), 10);
  EXPECT_DOUBLE_EQ(cell(analysis, first.direct, 0, "idle", "queue:a"),
                   50);  // nothing says what its thread did until 50
  EXPECT_DOUBLE_EQ(first.intrinsic_path_ns, 190e3);
  EXPECT_DOUBLE_EQ(cell(analysis, second.direct, 1, "self", "queue:b"), 50);
  EXPECT_DOUBLE_EQ(cell(analysis, second.direct, 1, "idle", "queue:b"), 5);
  EXPECT_DOUBLE_EQ(cell(analysis, second.direct, 1, "a", "device"), 100);
  // Its earlier frame had not been delayed by anybody: nothing to hand on.
  EXPECT_DOUBLE_EQ(cell(analysis, second.with_backlog, 1, "self", "queue:b"), 50);
  EXPECT_TRUE(analysis.gates.because());
  EXPECT_DOUBLE_EQ(analysis.gates.known_state, 1);
}

// Two beside each other on a shared device: a is slowed by 0.5, so of 90 us one third is b's.
TEST(Blame, StretchOfASharedDevice) {
  TenantMaker maker("a,b");
  maker.timeline.facts["tenants.policy"] = "concurrent";
  maker.timeline.facts["tenants.resource.device"] = "shared";
  maker.timeline.facts["tenants.interference.compute.bandwidth"] = "0.5";
  maker.timeline.facts["tenants.interference.bandwidth.compute"] = "1";
  const int32_t a = maker.lane(1), b = maker.lane(2);
  maker.frame("a", a, 1, 0, 120);
  maker.stage("a", a, 1, "infer", 0, 120);
  maker.operation("conv", a, "device", "compute", 0, 0, 120);
  maker.frame("b", b, 1, 30, 200);
  maker.stage("b", b, 1, "infer", 30, 200);
  maker.operation("conv", b, "device", "bandwidth", 30, 30, 200);
  const BlameAnalysis analysis = blame_of(maker.finish());
  EXPECT_NEAR(cell(analysis, analysis.frames[0].direct, 0, "b", "device"), 30, 1e-9);
  EXPECT_NEAR(cell(analysis, analysis.frames[1].direct, 1, "a", "device"), 45, 1e-9);
  EXPECT_NEAR(analysis.frames[1].intrinsic_path_ns, 125e3, 1e-6);
}

// Both on cores of their own, from 30 to 120 beside each other: the same stretch, through memory. What ran on the same
// core did not run at the same time, and a matrix of a device says nothing of cores.
TEST(Blame, StretchBetweenCores) {
  const auto analysis_of = [](const char* cpu_of_b, bool of_cores) {
    TenantMaker maker("a,b");
    maker.timeline.facts["tenants.policy"] = "concurrent";
    for (const std::string name : {"cpu:0", "cpu:1"})
      maker.timeline.facts["tenants.resource." + name] = "cores=1;run-queues=each";
    maker.timeline.facts["tenant.a.cpu"] = "cpu:0";
    maker.timeline.facts["tenant.b.cpu"] = cpu_of_b;
    const int32_t a = maker.lane(1), b = maker.lane(2);
    maker.frame("a", a, 1, 0, 120);
    maker.stage("a", a, 1, "infer", 0, 120);
    maker.operation("conv", a, "cpu:0", "compute", 0, 0, 120);
    maker.frame("b", b, 1, 30, 200);
    maker.stage("b", b, 1, "infer", 30, 200);
    maker.operation("conv", b, cpu_of_b, "bandwidth", 30, 30, 200);
    const trace::Timeline timeline = maker.finish();
    auto trace = tenant_trace(timeline);
    EXPECT_TRUE(trace);
    auto calibration =
        parse_calibration(std::string(R"({"classes":["compute","bandwidth"],"a":[[0,0.5],[1,0]],"of":")") +
                          (of_cores ? "cores\"}" : "device\"}"));
    EXPECT_TRUE(calibration) << calibration.error().to_string();
    apply_calibration(*trace, *calibration);
    return blame(std::move(*trace));
  };
  const BlameAnalysis apart = analysis_of("cpu:1", true);
  EXPECT_NEAR(cell(apart, apart.frames[0].direct, 0, "b", "mem"), 30, 1e-9);
  EXPECT_NEAR(cell(apart, apart.frames[1].direct, 1, "a", "mem"), 45, 1e-9);
  EXPECT_NEAR(apart.frames[0].intrinsic_path_ns, 90e3, 1e-6);
  EXPECT_TRUE(analysis_of("cpu:0", true).frames[0].direct.empty());
  EXPECT_TRUE(analysis_of("cpu:1", false).frames[0].direct.empty());
  EXPECT_FALSE(parse_calibration(R"({"classes":[],"a":[],"of":"moon"})"));
  EXPECT_FALSE(parse_calibration(R"({"classes":["a"],"a":[[1e308]]})"));
  EXPECT_FALSE(parse_calibration(R"({"classes":["a","a"],"a":[[1,2],[3,4]]})"));
}

// A trace may have a shared resource of that name: what holds between cores goes beside it.
TEST(Blame, AResourceOfTheTraceCalledMem) {
  TenantMaker maker("a,b");
  maker.timeline.facts["tenants.policy"] = "concurrent";
  maker.timeline.facts["tenants.resource.mem"] = "shared";
  maker.timeline.facts["tenants.resource.cpu:0"] = "cores=1";
  const int32_t a = maker.lane(1), b = maker.lane(2);
  for (const auto& [name, lane] : {std::pair("a", a), std::pair("b", b)}) {
    maker.frame(name, lane, 1, 0, 100);
    maker.stage(name, lane, 1, "infer", 0, 100);
    maker.operation("conv", lane, "mem", "compute", 0, 0, 100);
  }
  const trace::Timeline timeline = maker.finish();
  auto trace = tenant_trace(timeline);
  ASSERT_TRUE(trace);
  const auto calibration = parse_calibration(R"({"classes":["compute"],"a":[[1]],"of":"cores"})");
  ASSERT_TRUE(calibration);
  apply_calibration(*trace, *calibration);
  apply_calibration(*trace, *calibration);
  const BlameAnalysis analysis = blame(std::move(*trace));
  EXPECT_NEAR(cell(analysis, analysis.frames[0].direct, 0, "b", "mem"), 50, 1e-9);
}

// The kernel's counter says 60 us; b used the core beside a all the time, the recorder half of it.
TEST(Blame, RunQueueTotalIsExactItsSplitByTheOthersOnTheCore) {
  TenantMaker maker("a,b");
  maker.timeline.facts["tenants.resource.cpu:0"] = "cores=1";
  maker.timeline.facts["tenant.a.cpu"] = "cpu:0";
  maker.timeline.facts["tenant.b.cpu"] = "cpu:0";
  const int32_t a = maker.lane(1), b = maker.lane(2), r = maker.lane(3, "", 200);
  maker.frame("a", a, 1, 0, 100);
  const int32_t stage = maker.stage("a", a, 1, "prep", 0, 100);
  maker.argument(stage, "cpu_ns", int64_t{40'000});
  maker.argument(stage, "runnable_ns", int64_t{60'000});
  maker.frame("b", b, 1, 0, 100);
  maker.stage("b", b, 1, "prep", 0, 100);
  const int32_t other = maker.range("drain", r, 0, 50'000, trace::kNoFrame, true);
  maker.timeline.ranges.categorize_last(maker.timeline.strings.intern("recorder"),
                                        maker.timeline.strings.intern("strobe.holder"));
  maker.argument(other, "resource", std::string("cpu:0"));
  const BlameAnalysis analysis = blame_of(maker.finish());
  const auto& cells = analysis.frames[0].direct;
  const double by_b = cell(analysis, cells, 0, "b", "cpu:0"),
               by_recorder = cell(analysis, cells, 0, "recorder", "cpu:0");
  EXPECT_NEAR(by_b + by_recorder, 60, 1e-9);
  // Processor sharing: of the first half 2/3 of the time is lost, to both alike; of the second half 1/2, to b.
  EXPECT_NEAR(by_recorder / 60, (1.0 / 3) / (2.0 / 3 + 1.0 / 2), 1e-6);
  EXPECT_EQ(analysis.estimated[static_cast<size_t>(analysis.trace.find_resource("cpu:0"))], 1);
}

TEST(Blame, AWaitWithoutAHolderIsUnknownWhereRecordsAreLost) {
  TenantMaker maker("a,b");
  maker.timeline.facts["tenants.resource.device"] = "exclusive=1";
  maker.timeline.losses.dropped_records = 1;
  const int32_t a = maker.lane(1);
  maker.frame("a", a, 1, 0, 400);
  maker.stage("a", a, 1, "infer", 0, 400);
  maker.operation("conv", a, "device", "compute", 0, 260, 400);
  const BlameAnalysis analysis = blame_of(maker.finish());
  EXPECT_DOUBLE_EQ(cell(analysis, analysis.frames[0].direct, 0, "unknown", "device"), 260);
  EXPECT_FALSE(analysis.gates.because());
  EXPECT_NEAR(analysis.gates.known_state, 140.0 / 400, 1e-9);
  const std::vector<std::string> sentences = blame_sentences(analysis);
  EXPECT_NE(sentences[0].find("nobody knows whose"), std::string::npos) << sentences[0];
}

TEST(Blame, StrictPathGoesThroughTheHolder) {
  TenantMaker maker("a,b");
  maker.timeline.facts["tenants.resource.device"] = "exclusive=1";
  const int32_t a = maker.lane(1), b = maker.lane(2);
  maker.frame("a", a, 7, 0, 400);
  maker.stage("a", a, 7, "infer", 0, 400);
  maker.operation("conv", a, "device", "compute", 100, 250, 400);
  maker.frame("b", b, 7, 20, 250);
  maker.stage("b", b, 7, "infer", 20, 250);
  maker.operation("conv", b, "device", "compute", 30, 30, 250);
  const trace::Timeline timeline = maker.finish();
  WindowChoice choice;
  choice.frame = 7;
  EXPECT_EQ(critical_path(timeline, choice).error().kind(), ErrorKind::kUsage);  // whose?
  choice.tenant = "a";
  const auto account = critical_path(timeline, choice);
  ASSERT_TRUE(account) << account.error().to_string();
  ASSERT_EQ(account->segments.size(), 3U);
  EXPECT_EQ(account->segments[1].name, "a/infer waits for device");
  choice.strict = true;
  const auto path = critical_path(timeline, choice);
  ASSERT_TRUE(path);
  std::string names;
  int64_t total = 0;
  for (const PathSegment& segment : path->segments) {
    names += std::string(segment.name) + " ";
    total += segment.end_ns - segment.start_ns;
  }
  EXPECT_EQ(total, 400'000);
  EXPECT_NE(names.find("b/infer/conv a/infer/conv"), std::string::npos) << names;
  choice.tenant = "c";
  EXPECT_EQ(critical_path(timeline, choice).error().kind(), ErrorKind::kNotFound);
}

}  // namespace
}  // namespace strobe::analyze
