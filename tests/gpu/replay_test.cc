#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <optional>
#include <thread>

#include "base/gpu_words.h"
#include "gpu/cupti_replay.h"
#include "gpu/fake.h"
#include "gpu/log_file.h"
#include "gpu/replay_choice.h"
#include "gpu/replay_profiler.h"
#include "gpu/timeline/gpu_timeline.h"

namespace strobe::gpu {
namespace {

namespace words = gpu_words;
using ::testing::Contains;
using testing::Environment;
using testing::Fake;
using testing::Folder;
using ::testing::HasSubstr;

std::vector<std::string> all_figures() {
  return *parse_replay_figures("all");
}

TEST(ReplayFigures, AreNamedOrAllOfThem) {
  EXPECT_EQ(parse_replay_figures("")->size(), replay_figures().size());
  EXPECT_EQ(*parse_replay_figures("dram_percent,time_ns,dram_percent"),
            (std::vector<std::string>{"dram_percent", "time_ns"}));
  for (const char* wrong : {"speed", "time_ns,", ","})
    EXPECT_THAT(parse_replay_figures(wrong).error().to_string(), HasSubstr("expected all or some of time_ns, sm_busy"));
}

// NVIDIA's own library knows the counters of every chip without having one.
TEST(ReplayTrueLibrary, HasEveryFigureOfEachChipInAFewPasses) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "CUPTI opens its parts in a way (RTLD_DEEPBIND) that sanitizers do not allow";
#elif defined(STROBE_CUPTI_WHEEL_LIBRARY)
  const Environment library("STROBE_CUPTI_LIBRARY", STROBE_CUPTI_WHEEL_LIBRARY);
  const auto cupti = CuptiReplay::load();
  ASSERT_TRUE(cupti) << cupti.error().to_string();
  for (const char* chip : {"GH100", "GB100", "GB202", "AD102", "GA102", "GA100", "TU102", "GA10B"}) {
    SCOPED_TRACE(chip);
    const auto choice = ReplayChoice::make(cupti->metrics, chip, {}, all_figures());
    ASSERT_TRUE(choice) << choice.error().to_string();
    // A Jetson's chip has no memory of its own.
    const size_t missing = std::string(chip) == "GA10B" ? 1 : 0;
    EXPECT_EQ(choice->left_out().size(), missing);
    EXPECT_EQ(choice->metrics().size() + missing, replay_figures().size());
    EXPECT_GT(choice->passes(), 1U);
    EXPECT_LT(choice->passes(), 10U);
    RecordProperty(chip, static_cast<int>(choice->passes()));
    const auto one = ReplayChoice::make(cupti->metrics, chip, {}, {"time_ns", "sm_busy_percent"});
    ASSERT_TRUE(one);
    EXPECT_EQ(one->passes(), 1U);
  }
  const auto unknown = ReplayChoice::make(cupti->metrics, "XX100", {}, all_figures());
  EXPECT_THAT(unknown.error().to_string(), HasSubstr("counters of XX100: CUPTI error 46"));
#else
  GTEST_SKIP() << "libcupti.so.13 is not here (wheel nvidia-cuda-cupti)";
#endif
}

// What a replay of what `work` does comes to.
template <typename Work>
trace::Timeline replayed(const Folder& folder, Work work, std::vector<std::string> figures = all_figures()) {
  start_replay_or_say_why({.folder = folder.path(), .figures = std::move(figures)});
  work();
  stop_replay();
  trace::Timeline timeline;
  const auto added = add_gpu_logs(timeline, folder.path());
  EXPECT_TRUE(added) << (added ? "" : added.error().to_string());
  return timeline;
}
std::string fact(const trace::Timeline& timeline, const std::string& key) {
  const auto found = timeline.facts.find(key + "." + std::to_string(::getpid()));
  return found == timeline.facts.end() ? "" : found->second;
}

TEST(Replay, EachKernelHasItsCountersInTheOrderOfLaunches) {
  const Fake fake;
  const Folder folder;
  const trace::Timeline timeline = replayed(folder, [&] {
    fake.context(1);
    // More than an image holds.
    for (int i = 0; i < 600; ++i) fake.kernel(i % 3 == 0 ? "_Z4gemmPf" : "relu", 0, i % 3 == 0 ? 5'000 : 1'000);
    fake.context(0);
  });
  EXPECT_TRUE(timeline.losses.faults.empty()) << timeline.losses.faults.begin()->first;
  EXPECT_THAT(fact(timeline, "gpu.replay"), HasSubstr("on: each kernel alone, 1 pass"));
  EXPECT_EQ(timeline.device_ops.size(), 0U);  // no times that could be taken for the program's
  ASSERT_EQ(timeline.tables.size(), 1U);
  const Table& table = timeline.tables[0];
  EXPECT_EQ(table.title(), words::kReplayTitle);
  ASSERT_EQ(table.row_count(), 600U);
  for (size_t i = 0; i < 600; ++i) {
    const bool gemm = i % 3 == 0;
    EXPECT_EQ(table.text(i, "kernel"), gemm ? "gemm(float*)" : "relu");
    EXPECT_EQ(table.text(i, "grid"), "80,1,1");
    EXPECT_EQ(table.text(i, "block"), "256,1,1");
    EXPECT_EQ(*table.number(i, "launch"), static_cast<double>(i + 1));
    EXPECT_EQ(*table.number(i, "time_ns"), gemm ? 5'000 : 1'000);
    EXPECT_EQ(*table.number(i, "sm_busy_percent"), gemm ? 80 : 20);
    EXPECT_EQ(*table.number(i, "tensor_percent"), gemm ? 80 : 0);
    EXPECT_EQ(table.number(i, "l2_hit_percent").has_value(), gemm);
    EXPECT_EQ(*table.number(i, "global_load_requests"), 1000 + static_cast<double>(gemm ? i / 3 : i - i / 3 - 1));
  }
  EXPECT_THAT(table.notes, Contains(HasSubstr("each kernel ran 1 time alone")));
}

TEST(Replay, ALaunchThatAGraphCapturesIsNoneOfTheKernels) {
  const Fake fake;
  const Folder folder;
  const trace::Timeline timeline = replayed(folder, [&] {
    fake.context(1);
    FakeLaunch captured{};
    captured.kernel = "captured";
    fake.graph_capture(nullptr, &captured);
    fake.kernel("gemm", 0, 5'000);
  });
  ASSERT_EQ(timeline.tables.size(), 1U);
  ASSERT_EQ(timeline.tables[0].row_count(), 1U);
  EXPECT_EQ(timeline.tables[0].text(0, "kernel"), "gemm");
}

TEST(Replay, WhatCannotBeMatchedHasNoName) {
  const Fake fake;
  const Folder folder;
  const Environment lose("FAKE_RP_LOSE", "5");
  const trace::Timeline timeline = replayed(folder, [&] {
    fake.context(1);
    for (int i = 0; i < 10; ++i) fake.kernel("gemm", 0, 5'000);
  });
  ASSERT_EQ(timeline.tables.size(), 1U);
  ASSERT_EQ(timeline.tables[0].row_count(), 8U);
  EXPECT_EQ(timeline.tables[0].text(0, "kernel"), "");
  EXPECT_EQ(timeline.losses.faults.at("kernel whose counters could not be matched with its launch"), 10U);
}

TEST(Replay, LaunchesThatOverlapHaveNoNames) {
  const Fake fake;
  const Folder folder;
  const trace::Timeline timeline = replayed(folder, [&] {
    fake.context(1);
    fake.kernel("gemm", 0, 1'000);
    fake.launch_begins("relu");
    std::thread([&] { fake.kernel("gemm", 0, 2'000); }).join();
    fake.launch_ends("relu", 3'000);
    fake.kernel("gemm", 0, 4'000);
  });
  EXPECT_TRUE(timeline.losses.faults.empty());
  ASSERT_EQ(timeline.tables.size(), 1U);
  const Table& table = timeline.tables[0];
  ASSERT_EQ(table.row_count(), 4U);
  const char* const names[] = {"gemm", "", "", "gemm"};
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(table.text(i, "kernel"), names[i]);
    EXPECT_EQ(*table.number(i, "time_ns"), 1'000 * static_cast<double>(i + 1));
  }
  EXPECT_THAT(table.notes, Contains(HasSubstr("2 kernels have no name")));
  EXPECT_EQ(fact(timeline, "gpu.replay.overlapping_launches"), "2");
}

TEST(Replay, ALaunchThatMakesItsContextIsOneOfTheKernels) {
  const Fake fake;
  const Folder folder;
  const trace::Timeline timeline = replayed(folder, [&] {
    fake.launch_begins("relu");
    fake.context(1);
    fake.launch_ends("relu", 3'000);
  });
  ASSERT_EQ(timeline.tables.size(), 1U);
  ASSERT_EQ(timeline.tables[0].row_count(), 1U);
  EXPECT_EQ(timeline.tables[0].text(0, "kernel"), "relu");
}

TEST(Replay, ARefusalIsOneLine) {
  const Fake fake;
  const std::pair<const char*, const char*> cases[] = {{"FAKE_RP_Enable", "CUPTI error 35: no permission"},
                                                       {"FAKE_RP_GetCounterAvailability", "CUPTI error 35"},
                                                       {"FAKE_RP_SetConfig", "CUPTI error 35"},
                                                       {"FAKE_CUPTI_SUBSCRIBE", "CUPTI error 35"}};
  for (const auto& [variable, why] : cases) {
    SCOPED_TRACE(variable);
    fake.reset();
    const Folder folder;
    const Environment refused(variable, "35");
    const trace::Timeline timeline = replayed(folder, [&] {
      fake.context(1);
      fake.kernel("gemm", 0, 5'000);
    });
    EXPECT_TRUE(timeline.tables.empty());
    EXPECT_THAT(fact(timeline, "gpu.replay"), ::testing::StartsWith("off: "));
    EXPECT_THAT(fact(timeline, "gpu.replay"), HasSubstr(why));
  }
}

TEST(Replay, AnOldLibraryIsOneLine) {
  const Fake fake("libstrobe_fake_gpu_old.so");
  const Folder folder;
  const trace::Timeline timeline = replayed(folder, [] {});
  EXPECT_THAT(fact(timeline, "gpu.replay"), HasSubstr("CUDA 12.6 or newer"));
}

TEST(Replay, WhatBreaksOnTheWayIsTold) {
  const Fake fake;
  const Folder folder;
  const Environment broken("FAKE_RP_DecodeData", "9");
  const trace::Timeline timeline = replayed(folder, [&] {
    fake.context(1);
    for (int i = 0; i < 300; ++i) fake.kernel("gemm", 0, 5'000);
  });
  EXPECT_TRUE(timeline.tables.empty());
  EXPECT_THAT(fact(timeline, "gpu.replay.broken"), HasSubstr("CUPTI error 9"));
  EXPECT_EQ(timeline.losses.faults.at("kernel whose counters could not be read"), 300U);
}

}  // namespace
}  // namespace strobe::gpu
