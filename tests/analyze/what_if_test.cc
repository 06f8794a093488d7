#include "analyze/what_if.h"

#include <gtest/gtest.h>

#include <cmath>

#include "analyze/what_if_pipeline.h"
#include "trace/timeline_maker.h"

namespace strobe::analyze {
namespace {

using test::TimelineMaker;

void add_stage(PipelineModel& model, const char* name, std::vector<double> work_ns) {
  model.stages.emplace_back();
  model.stages.back().name = name;
  model.stages.back().work_ns = std::move(work_ns);
}

PipelineModel two_stages(double read_ns, double infer_ns, size_t frames) {
  PipelineModel model;
  model.cores = 4;
  add_stage(model, "read", std::vector<double>(frames, read_ns));
  add_stage(model, "infer", std::vector<double>(frames, infer_ns));
  for (size_t i = 0; i < frames; ++i) model.frames.push_back(static_cast<int64_t>(i));
  return model;
}

TEST(Simulate, TheSlowestStageSetsThePace) {
  const PipelineOutcome outcome = simulate(two_stages(10, 30, 50));
  EXPECT_NEAR(outcome.duration_ns, 10 + 50 * 30, 1e-3);
  // Read while one is inferred, it waits for room until that one ends, then behind one in work and three in the queue.
  EXPECT_NEAR(outcome.latency_ns.back(), 30 + 4 * 30 + 30, 1e-3);
  EXPECT_NEAR(outcome.path_ns[1], 50 * 30, 1e-3);
  EXPECT_NEAR(outcome.path_ns[0], 10, 1e-3);
}

TEST(Simulate, TwoSessionsDoubleTheRateOnlyOnTwoCores) {
  PipelineModel model = two_stages(1, 30, 100);
  model.stages[1].workers = 2;
  model.stages[1].per_batch = true;
  EXPECT_NEAR(simulate(model).duration_ns, 100 * 30 / 2, 35);
  model.cores = 1;
  EXPECT_NEAR(simulate(model).duration_ns, 100 * (30 + 1), 1);
}

TEST(Simulate, ShorterQueuesShortenTheWayThrough) {
  PipelineModel model = two_stages(10, 30, 50);
  model.queue_capacity = 1;
  const PipelineOutcome outcome = simulate(model);
  EXPECT_NEAR(outcome.latency_ns.back(), 30 + 30 + 30, 1e-3);
  EXPECT_NEAR(outcome.duration_ns, 10 + 50 * 30, 1e-3);
}

TEST(Simulate, OrderedStagesWaitForBatchesThatWereOvertaken) {
  PipelineModel model = two_stages(1, 10, 4);
  model.stages[1].workers = 2;
  model.stages[1].work_ns = {100, 10, 10, 10};
  add_stage(model, "post", {1, 1, 1, 1});
  model.stages.back().ordered = true;
  const PipelineOutcome outcome = simulate(model);
  // Frame 0 leaves infer at 101; the others, finished by then, follow it.
  EXPECT_NEAR(outcome.finished_ns[0], 102, 1e-3);
  EXPECT_NEAR(outcome.finished_ns[1], 103, 1e-3);
  EXPECT_NEAR(outcome.finished_ns[3], 105, 1e-3);
}

TEST(Simulate, BatchesGoOnTogether) {
  PipelineModel model = two_stages(10, 0, 5);
  model.batch = 2;
  model.stages[1].per_batch = true;
  model.stages[1].work_ns = {30, 30, 30};
  const PipelineOutcome outcome = simulate(model);
  EXPECT_NEAR(outcome.finished_ns[0], 50, 1e-3);
  EXPECT_NEAR(outcome.finished_ns[1], 50, 1e-3);
  EXPECT_NEAR(outcome.latency_ns[0], 50, 1e-3);
  EXPECT_NEAR(outcome.latency_ns[1], 40, 1e-3);
  EXPECT_NEAR(outcome.finished_ns[4], 110, 1e-3);
}

// What a simulated pipeline would have recorded.
trace::Timeline recorded(const PipelineModel& model) {
  const PipelineOutcome outcome = simulate(model);
  TimelineMaker maker;
  maker.timeline.facts = {{"pipeline.stages", "read,infer"}, {"cores", "4"}, {"pipeline.queue_capacity", "4"}};
  maker.timeline.processes.push_back({100, maker.timeline.strings.intern("pipeline")});
  const int32_t main = maker.lane(1), reader = maker.lane(2), worker = maker.lane(3);
  maker.range("run", main, 0, static_cast<int64_t>(outcome.duration_ns));
  for (size_t f = 0; f < model.frames.size(); ++f) {
    const auto end = static_cast<int64_t>(outcome.finished_ns[f]);
    const auto start = end - static_cast<int64_t>(outcome.latency_ns[f]);
    const auto frame = static_cast<int64_t>(f);
    const auto infer = static_cast<int64_t>(model.stages[1].work_ns[f]);
    maker.range("read", reader, start, start + static_cast<int64_t>(model.stages[0].work_ns[f]), frame);
    const auto read_end = start + static_cast<int64_t>(model.stages[0].work_ns[f]);
    if (f + 1 < model.frames.size()) {
      const auto next = static_cast<int64_t>(outcome.finished_ns[f + 1] - outcome.latency_ns[f + 1]);
      if (next > read_end) maker.range("back-pressure", reader, read_end, next, frame);
    }
    maker.range("infer", worker, end - infer, end, frame);
    maker.range("inner", worker, end - infer, end - infer / 2, frame);
  }
  return maker.finish();
}

double cell(const Table& table, const std::string& row_name, const char* column) {
  for (size_t row = 0; row < table.row_count(); ++row)
    if (table.text(row, table.columns()[0].name) == row_name) return table.number(row, column).value_or(std::nan(""));
  return std::nan("");
}

TEST(WhatIf, ReplayOfARecordingIsTheRecording) {
  const trace::Timeline timeline = recorded(two_stages(1'000'000, 3'000'000, 200));
  auto answer = what_if(timeline, {});
  ASSERT_TRUE(answer) << answer.error().to_string();
  EXPECT_TRUE(answer->is_reliable);
  for (const char* metric : {"p50_ms", "p95_ms", "p99_ms", "max_ms", "throughput"}) {
    EXPECT_NEAR(cell(answer->answer, metric, "error"), 0, 1e-6) << metric;
    EXPECT_NEAR(cell(answer->answer, metric, "change"), 0, 1e-9) << metric;
  }
}

TEST(WhatIf, ChangesThatCanBeWorkedOutByHand) {
  const trace::Timeline timeline = recorded(two_stages(1'000'000, 3'000'000, 200));
  const auto throughput = [&](const WhatIfOptions& options) {
    auto answer = what_if(timeline, options);
    EXPECT_TRUE(answer) << answer.error().to_string();
    return answer ? cell(answer->answer, "throughput", "after") : 0;
  };
  const auto options = [](const std::string& scale) {
    WhatIfOptions result;
    result.scales.push_back(*parse_scale(scale));
    return result;
  };
  EXPECT_NEAR(throughput(options("stage:infer=0.5")), 1000 / 1.5, 5);
  EXPECT_NEAR(throughput(options("range:inner=0")), 1000 / 1.5, 5);
  EXPECT_NEAR(throughput(options("stage:infer=0.1")), 1000, 5);  // the source is the slowest then
  EXPECT_NEAR(throughput(options("stage:read=0.1")), 1000 / 3.0, 5);
  EXPECT_NEAR(throughput(options("tenant:pipeline=2")), 1000 / 6.0, 3);
  WhatIfOptions removed;
  removed.removed.push_back(*parse_selector("stage:infer"));
  EXPECT_NEAR(throughput(removed), 1000, 5);
  WhatIfOptions sessions;
  sessions.sessions = 2;
  EXPECT_NEAR(throughput(sessions), 1000 / 1.5, 10);
  WhatIfOptions cores;
  cores.cores = 1;
  EXPECT_NEAR(throughput(cores), 250, 5);
}

TEST(WhatIf, ASweepRanksWhatIsWorthSpeedingUp) {
  const trace::Timeline timeline = recorded(two_stages(1'000'000, 3'000'000, 200));
  WhatIfOptions options;
  options.sweep = true;
  auto answer = what_if(timeline, options);
  ASSERT_TRUE(answer && answer->sweep) << answer.error().to_string();
  EXPECT_EQ(answer->sweep->text(0, "item"), "stage:infer");
  EXPECT_NEAR(cell(*answer->sweep, "stage:infer", "throughput_slope"), 1, 0.1);
  EXPECT_NEAR(cell(*answer->sweep, "stage:read", "throughput_slope"), 0, 0.02);
}

// A replay that misses the measurement says so.
TEST(WhatIf, NotReliableWhereTheModelMissesTheMeasurement) {
  TimelineMaker maker;
  maker.timeline.facts = {{"pipeline.stages", "read,infer"}, {"cores", "4"}};
  const int32_t main = maker.lane(1), reader = maker.lane(2), worker = maker.lane(3);
  maker.range("run", main, 0, 1'000'000'000);
  for (int64_t f = 0; f < 20; ++f) {
    maker.range("read", reader, f * 50'000'000, f * 50'000'000 + 1'000'000, f);
    // Frames lie about for 40 ms although the worker is free.
    maker.range("infer", worker, f * 50'000'000 + 41'000'000, f * 50'000'000 + 42'000'000, f);
  }
  auto answer = what_if(maker.finish(), {});
  ASSERT_TRUE(answer) << answer.error().to_string();
  EXPECT_FALSE(answer->is_reliable);
  ASSERT_FALSE(answer->answer.notes.empty());
  EXPECT_NE(answer->answer.notes[0].find("not reliable here"), std::string::npos);
}

TEST(WhatIf, OtherTracesAreReplayedAsTheirGraph) {
  TimelineMaker maker;
  const int32_t a = maker.lane(1), b = maker.lane(2);
  for (int64_t i = 0; i < 12; ++i) {
    const int64_t at = i * 100;
    maker.range("step", a, at, at + 90);
    maker.range("left", a, at, at + 20);
    maker.range("right", b, at + 20, at + 70);
    maker.flow("go", a, at + 20, b, at + 20);
    maker.range("end", a, at + 75, at + 90);
    maker.flow("back", b, at + 70, a, at + 75);
  }
  // Without the ranges "step" around them, the threads' time between is nobody's.
  const trace::Timeline timeline = maker.finish();
  WhatIfOptions options;
  options.range = "end";
  options.scales.push_back(*parse_scale("range:end=0.5"));
  auto answer = what_if(timeline, options);
  ASSERT_TRUE(answer) << answer.error().to_string();
  EXPECT_NEAR(cell(answer->answer, "p50_ms", "change"), -0.47, 0.04);
  EXPECT_NEAR(cell(answer->answer, "p50_ms", "error"), 0, 1e-9);
}

TEST(WhatIf, RefusesWhatItCannotAnswer) {
  const trace::Timeline timeline = recorded(two_stages(1'000'000, 3'000'000, 20));
  EXPECT_FALSE(parse_scale("stage:infer"));
  EXPECT_FALSE(parse_scale("stage:infer=-1"));
  EXPECT_FALSE(parse_scale("stage:infer=x"));
  EXPECT_FALSE(parse_scale("infer=2"));
  EXPECT_FALSE(parse_selector("stage:"));
  WhatIfOptions options;
  options.scales = {*parse_scale("stage:infr=2")};
  auto answer = what_if(timeline, options);
  ASSERT_FALSE(answer);
  EXPECT_NE(answer.error().message().find("did you mean infer"), std::string::npos) << answer.error().message();
  EXPECT_EQ(answer.error().exit_code(), 2);
  options.scales = {*parse_scale("layer:conv=2")};
  EXPECT_FALSE(what_if(timeline, options));
  options.scales.clear();
  options.sessions = 0;
  EXPECT_FALSE(what_if(timeline, options));
  options = {};
  options.removed = {*parse_selector("stage:read")};
  EXPECT_FALSE(what_if(timeline, options));
  options = {};
  options.queue = 2;
  EXPECT_FALSE(what_if(trace::Timeline(), options));
  EXPECT_FALSE(what_if(trace::Timeline(), {}));
}

}  // namespace
}  // namespace strobe::analyze
