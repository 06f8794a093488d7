// One stage by itself: what it is given, what it reports, how it ends.
#include "pipeline/stage_alone.h"

#include <gmock/gmock.h>

#include <atomic>
#include <mutex>
#include <set>

#include "strobe/record/annotate.h"
#include "support/test_data.h"
#include "trace/spool_import.h"

namespace strobe::pipeline {
namespace {

std::vector<BatchPtr> batches(size_t count, size_t frames_each = 1) {
  std::vector<BatchPtr> all;
  for (size_t b = 0; b < count; ++b) {
    auto batch = std::make_unique<Batch>();
    batch->frames.resize(frames_each);
    for (size_t i = 0; i < frames_each; ++i) batch->frames[i].frame.index = static_cast<int64_t>(b * frames_each + i);
    all.push_back(std::move(batch));
  }
  return all;
}

// Arguments of the only range "alone" that the call records.
std::map<std::string, int64_t> recorded_numbers(const std::function<void()>& call, std::string& stage) {
  const test::ScratchFolder folder;
  EXPECT_TRUE(record::start({.folder = folder / "spool", .process_name = "test"}));
  call();
  EXPECT_TRUE(record::stop());
  auto timeline = trace::import_spool(folder / "spool");
  EXPECT_TRUE(timeline) << timeline.error().to_string();
  std::map<std::string, int64_t> numbers;
  for (size_t i = 0; i < timeline->arguments.size(); ++i) {
    const std::string key(timeline->strings[timeline->arguments.key[i]]);
    if (const auto* number = std::get_if<int64_t>(&timeline->arguments.value[i])) numbers[key] = *number;
    if (const auto* text = std::get_if<trace::StringId>(&timeline->arguments.value[i]))
      stage = timeline->strings[*text];
  }
  return numbers;
}

TEST(StageAlone, EveryWorkerSeesItsSamplesAtLeastOnceHoweverLittleTimeThereIs) {
  auto samples = batches(7, 2);
  std::mutex mutex;
  std::multiset<int64_t> seen;
  std::set<int> workers;
  const Stage stage{.name = "infer", .workers = 3, .work = [&](Batch& batch, size_t i, int worker) -> Result<void> {
                      const std::lock_guard lock(mutex);
                      seen.insert(batch.frames[i].frame.index);
                      workers.insert(worker);
                      return {};
                    }};
  ASSERT_TRUE(run_stage_alone(stage, samples, 0, nullptr));
  for (int64_t frame = 0; frame < 14; ++frame) EXPECT_EQ(seen.count(frame), 1U) << frame;
  EXPECT_THAT(workers, testing::ElementsAre(0, 1, 2));
}

TEST(StageAlone, RecordsStageFramesAndCpuTime) {
  auto samples = batches(2, 4);
  std::atomic<int64_t> frames{0};
  const Stage stage{.name = "post", .per_batch = true, .work = [&](Batch& batch, size_t, int) -> Result<void> {
                      volatile double sink = 0;
                      for (int i = 0; i < 100'000; ++i) sink = sink + i;
                      frames += static_cast<int64_t>(batch.frames.size());
                      return {};
                    }};
  std::string name;
  const auto numbers = recorded_numbers([&] { EXPECT_TRUE(run_stage_alone(stage, samples, 0.02, nullptr)); }, name);
  EXPECT_EQ(name, "post");
  EXPECT_EQ(numbers.at("frames"), frames.load());
  EXPECT_GT(numbers.at("cpu_ns"), 0);
}

TEST(StageAlone, StartRunsOnEveryWorkerBeforeTheWork) {
  auto samples = batches(2);
  std::atomic<int> started{0}, too_early{0};
  const Stage stage{.name = "infer",
                    .workers = 2,
                    .start = [&](int) -> Result<void> {
                      ++started;
                      return {};
                    },
                    .work = [&](Batch&, size_t, int) -> Result<void> {
                      if (started != 2) ++too_early;
                      return {};
                    }};
  ASSERT_TRUE(run_stage_alone(stage, samples, 0, nullptr));
  EXPECT_EQ(started, 2);
  EXPECT_EQ(too_early, 0);
}

TEST(StageAlone, ErrorsOfTheStageAndOfItsStartComeBack) {
  auto samples = batches(4);
  const Stage failing{.name = "draw", .work = [](Batch& batch, size_t, int) -> Result<void> {
                        if (batch.frames[0].frame.index == 2) return engine_error("the third one is bad");
                        return {};
                      }};
  auto done = run_stage_alone(failing, samples, 60, nullptr);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().to_string(), "the third one is bad");

  const Stage unstartable{.name = "draw",
                          .workers = 2,
                          .start = [](int worker) -> Result<void> {
                            if (worker == 1) return engine_error("no start");
                            return {};
                          },
                          .work = [](Batch&, size_t, int) -> Result<void> { return {}; }};
  done = run_stage_alone(unstartable, samples, 0, nullptr);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().to_string(), "no start");
}

TEST(StageAlone, StopEndsIt) {
  auto samples = batches(2);
  std::atomic<bool> stop{false};
  int calls = 0;
  const Stage stage{.name = "write", .work = [&](Batch&, size_t, int) -> Result<void> {
                      if (++calls == 5) stop = true;
                      return {};
                    }};
  ASSERT_TRUE(run_stage_alone(stage, samples, 3600, &stop));
  EXPECT_EQ(calls, 5);
}

TEST(StageAlone, FewerSamplesThanWorkersIsAFaultOfTheCaller) {
  auto samples = batches(1);
  const Stage stage{.name = "infer", .workers = 2, .work = [](Batch&, size_t, int) -> Result<void> { return {}; }};
  EXPECT_FALSE(run_stage_alone(stage, samples, 0, nullptr));
}

TEST(ReadAlone, CountsFramesUntilTheSourceEnds) {
  int64_t left = 9;
  const ReadFrame read = [&]() -> Result<std::optional<media::Frame>> {
    if (left-- == 0) return std::optional<media::Frame>();
    return std::optional(media::Frame());
  };
  std::string name;
  const auto numbers = recorded_numbers([&] { EXPECT_TRUE(run_read_alone("read", read, 3600, nullptr)); }, name);
  EXPECT_EQ(name, "read");
  EXPECT_EQ(numbers.at("frames"), 9);
}

TEST(ReadAlone, ASourceThatBreaksOffIsAnError) {
  const ReadFrame read = []() -> Result<std::optional<media::Frame>> { return bad_data("cut off"); };
  EXPECT_FALSE(run_read_alone("read", read, 3600, nullptr));
}

}  // namespace
}  // namespace strobe::pipeline
