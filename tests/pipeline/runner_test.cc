// The runner with scripted stages: order, back-pressure, drops, batches, errors, the clean stop.
#include "pipeline/runner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <mutex>
#include <numeric>
#include <set>
#include <thread>

namespace strobe::pipeline {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

// A source of `count` empty frames; a negative count never ends.
ReadFrame counting_source(int64_t count, microseconds pace = microseconds(0)) {
  return [count, pace, next = int64_t{0}]() mutable -> Result<std::optional<media::Frame>> {
    if (count >= 0 && next >= count) return std::optional<media::Frame>();
    if (pace.count() > 0) std::this_thread::sleep_for(pace);
    media::Frame frame;
    frame.time_s = static_cast<double>(next++);
    return std::optional(frame);
  };
}

struct Log {
  std::mutex mutex;
  std::vector<int64_t> frames;
  void add(int64_t frame) {
    const std::lock_guard lock(mutex);
    frames.push_back(frame);
  }
};

Stage logging_stage(const std::string& name, Log& log, microseconds takes = microseconds(0)) {
  return {.name = name, .ordered = true, .work = [&log, takes](Batch& batch, size_t i, int) -> Result<void> {
            if (takes.count() > 0) std::this_thread::sleep_for(takes);
            log.add(batch.frames[i].frame.index);
            return {};
          }};
}

// Later batches are done sooner, so that several workers overtake each other.
Stage overtaking_stage(int workers) {
  return {
      .name = "infer", .workers = workers, .per_batch = true, .work = [](Batch& batch, size_t, int) -> Result<void> {
        std::this_thread::sleep_for(microseconds(900 - 300 * (batch.sequence % 4)));
        return {};
      }};
}

std::vector<int64_t> first(int64_t count) {
  std::vector<int64_t> numbers(static_cast<size_t>(count));
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}

RunnerResult run(const ReadFrame& read, const std::vector<Stage>& stages, const RunnerOptions& options) {
  return run_pipeline(
      "read", read, [](Batch&) {}, stages, {}, options);
}

TEST(Runner, EveryFrameLeavesInOrderThoughWorkersOvertake) {
  Log log;
  const auto result = run(counting_source(200), {overtaking_stage(4), logging_stage("write", log)}, {});
  EXPECT_TRUE(result.ended);
  EXPECT_EQ(result.finished, 200);
  EXPECT_EQ(result.dropped, 0);
  EXPECT_EQ(log.frames, first(200));
}

TEST(Runner, BatchesHoldConsecutiveFramesAndTheLastMayBeShort) {
  std::vector<size_t> sizes;
  Log log;
  const Stage sizing{.name = "infer", .per_batch = true, .work = [&](Batch& batch, size_t, int) -> Result<void> {
                       sizes.push_back(batch.frames.size());
                       return {};
                     }};
  const auto result = run(counting_source(10), {sizing, logging_stage("write", log)}, {.batch_size = 4});
  EXPECT_EQ(result.finished, 10);
  EXPECT_THAT(sizes, testing::ElementsAre(4, 4, 2));
  EXPECT_EQ(log.frames, first(10));
}

TEST(Runner, StopsAfterTheFramesAskedFor) {
  Log log;
  const auto result = run(counting_source(-1), {logging_stage("write", log)}, {.max_frames = 7});
  EXPECT_EQ(result.read, 7);
  EXPECT_EQ(log.frames, first(7));
}

TEST(Runner, ASlowStageHoldsTheSourceBackInsteadOfFillingMemory) {
  std::atomic<int64_t> read{0}, written{0}, most_ahead{0};
  const ReadFrame source = [&]() -> Result<std::optional<media::Frame>> {
    if (read >= 100) return std::optional<media::Frame>();
    ++read;
    most_ahead = std::max(most_ahead.load(), read - written);
    return std::optional<media::Frame>(media::Frame{});
  };
  const Stage slow{.name = "write", .ordered = true, .work = [&](Batch&, size_t, int) -> Result<void> {
                     std::this_thread::sleep_for(microseconds(300));
                     ++written;
                     return {};
                   }};
  const auto result = run(source, {slow}, {.queue_capacity = 3});
  EXPECT_EQ(result.finished, 100);
  // In the queue 3, one in the reader's hand, one in the stage's, one just counted.
  EXPECT_LE(most_ahead, 6);
}

TEST(Runner, ALiveSourceDropsTheOldestAndCountsThem) {
  Log log;
  const auto result = run(counting_source(100, microseconds(100)), {logging_stage("write", log, milliseconds(2))},
                          {.queue_capacity = 2, .drop = DropPolicy::kOldest});
  EXPECT_GT(result.dropped, 0);
  EXPECT_EQ(result.finished + result.dropped, result.read);
  EXPECT_EQ(result.read, 100);
  EXPECT_EQ(static_cast<int64_t>(log.frames.size()), result.finished);
  EXPECT_TRUE(std::is_sorted(log.frames.begin(), log.frames.end()));
  EXPECT_EQ(log.frames.back(), 99) << "the newest frame is the one that must not be lost";
}

TEST(Runner, ALiveSourceCanDropTheNewest) {
  Log log;
  const auto result = run(counting_source(100, microseconds(100)), {logging_stage("write", log, milliseconds(2))},
                          {.queue_capacity = 2, .drop = DropPolicy::kNewest});
  EXPECT_GT(result.dropped, 0);
  EXPECT_EQ(result.finished + result.dropped, 100);
  EXPECT_EQ(log.frames.front(), 0);
}

TEST(Runner, DroppedFramesLeaveNoGapForOrderedStagesBehindSeveralWorkers) {
  Log log;
  const auto result = run(counting_source(300, microseconds(100)), {overtaking_stage(3), logging_stage("write", log)},
                          {.queue_capacity = 2, .drop = DropPolicy::kOldest});
  EXPECT_EQ(result.finished + result.dropped, 300);
  EXPECT_EQ(static_cast<int64_t>(log.frames.size()), result.finished);
  EXPECT_TRUE(std::is_sorted(log.frames.begin(), log.frames.end()));
}

TEST(Runner, ASourceThatBreaksOffIsReportedAfterItsFramesAreFinished) {
  Log log;
  int64_t given = 0;
  const ReadFrame breaking = [&]() -> Result<std::optional<media::Frame>> {
    if (given == 12) return bad_data("breaks off at frame 12");
    ++given;
    return std::optional<media::Frame>(media::Frame{});
  };
  const auto result = run(breaking, {overtaking_stage(2), logging_stage("write", log)}, {.batch_size = 5});
  ASSERT_FALSE(result.ended);
  EXPECT_EQ(result.ended.error().message(), "breaks off at frame 12");
  EXPECT_EQ(log.frames, first(12));
}

TEST(Runner, AFailingStageStopsEverything) {
  Log log;
  const Stage failing{.name = "infer", .per_batch = true, .work = [](Batch& batch, size_t, int) -> Result<void> {
                        if (batch.sequence == 5) return engine_error("out of memory");
                        return {};
                      }};
  const auto result = run(counting_source(-1), {failing, logging_stage("write", log)}, {});
  ASSERT_FALSE(result.ended);
  EXPECT_EQ(result.ended.error().message(), "out of memory");
  EXPECT_LE(log.frames.size(), 5U);
}

TEST(Runner, AStageThatCannotStartStopsEverything) {
  Log log;
  Stage unable = overtaking_stage(2);
  unable.start = [](int worker) -> Result<void> {
    if (worker == 1) return engine_error("no session");
    return {};
  };
  const auto result = run(counting_source(-1), {unable, logging_stage("write", log)}, {});
  ASSERT_FALSE(result.ended);
  EXPECT_EQ(result.ended.error().message(), "no session");
}

TEST(Runner, EveryWorkerStartsOnItsOwnThreadBeforeTheFirstFrameIsRead) {
  std::mutex mutex;
  std::set<std::thread::id> started, worked;
  std::atomic<int> starts{0};
  std::atomic<bool> read_early{false};
  Stage stage{.name = "infer", .workers = 3, .per_batch = true};
  stage.start = [&](int) -> Result<void> {
    std::this_thread::sleep_for(milliseconds(5));
    const std::lock_guard lock(mutex);
    started.insert(std::this_thread::get_id());
    ++starts;
    return {};
  };
  stage.work = [&](Batch&, size_t, int) -> Result<void> {
    std::this_thread::sleep_for(milliseconds(1));
    const std::lock_guard lock(mutex);
    worked.insert(std::this_thread::get_id());
    return {};
  };
  const ReadFrame source = [&, inner = counting_source(30)]() mutable {
    if (starts != 3) read_early = true;
    return inner();
  };
  EXPECT_TRUE(run(source, {stage}, {}).ended);
  EXPECT_FALSE(read_early);
  EXPECT_EQ(started.size(), 3U);
  EXPECT_TRUE(std::includes(started.begin(), started.end(), worked.begin(), worked.end()));
}

TEST(Runner, StopFinishesWhatIsUnderWay) {
  Log log;
  std::atomic<bool> stop{false};
  Stage stopping = logging_stage("write", log);
  const auto write = stopping.work;
  stopping.work = [&, write](Batch& batch, size_t i, int worker) {
    if (batch.frames[i].frame.index == 20) stop = true;
    return write(batch, i, worker);
  };
  const auto result = run(counting_source(-1), {overtaking_stage(2), stopping}, {.stop = &stop});
  EXPECT_TRUE(result.stopped);
  EXPECT_TRUE(result.ended);
  EXPECT_EQ(result.finished, result.read);
  EXPECT_EQ(log.frames, first(result.read));
}

TEST(Runner, FinishRunsOnceAfterTheLastBatchAndItsErrorCounts) {
  Log log;
  size_t seen = 0;
  const auto finish = [&]() -> Result<void> {
    seen = log.frames.size();
    return io_error("disk full");
  };
  const auto result =
      run_pipeline("read", counting_source(9), [](Batch&) {}, {logging_stage("write", log)}, finish, {});
  EXPECT_EQ(seen, 9U);
  ASSERT_FALSE(result.ended);
  EXPECT_EQ(result.ended.error().message(), "disk full");
}

TEST(Runner, AnEmptySourceIsNoError) {
  Log log;
  const auto result = run(counting_source(0), {overtaking_stage(2), logging_stage("write", log)}, {});
  EXPECT_TRUE(result.ended);
  EXPECT_EQ(result.finished, 0);
}

TEST(Runner, BatchesAreRecycled) {
  std::atomic<int> made{0};
  Log log;
  const auto result = run_pipeline("read", counting_source(500), [&](Batch&) { ++made; },
                                   {overtaking_stage(2), logging_stage("write", log)}, {}, {.queue_capacity = 2});
  EXPECT_EQ(result.finished, 500);
  EXPECT_LE(made, 20);
}

}  // namespace
}  // namespace strobe::pipeline
