#include "analyze/pipeline.h"

#include <gmock/gmock.h>

#include "trace/timeline_maker.h"

namespace strobe::analyze {
namespace {

using test::TimelineMaker;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using trace::Timeline;

constexpr int64_t kMs = 1'000'000;

// A pipeline with one thread a stage, written down in milliseconds.
class PipelineMaker {
 public:
  explicit PipelineMaker(const std::string& stages) {
    maker_.timeline.facts["pipeline.stages"] = stages;
    maker_.timeline.facts["engine"] = "fake";
    maker_.timeline.facts["cores"] = "2";
    main_ = maker_.lane(1, "main");
  }
  TimelineMaker& operator*() { return maker_; }
  void run(int64_t start, int64_t end, bool open = false) {
    maker_.range("run", main_, start * kMs, end * kMs, trace::kNoFrame, false, open);
  }
  int32_t pass(const std::string& stage, int64_t frame, int64_t start, int64_t end, bool open = false) {
    const auto [lane, is_new] = lanes_.try_emplace(stage, 0);
    if (is_new) lane->second = maker_.lane(static_cast<int32_t>(10 + lanes_.size()), stage);
    return maker_.range(stage, lane->second, start * kMs, end * kMs, frame, false, open);
  }
  void drop(int64_t frame, int64_t time) { maker_.mark("drop", main_, time * kMs, frame); }
  void alone(const std::string& stage, int64_t start, int64_t end, int64_t frames, int64_t cpu_ms) {
    const int32_t range = maker_.range("alone", main_, start * kMs, end * kMs);
    maker_.argument(range, "stage", stage);
    maker_.argument(range, "frames", frames);
    maker_.argument(range, "cpu_ns", cpu_ms * kMs);
  }
  Timeline finish() { return maker_.finish(); }

 private:
  TimelineMaker maker_;
  int32_t main_;
  std::map<std::string, int32_t> lanes_;
};

std::vector<std::optional<double>> column(const Table& table, const std::string& name) {
  std::vector<std::optional<double>> values;
  for (size_t row = 0; row < table.row_count(); ++row) values.push_back(table.number(row, name));
  return values;
}

// Three frames through two stages: read 10 ms each, infer 20 ms each, so frames queue before infer.
//   read  0-10 10-20 20-30        infer 10-30 30-50 50-70
PipelineMaker three_frames() {
  PipelineMaker maker("read,infer");
  maker.run(0, 70);
  for (int64_t i = 0; i < 3; ++i) {
    maker.pass("read", i, 10 * i, 10 * i + 10);
    maker.pass("infer", i, 10 + 20 * i, 30 + 20 * i);
  }
  return maker;
}

TEST(StageLatency, ByHand) {
  const Table table = stage_latency(three_frames().finish());
  ASSERT_EQ(table.row_count(), 3U);
  EXPECT_EQ(table.text(0, "stage"), "read");
  EXPECT_EQ(table.text(1, "stage"), "infer");
  EXPECT_EQ(table.text(2, "stage"), "total");
  EXPECT_THAT(column(table, "count"), ElementsAre(3, 3, 3));
  // Totals: 30, 40, 50 ms.
  EXPECT_THAT(column(table, "mean_ms"), ElementsAre(10, 20, 40));
  EXPECT_THAT(column(table, "p50_ms"), ElementsAre(10, 20, 40));
  EXPECT_THAT(column(table, "p90_ms"), ElementsAre(10, 20, 48));  // type 7: 40 + 0.8 * 10
  EXPECT_NEAR(*table.number(2, "p99_ms"), 49.8, 1e-9);
  EXPECT_THAT(column(table, "max_ms"), ElementsAre(10, 20, 50));
  EXPECT_NEAR(*table.number(0, "share"), 1.0 / 3, 1e-12);
  EXPECT_NEAR(*table.number(1, "share"), 2.0 / 3, 1e-12);
  EXPECT_FALSE(table.number(2, "share"));
  // 90 ms of service in 120 ms of latency; the rest is waiting.
  EXPECT_DOUBLE_EQ(*table.coverage, 0.75);
  EXPECT_THAT(table.notes, IsEmpty());
}

TEST(FrameLatency, ByHand) {
  const Table table = frame_latency(three_frames().finish());
  std::vector<std::string> names;
  for (const Column& one : table.columns()) names.push_back(one.name);
  EXPECT_THAT(names, ElementsAre("frame", "read_ms", "infer_ms", "total_ms"));
  EXPECT_THAT(column(table, "frame"), ElementsAre(0, 1, 2));
  EXPECT_THAT(column(table, "read_ms"), ElementsAre(10, 10, 10));
  EXPECT_THAT(column(table, "infer_ms"), ElementsAre(20, 20, 20));
  EXPECT_THAT(column(table, "total_ms"), ElementsAre(30, 40, 50));
}

TEST(FrameLatency, FramesComeInOrderOfTheirNumbersWhateverTheOrderOfFinishing) {
  PipelineMaker maker("read,infer");
  maker.run(0, 100);
  maker.pass("read", 10, 0, 5);
  maker.pass("read", 9, 5, 10);
  maker.pass("infer", 10, 40, 50);
  maker.pass("infer", 9, 10, 20);
  EXPECT_THAT(column(frame_latency(maker.finish()), "frame"), ElementsAre(9, 10));
}

TEST(FrameLatency, OnlyRangesInsideTheRunCount) {
  PipelineMaker maker("read,infer");
  maker.run(100, 200);
  for (const int64_t start : {0, 100, 220}) {  // warm-up, measured, after
    maker.pass("read", start, start, start + 10);
    maker.pass("infer", start, start + 10, start + 40);
  }
  const Timeline timeline = maker.finish();
  EXPECT_THAT(column(frame_latency(timeline), "frame"), ElementsAre(100));
  EXPECT_THAT(column(stage_latency(timeline), "count"), ElementsAre(1, 1, 1));
}

TEST(FrameLatency, ABatchGivesItsTimeToEachOfItsFrames) {
  PipelineMaker maker("read,infer,post");
  maker.run(0, 100);
  for (int64_t i = 0; i < 3; ++i) maker.pass("read", i, 10 * i, 10 * i + 10);
  const int32_t batch = maker.pass("infer", 0, 30, 60);
  (*maker).argument(batch, "also_frame", int64_t{1});
  (*maker).argument(batch, "size", int64_t{77});
  (*maker).argument(batch, "also_frame", int64_t{2});
  for (int64_t i = 0; i < 3; ++i) maker.pass("post", i, 60 + i, 61 + i);
  const Timeline timeline = maker.finish();
  const Table frames = frame_latency(timeline);
  EXPECT_THAT(column(frames, "infer_ms"), ElementsAre(30, 30, 30));
  EXPECT_THAT(column(frames, "total_ms"), ElementsAre(61, 52, 43));
  EXPECT_THAT(column(stage_latency(timeline), "count"), ElementsAre(3, 3, 3, 3));
  // The batch was busy once, not three times: 3 frames in 30 ms.
  EXPECT_DOUBLE_EQ(*throughput(timeline).number(0, "inference_fps"), 100);
}

TEST(FrameLatency, AStageOfTheSameNameInsideAStageIsNotASecondPass) {
  PipelineMaker maker("read,infer");
  maker.run(0, 100);
  maker.pass("read", 0, 0, 10);
  maker.pass("infer", 0, 10, 50);
  maker.pass("infer", trace::kNoFrame, 20, 40);  // the engine's own, with the frame inherited
  const Timeline timeline = maker.finish();
  EXPECT_THAT(column(frame_latency(timeline), "infer_ms"), ElementsAre(40));
}

TEST(FrameLatency, AStagePassedTwiceCountsWithTheSum) {
  PipelineMaker maker("read,infer,post");
  maker.run(0, 100);
  maker.pass("read", 0, 0, 10);
  maker.pass("infer", 0, 10, 20);
  maker.pass("infer", 0, 30, 45);
  maker.pass("post", 0, 50, 51);
  const Timeline timeline = maker.finish();
  EXPECT_THAT(column(frame_latency(timeline), "infer_ms"), ElementsAre(25));
  EXPECT_THAT(column(stage_latency(timeline), "count"), ElementsAre(1, 1, 1, 1));
}

TEST(FrameLatency, AReadThatMetTheEndOfTheSourceIsNoFrame) {
  PipelineMaker maker = three_frames();
  (*maker).argument(maker.pass("read", 3, 30, 31), "no_frame", int64_t{1});
  const Timeline timeline = maker.finish();
  EXPECT_EQ(frame_latency(timeline).row_count(), 3U);
  EXPECT_THAT(stage_latency(timeline).notes, IsEmpty());
  EXPECT_THAT(column(stage_latency(timeline), "count"), ElementsAre(3, 3, 3));
}

TEST(FrameLatency, UnfinishedAndDroppedFramesAreLeftOutAndSaid) {
  PipelineMaker maker = three_frames();
  maker.pass("read", 3, 30, 40);  // never inferred, no reason known
  maker.pass("read", 4, 40, 50);
  maker.drop(4, 51);
  maker.drop(99, 90);            // after the run
  maker.pass("infer", 7, 5, 8);  // read before the run
  const Timeline timeline = maker.finish();
  const Table frames = frame_latency(timeline);
  EXPECT_THAT(column(frames, "frame"), ElementsAre(0, 1, 2));
  EXPECT_THAT(frames.notes,
              ElementsAre(HasSubstr("1 frame was dropped"), HasSubstr("2 frames did not pass every stage")));
  const Table rates = throughput(timeline);
  EXPECT_EQ(*rates.number(0, "frames"), 3);
  EXPECT_EQ(*rates.number(0, "dropped"), 1);
  EXPECT_THAT(column(stage_latency(timeline), "count"), ElementsAre(5, 4, 3));
}

TEST(FrameLatency, AKilledRunGivesWhatItHad) {
  PipelineMaker maker("read,infer");
  maker.run(0, 50, true);
  maker.pass("read", 0, 0, 10);
  maker.pass("infer", 0, 10, 30);
  maker.pass("read", 1, 10, 20);
  maker.pass("infer", 1, 30, 50, true);
  const Timeline timeline = maker.finish();
  const Table frames = frame_latency(timeline);
  EXPECT_THAT(column(frames, "frame"), ElementsAre(0));
  EXPECT_THAT(frames.notes, ElementsAre(HasSubstr("ends inside the run"), HasSubstr("1 frame did not pass")));
  EXPECT_DOUBLE_EQ(*throughput(timeline).number(0, "end_to_end_fps"), 20);
}

TEST(Throughput, ByHand) {
  PipelineMaker maker = three_frames();
  maker.alone("infer", 200, 1200, 100, 1500);  // 100 frames/s, 15 ms of CPU a frame
  maker.alone("read", 1300, 1800, 200, 500);   // 400 frames/s, 2.5 ms
  const Timeline timeline = maker.finish();
  const Table table = throughput(timeline);
  ASSERT_EQ(table.row_count(), 1U);
  EXPECT_EQ(table.text(0, "engine"), "fake");
  EXPECT_EQ(*table.number(0, "frames"), 3);
  EXPECT_EQ(*table.number(0, "dropped"), 0);
  EXPECT_DOUBLE_EQ(*table.number(0, "inference_fps"), 100);
  EXPECT_DOUBLE_EQ(*table.number(0, "end_to_end_fps"), 3 / 0.070);
  EXPECT_DOUBLE_EQ(*table.number(0, "limit_fps"), 100);  // 2 cores / 17.5 ms = 114
  EXPECT_DOUBLE_EQ(*table.number(0, "limit_share"), 3 / 0.070 / 100);
  EXPECT_EQ(table.text(0, "slowest_stage"), "infer");
  EXPECT_DOUBLE_EQ(*table.number(0, "slowest_stage_fps"), 100);
  EXPECT_DOUBLE_EQ(*table.number(0, "cpu_ms_per_frame"), 17.5);
  EXPECT_EQ(*table.number(0, "cores"), 2);
  EXPECT_THAT(table.notes, IsEmpty());

  const Table limits = stage_limits(timeline);
  ASSERT_EQ(limits.row_count(), 2U);
  EXPECT_EQ(limits.text(0, "stage"), "read");
  EXPECT_THAT(column(limits, "frames"), ElementsAre(200, 100));
  EXPECT_THAT(column(limits, "alone_fps"), ElementsAre(400, 100));
  EXPECT_THAT(column(limits, "cpu_ms_per_frame"), ElementsAre(2.5, 15));
}

TEST(Throughput, CoresLimitWhereTheStagesTogetherNeedMoreCpu) {
  PipelineMaker maker = three_frames();
  maker.alone("infer", 200, 1200, 100, 1900);
  maker.alone("read", 1300, 2300, 100, 600);
  (*maker).timeline.facts["cores"] = "1.5";  // a container's quota
  const Table table = throughput(maker.finish());
  EXPECT_DOUBLE_EQ(*table.number(0, "limit_fps"), 1.5 / 0.025);
  EXPECT_DOUBLE_EQ(*table.number(0, "slowest_stage_fps"), 100);
  EXPECT_DOUBLE_EQ(*table.number(0, "cores"), 1.5);
}

TEST(Throughput, TheCpuTimeOfTheRunItselfLimitsWhereItIsKnown) {
  PipelineMaker maker = three_frames();
  maker.alone("infer", 200, 1200, 100, 1500);
  maker.alone("read", 1300, 1800, 200, 500);
  (*maker).argument(0, "cpu_ns", int64_t{75'000'000});  // 25 ms a frame, of which 17.5 alone
  const Table table = throughput(maker.finish());
  EXPECT_DOUBLE_EQ(*table.number(0, "limit_fps"), 2 / 0.025);
  EXPECT_DOUBLE_EQ(*table.number(0, "cpu_ms_per_frame"), 25);
  EXPECT_DOUBLE_EQ(*table.number(0, "cpu_alone_ms_per_frame"), 17.5);
  EXPECT_EQ(table.text(0, "slowest_stage"), "infer");
}

TEST(Throughput, SaysWhatOthersTookOfTheMachine) {
  for (const auto& [busy_ms, stolen_ms, notes] :
       {std::tuple{60, 0, 0}, std::tuple{66, 6, 0}, std::tuple{100, 0, 1}, std::tuple{130, 35, 2}}) {
    PipelineMaker maker = three_frames();  // 70 ms on two cores
    maker.alone("infer", 200, 1200, 100, 1500);
    maker.alone("read", 1300, 1800, 200, 500);
    (*maker).argument(0, "cpu_ns", int64_t{60 * kMs});
    (*maker).argument(0, "machine_busy_ns", int64_t{busy_ms * kMs});
    (*maker).argument(0, "machine_stolen_ns", int64_t{stolen_ms * kMs});
    const Table table = throughput(maker.finish());
    EXPECT_EQ(table.notes.size(), static_cast<size_t>(notes)) << busy_ms << " " << stolen_ms;
    if (notes > 0) {
      EXPECT_THAT(table.notes[0], HasSubstr("other programs took "));
    }
    if (notes > 1) {
      EXPECT_THAT(table.notes[1], HasSubstr("other virtual machines took 0.5 of the 2 cores"));
    }
  }
}

TEST(Throughput, RepeatedPassesOfAStageAddUpAndBrokenOnesAreLeftOut) {
  PipelineMaker maker = three_frames();
  maker.alone("read", 100, 200, 10, 50);
  maker.alone("read", 200, 500, 10, 150);
  maker.alone("infer", 500, 600, 0, 10);  // stopped at once
  const Table limits = stage_limits(maker.finish());
  ASSERT_EQ(limits.row_count(), 1U);
  EXPECT_DOUBLE_EQ(*limits.number(0, "alone_fps"), 50);
  EXPECT_DOUBLE_EQ(*limits.number(0, "cpu_ms_per_frame"), 10);
}

TEST(Throughput, WithoutAlonePassesThereIsNoLimitAndANoteSaysSo) {
  const Table table = throughput(three_frames().finish());
  EXPECT_DOUBLE_EQ(*table.number(0, "inference_fps"), 50);  // 3 frames in 60 ms
  EXPECT_FALSE(table.number(0, "limit_fps"));
  EXPECT_FALSE(table.number(0, "limit_share"));
  EXPECT_FALSE(table.number(0, "cpu_ms_per_frame"));
  EXPECT_EQ(table.text(0, "slowest_stage"), "infer");
  EXPECT_THAT(table.notes, ElementsAre(HasSubstr("no stage was run alone"), HasSubstr("infer was not run alone")));
}

TEST(Throughput, SaysWhatTheLimitLeavesOut) {
  PipelineMaker maker = three_frames();
  maker.alone("infer", 200, 1200, 100, 0);
  (*maker).timeline.facts.erase("cores");
  const Table table = throughput(maker.finish());
  EXPECT_DOUBLE_EQ(*table.number(0, "limit_fps"), 100);
  EXPECT_THAT(table.notes,
              ElementsAre(HasSubstr("not run alone: read"), HasSubstr("CPU time that was not recorded: infer"),
                          HasSubstr("leaves out the cores")));
}

TEST(Throughput, ParallelWorkersOfAStageAreBusyTogether) {
  PipelineMaker maker("read,infer");
  maker.run(0, 100);
  TimelineMaker& raw = *maker;
  const int32_t one = raw.lane(50), two = raw.lane(51);
  raw.range("infer", one, 10 * kMs, 50 * kMs, 0);
  raw.range("infer", two, 20 * kMs, 60 * kMs, 1);
  raw.range("infer", one, 70 * kMs, 80 * kMs, 2);
  EXPECT_DOUBLE_EQ(*throughput(maker.finish()).number(0, "inference_fps"), 50);  // 3 frames, busy 10-60 and 70-80
}

TEST(Pipeline, ASingleFrame) {
  PipelineMaker maker("read,infer");
  maker.run(0, 40);
  maker.pass("read", 0, 0, 10);
  maker.pass("infer", 0, 10, 40);
  const Timeline timeline = maker.finish();
  const Table table = stage_latency(timeline);
  for (const char* name : {"mean_ms", "p50_ms", "p90_ms", "p99_ms", "max_ms"})
    EXPECT_THAT(column(table, name), ElementsAre(10, 30, 40)) << name;
  EXPECT_DOUBLE_EQ(*table.coverage, 1);
  EXPECT_DOUBLE_EQ(*throughput(timeline).number(0, "end_to_end_fps"), 25);
}

TEST(Pipeline, AnEmptyTraceGivesEmptyTablesWithReasons) {
  const Timeline timeline;
  EXPECT_EQ(frame_latency(timeline).row_count(), 0U);
  const Table stages = stage_latency(timeline);
  ASSERT_EQ(stages.row_count(), 1U);
  EXPECT_FALSE(stages.number(0, "p50_ms"));
  EXPECT_FALSE(stages.coverage);
  EXPECT_THAT(stages.notes, ElementsAre(HasSubstr("pipeline.stages is missing"), HasSubstr("no range \"run\"")));
  const Table rates = throughput(timeline);
  EXPECT_FALSE(rates.number(0, "end_to_end_fps"));
  EXPECT_EQ(*rates.number(0, "frames"), 0);
  EXPECT_EQ(stage_limits(timeline).row_count(), 0U);
}

TEST(Pipeline, LossesOfTheRecordingAreShownWithEveryTable) {
  PipelineMaker maker = three_frames();
  (*maker).timeline.losses.dropped_records = 12;
  (*maker).timeline.losses.faults["unmatched pop"] = 3;
  const Timeline timeline = maker.finish();
  for (const Table& table :
       {stage_latency(timeline), frame_latency(timeline), throughput(timeline), stage_limits(timeline)}) {
    EXPECT_THAT(table.notes, Contains(HasSubstr("12 records were dropped while recording"))) << table.title();
    EXPECT_THAT(table.notes, Contains(HasSubstr("3 x unmatched pop"))) << table.title();
  }
}

}  // namespace
}  // namespace strobe::analyze
