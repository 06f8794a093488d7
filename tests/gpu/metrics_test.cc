#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <thread>
#include <vector>

#include "base/gpu_words.h"
#include "gpu/collector.h"
#include "gpu/fake.h"
#include "gpu/metric_choice.h"
#include "gpu/metrics_sampler.h"
#include "gpu/timeline/gpu_timeline.h"
#include "record/clock.h"
#include "record/gpu_collection.h"
#include "strobe/record/annotate.h"
#include "trace/spool_import.h"

namespace strobe::gpu {
namespace {

using ::testing::Contains;
using testing::Environment;
using testing::Fake;
using testing::fake_library;
using testing::Folder;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Key;

namespace words = gpu_words;
using std::chrono::microseconds;
using std::chrono::milliseconds;

std::set<std::string> figures_of(const MetricChoice& choice) {
  std::set<std::string> all;
  for (const ChosenMetric& one : choice.metrics()) all.insert(one.figure);
  return all;
}
const std::set<std::string> kAll(std::begin(words::kMetrics), std::end(words::kMetrics));

std::map<std::string, std::string> chosen(const MetricChoice& choice) {
  std::map<std::string, std::string> all;
  for (const ChosenMetric& one : choice.metrics()) all[one.figure] = one.metric;
  return all;
}

// NVIDIA's own library knows the counters of every chip without having one.
class TrueLibrary : public ::testing::Test {
 protected:
  void SetUp() override {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "CUPTI opens its parts in a way (RTLD_DEEPBIND) that sanitizers do not allow";
#elif defined(STROBE_CUPTI_WHEEL_LIBRARY)
    ::setenv("STROBE_CUPTI_LIBRARY", STROBE_CUPTI_WHEEL_LIBRARY, 1);
    auto cupti = CuptiMetrics::load();
    ASSERT_TRUE(cupti) << cupti.error().to_string();
    cupti_.emplace(std::move(*cupti));
#else
    GTEST_SKIP() << "libcupti.so.13 is not here (wheel nvidia-cuda-cupti)";
#endif
  }
  void TearDown() override {
    ::unsetenv("STROBE_CUPTI_LIBRARY");
  }
  std::optional<CuptiMetrics> cupti_;
};

TEST_F(TrueLibrary, HasOnePassOfFiguresForEachChip) {
  const std::set<std::string> no_pipes{words::kFma, words::kFp64, words::kL2ToSm};
  const std::pair<const char*, std::set<std::string>> chips[] = {
      {"GH100", {}},
      {"GB100", {}},
      {"GA102", no_pipes},
      {"GA104", no_pipes},
      {"AD102", no_pipes},
      {"AD104", no_pipes},
      {"GB202", {words::kFma, words::kFp64}},
      {"GA100", {words::kL2Hit, words::kFp64, words::kL2ToSm}},
      {"TU102", {words::kTensor, words::kL2Hit, words::kFp64, words::kL2ToSm}},
      {"GA10B", {words::kDramRead, words::kDramWrite, words::kFma, words::kFp64, words::kL2ToSm}}};
  for (const auto& [chip, missing] : chips) {
    SCOPED_TRACE(chip);
    const auto choice = MetricChoice::make(*cupti_, chip, {});
    ASSERT_TRUE(choice) << choice.error().to_string();
    std::set<std::string> expected;
    std::set_difference(kAll.begin(), kAll.end(), missing.begin(), missing.end(),
                        std::inserter(expected, expected.end()));
    EXPECT_EQ(figures_of(*choice), expected);
    EXPECT_FALSE(choice->configuration().empty());
    EXPECT_EQ(choice->left_out().size(), missing.size());
  }
}

TEST_F(TrueLibrary, CountersOfAHopper) {
  const auto choice = MetricChoice::make(*cupti_, "GH100", {});
  ASSERT_TRUE(choice) << choice.error().to_string();
  const auto names = chosen(*choice);
  EXPECT_EQ(names.at(words::kSmBusy), "TPC.TriageCompute.sm__cycles_active.avg.pct_of_peak_sustained_elapsed");
  EXPECT_EQ(names.at(words::kTensor),
            "TPC.TriageCompute.sm__pipe_tensor_cycles_active_realtime.avg.pct_of_peak_sustained_elapsed");
  EXPECT_EQ(names.at(words::kDramRead), "dram__read_throughput.avg.pct_of_peak_sustained_elapsed");
  EXPECT_EQ(names.at(words::kL2Hit), "LTS.TriageCompute.lts__average_t_sector_hit_rate_realtime.pct");
}

TEST_F(TrueLibrary, AChipThatItDoesNotKnowIsOneLine) {
  const auto choice = MetricChoice::make(*cupti_, "XX100", {});
  ASSERT_FALSE(choice);
  EXPECT_THAT(choice.error().to_string(), HasSubstr("counters of XX100: CUPTI error 46"));
}

TEST(MetricChoice, TakesTheNextNameWhereOneIsNotKnownOrDoesNotFit) {
  const Fake fake;
  const auto cupti = CuptiMetrics::load();
  ASSERT_TRUE(cupti) << cupti.error().to_string();
  {
    const auto choice = MetricChoice::make(*cupti, "GH100", {});
    ASSERT_TRUE(choice);
    EXPECT_EQ(figures_of(*choice), kAll);
    EXPECT_THAT(choice->left_out(), IsEmpty());
  }
  const Environment unknown("FAKE_PM_UNKNOWN", "Triage"), large("FAKE_PM_TWO_PASSES", "hit_rate");
  const auto choice = MetricChoice::make(*cupti, "GA102", {1, 2});
  ASSERT_TRUE(choice);
  EXPECT_EQ(chosen(*choice).at(words::kSmBusy), "sm__cycles_active.avg.pct_of_peak_sustained_elapsed");
  EXPECT_EQ(choice->left_out().at(words::kL2Hit), "does not fit into one pass with the others on GA102");
  EXPECT_EQ(choice->left_out().at(words::kFp64), "not known of GA102");
  const Environment all("FAKE_PM_UNKNOWN", "_");
  const auto none = MetricChoice::make(*cupti, "GA102", {});
  ASSERT_FALSE(none);
  EXPECT_THAT(none.error().to_string(), HasSubstr("no counters of GA102"));
}

std::string refusal() {
  const Folder folder;
  const auto sampler = MetricsSampler::start({.folder = folder.path()});
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()) || sampler);
  return sampler ? "" : sampler.error().to_string();
}

TEST(MetricsSampler, OneLineSaysWhyThereIsNone) {
  {
    const Environment nowhere("STROBE_CUDA_LIBRARY", "/nowhere/libcuda.so.1");
    EXPECT_THAT(refusal(), HasSubstr("no NVIDIA driver"));
  }
  {
    const Fake old("libstrobe_fake_gpu_old.so");
    EXPECT_THAT(refusal(), HasSubstr("this CUPTI cannot sample counters, it lacks cuptiDeviceGetChipName (CUDA 12.6"));
  }
  const Fake fake;
  struct {
    const char *variable, *value, *text;
  } const cases[] = {
      {"FAKE_PM_Enable", "35", "no permission: the driver lets only administrators profile"},
      {"FAKE_PM_GetCounterAvailability", "35", "no permission"},
      {"FAKE_PM_Enable", "26", "another process holds the hardware's counters"},
      {"FAKE_PM_Enable", "39", "another CUPTI client"},
      {"FAKE_PM_Enable", "7", "only one sampler at a time"},
      {"FAKE_PM_Enable", "43", "not supported on a MIG instance"},
      {"FAKE_PM_SetConfig", "27", "not supported on this device"},
      {"FAKE_PM_Start", "40", "the hypervisor must allow profiling"},
      {"FAKE_PM_Initialize", "15", "could not be initialised"},
      {"FAKE_PM_SUPPORTED", "vgpu", "(GH100) cannot be sampled: it is a virtual GPU"},
      {"FAKE_PM_SUPPORTED", "vgpu-off", "the hypervisor of this virtual GPU does not allow profiling"},
      {"FAKE_PM_SUPPORTED", "confidential", "confidential computing is on"},
      {"FAKE_PM_SUPPORTED", "architecture", "its architecture is too old"},
      {"FAKE_PM_CHIP_UNKNOWN", "1", "counters of GH100: CUPTI error 46"},
      {"FAKE_PM_UNKNOWN", "_", "no counters of GH100"},
  };
  for (const auto& one : cases) {
    SCOPED_TRACE(one.variable);
    const Environment forced(one.variable, one.value);
    const std::string line = refusal();
    EXPECT_THAT(line, HasSubstr(one.text));
    EXPECT_EQ(line.find('\n'), std::string::npos);
    if (std::string_view(one.variable) != "FAKE_PM_Start") {
      EXPECT_FALSE(probe_metrics().works);
    }
  }
  // Each gave the counters back.
  EXPECT_EQ(refusal(), "");
  const MetricsProbe probe = probe_metrics();
  EXPECT_TRUE(probe.works);
  EXPECT_THAT(probe.line, HasSubstr("GH100: sm_busy_percent, occupancy_percent, tensor_percent"));
}

struct Sampled {
  trace::Timeline timeline;
  GpuSummary summary;
  std::vector<std::pair<int64_t, double>> curve(std::string_view name) const {
    std::vector<std::pair<int64_t, double>> points;
    for (size_t i = 0; i < timeline.counters.size(); ++i)
      if (timeline.strings[timeline.counters.name[i]] == name)
        points.emplace_back(timeline.counters.time_ns[i], timeline.counters.value[i]);
    return points;
  }
  double fault(const std::string& kind) const {
    const auto found = timeline.losses.faults.find(kind);
    return found == timeline.losses.faults.end() ? 0 : static_cast<double>(found->second);
  }
};

// A recording with kernels and counters; what is done meanwhile is the argument.
template <typename Work>
Sampled sampled(MetricsOptions options, Work work) {
  const Folder folder;
  options.folder = folder.path();
  EXPECT_TRUE(record::start({.folder = folder.path()}));
  record::mark_clock();  // the timeline begins here, also where starting to sample takes long
  EXPECT_TRUE(start_collecting_or_say_why({.folder = folder.path()}));
  {
    const auto sampler = start_metrics_or_say_why(options);
    work();
  }
  stop_collecting();
  EXPECT_TRUE(record::stop());
  auto timeline = trace::import_spool(folder.path());
  EXPECT_TRUE(timeline);
  Sampled result{std::move(*timeline), {}};
  const auto added = add_gpu_logs(result.timeline, folder.path());
  EXPECT_TRUE(added);
  if (added) result.summary = *added;
  return result;
}

constexpr uint64_t kMillisecond = 1'000'000;
constexpr int64_t kPeriod_ns = 500'000;

TEST(MetricsSampler, CountersLieWhereTheKernelsRan) {
  const Fake fake;
  const Sampled all = sampled({.folder = {}, .period = microseconds(500)}, [&] {
    std::this_thread::sleep_for(milliseconds(30));
    fake.kernel("gemm", 0, 20 * kMillisecond);
    fake.kernel("relu", 30 * kMillisecond, 10 * kMillisecond);
    std::this_thread::sleep_for(milliseconds(80));
  });
  const auto& facts = all.timeline.facts;
  EXPECT_THAT(facts.at("gpu.metrics"), HasSubstr("on: CUPTI 130001"));
  EXPECT_EQ(facts.at("gpu.metrics.period_us"), "500");
  EXPECT_EQ(facts.at("gpu.0.chip"), "GH100");
  EXPECT_EQ(facts.at("gpu.0.metric.dram_read_percent"), "dram__read_throughput.avg.pct_of_peak_sustained_elapsed");
  EXPECT_EQ(facts.count("gpu.0.metrics.clock"), 0U);
  EXPECT_EQ(facts.at("gpu.0.name"), "Fake GPU 9000");
  EXPECT_EQ(all.timeline.losses.faults.size(), 0U);
  // One device, that both looked at; one log of a process that used it.
  EXPECT_EQ(facts.count("gpu.1.name"), 0U);
  EXPECT_EQ(all.summary.logs, 1U);

  std::map<std::string, std::pair<int64_t, int64_t>> kernels;
  for (const auto& op : all.timeline.device_ops) {
    const auto row = static_cast<size_t>(op.range);
    kernels[std::string(all.timeline.strings[all.timeline.ranges.name[row]])] = {all.timeline.ranges.start_ns[row],
                                                                                 all.timeline.ranges.end_ns[row]};
  }
  ASSERT_EQ(kernels.size(), 2U);
  const auto covered = [&](int64_t time, const char* name) {
    const auto [start, end] = kernels.at(name);
    const int64_t both = std::min(end, time + kPeriod_ns) - std::max(start, time);
    return static_cast<double>(std::max<int64_t>(0, both)) / static_cast<double>(kPeriod_ns);
  };
  // To the waves of the stand-in; a sample's edge may be off by what clocks are aligned to.
  constexpr double kEdge = 0.2;
  const auto busy = all.curve("gpu.0.sm_busy_percent"), tensor = all.curve("gpu.0.tensor_percent");
  ASSERT_GE(busy.size(), 150U);
  ASSERT_EQ(busy.size(), tensor.size());
  size_t in_gemm = 0;
  for (size_t i = 0; i < busy.size(); ++i) {
    const double gemm = covered(busy[i].first, "gemm"), relu = covered(busy[i].first, "relu");
    EXPECT_NEAR(busy[i].second, 100 * (gemm + relu), 100 * kEdge);
    EXPECT_NEAR(tensor[i].second, 80 * gemm, 80 * kEdge);
    in_gemm += gemm == 1 ? 1 : 0;
  }
  EXPECT_NEAR(static_cast<double>(in_gemm), 39, 1.5);
  // A hit rate is there only where something was looked up; bytes are sectors of 32.
  const auto hits = all.curve("gpu.0.l2_hit_percent");
  EXPECT_NEAR(static_cast<double>(hits.size()), 61, 4);
  EXPECT_THAT(all.curve("gpu.0.l2_to_sm_bytes_per_s"),
              Contains(::testing::Field(&std::pair<int64_t, double>::second, 32e9)));
  // As many as its number says, but for such as the recording had not begun for; one a period.
  EXPECT_NEAR(std::stod(facts.at("gpu.0.metrics.samples")), static_cast<double>(busy.size()), 5);
  for (size_t i = 1; i < busy.size(); ++i)
    EXPECT_NEAR(static_cast<double>(busy[i].first - busy[i - 1].first), static_cast<double>(kPeriod_ns), 2'000);
}

TEST(MetricsSampler, AFullBufferIsCountedAndSamplingGoesOn) {
  const Fake fake;
  const Environment room("FAKE_PM_ROOM", "20");
  const Sampled all = sampled({.folder = {}, .period = microseconds(500), .read_period = milliseconds(30)},
                              [] { std::this_thread::sleep_for(milliseconds(400)); });
  EXPECT_GE(all.fault("full buffer of GPU counters in the hardware"), 3);
  const auto busy = all.curve("gpu.0.sm_busy_percent");
  EXPECT_GT(busy.size(), 60U);
  ASSERT_GT(busy.back().first - busy.front().first, 250'000'000);
  // What came and what is missing is all of the time between the first and the last.
  const double periods = static_cast<double>(busy.back().first - busy.front().first) / static_cast<double>(kPeriod_ns);
  EXPECT_NEAR(all.fault("sample of GPU counters that is missing") + static_cast<double>(busy.size()) - 1, periods,
              0.02 * periods + 2);
}

TEST(MetricsSampler, TheLastLookGoesOnUntilNothingIsLeft) {
  const Fake fake;
  const Environment few("FAKE_PM_A_LOOK", "10");
  const int64_t before = record::monotonic_ns();
  const Sampled all = sampled({.folder = {}, .period = microseconds(500), .read_period = milliseconds(50)},
                              [] { std::this_thread::sleep_for(milliseconds(120)); });
  ASSERT_GT(record::monotonic_ns() - before, 120'000'000);
  EXPECT_GE(all.curve("gpu.0.sm_busy_percent").size(), 200U);
}

TEST(MetricsSampler, ABufferThatGivesNothingAnyMoreIsMadeAnew) {
  const Fake fake;
  const Environment full("FAKE_PM_FULL_AT", "5");
  {
    const Sampled all = sampled({.folder = {}, .period = microseconds(500), .read_period = milliseconds(5)},
                                [] { std::this_thread::sleep_for(milliseconds(200)); });
    EXPECT_EQ(all.fault("full buffer of GPU counters in the hardware"), 1);
    const auto busy = all.curve("gpu.0.sm_busy_percent");
    ASSERT_FALSE(busy.empty());
    EXPECT_GT(busy.back().first - busy.front().first, 100'000'000);
  }
  fake.reset();
  const Environment for_good("FAKE_PM_FULL_FOR_GOOD", "1");
  const Sampled all = sampled({.folder = {}, .period = microseconds(500), .read_period = milliseconds(2)},
                              [] { std::this_thread::sleep_for(milliseconds(200)); });
  EXPECT_THAT(all.timeline.facts.at("gpu.0.metrics.broken"), HasSubstr("stays full"));
  EXPECT_LE(all.fault("full buffer of GPU counters in the hardware"), 10);
}

TEST(MetricsSampler, ADeviceWithAClockOfItsOwnIsPutWhereItBegan) {
  const Fake fake;
  for (const char* ahead : {"7000000000", "-7000000000"}) {
    SCOPED_TRACE(ahead);
    const Environment clock("FAKE_PM_AHEAD_NS", ahead);
    fake.reset();  // what traces GPU work keeps the counters
    const Sampled all = sampled({.folder = {}, .period = microseconds(500)}, [&] {
      std::this_thread::sleep_for(milliseconds(10));
      fake.kernel("gemm", 0, 20 * kMillisecond);
      std::this_thread::sleep_for(milliseconds(60));
    });
    const std::string note = all.timeline.facts.at("gpu.0.metrics.clock");
    EXPECT_THAT(note, HasSubstr("the device's own clock"));
    // As well as the beginning is known, which another program's turn on the core can put off.
    const std::string known = "which is known to ";
    ASSERT_THAT(note, HasSubstr(known));
    const double known_ns = std::stod(note.substr(note.find(known) + known.size())) * 1e3;
    ASSERT_EQ(all.timeline.device_ops.size(), 1U);
    const auto row = static_cast<size_t>(all.timeline.device_ops[0].range);
    int64_t first = 0;
    for (const auto& [time, value] : all.curve("gpu.0.tensor_percent"))
      if (value > 70 && first == 0) first = time;
    EXPECT_NEAR(static_cast<double>(first), static_cast<double>(all.timeline.ranges.start_ns[row]), 3e6 + known_ns);
  }
}

TEST(MetricsSampler, ChipsWithoutATimeTriggerCountCycles) {
  const Fake fake;
  const Environment chip("FAKE_PM_CHIP", "GA100");
  const Sampled all =
      sampled({.folder = {}, .period = microseconds(500)}, [] { std::this_thread::sleep_for(milliseconds(60)); });
  EXPECT_THAT(all.timeline.facts.at("gpu.0.metrics.trigger"), HasSubstr("cycles"));
  EXPECT_GT(all.curve("gpu.0.sm_busy_percent").size(), 80U);
}

TEST(MetricsSampler, WhatCannotBeReadIsCountedAndWhatBreaksIsTold) {
  const Fake fake;
  {
    const Environment broken("FAKE_PM_Evaluate", "999");
    const Sampled all =
        sampled({.folder = {}, .period = microseconds(500)}, [] { std::this_thread::sleep_for(milliseconds(60)); });
    EXPECT_GT(all.fault("sample of GPU counters that could not be read"), 50);
    EXPECT_THAT(all.curve("gpu.0.sm_busy_percent"), IsEmpty());
  }
  fake.reset();
  const Environment broken("FAKE_PM_DecodeData", "9");
  const Sampled all = sampled({.folder = {}, .period = microseconds(500), .read_period = milliseconds(2)}, [&fake] {
    const int64_t deadline = record::monotonic_ns() + 60'000'000'000;
    while (fake.metrics_looks() < 10 && record::monotonic_ns() < deadline) std::this_thread::sleep_for(milliseconds(1));
  });
  EXPECT_GE(fake.metrics_looks(), 10U);
  EXPECT_THAT(all.timeline.facts.at("gpu.0.metrics.broken"), HasSubstr("CUPTI error 9"));
}

TEST(MetricsSampler, OneOfSeveralDevicesMayRefuse) {
  const Fake fake;
  const Environment two("FAKE_CUDA_DEVICES", "2");
  // The stand-in has one sampler, which the first device takes.
  const Sampled all =
      sampled({.folder = {}, .period = microseconds(500)}, [] { std::this_thread::sleep_for(milliseconds(30)); });
  EXPECT_THAT(all.timeline.facts.at("gpu.1.metrics"), HasSubstr("off: the counters are being sampled already"));
  EXPECT_THAT(all.timeline.facts.at("gpu.metrics"), HasSubstr("on: "));
  EXPECT_FALSE(all.curve("gpu.0.sm_busy_percent").empty());
  EXPECT_TRUE(all.curve("gpu.1.sm_busy_percent").empty());
}

TEST(MetricsSampler, ADriverThatHangsDoesNotHoldTheRunUp) {
  const Fake fake;
  const Environment hangs("FAKE_PM_HANGS", "1");
  const int64_t before = record::monotonic_ns();
  const Sampled all =
      sampled({.folder = {}, .stop_timeout = milliseconds(50)}, [] { std::this_thread::sleep_for(milliseconds(40)); });
  EXPECT_LT(record::monotonic_ns() - before, 4'000'000'000);
  EXPECT_THAT(all.timeline.facts.at("gpu.metrics.hangs"), HasSubstr("did not answer"));
  EXPECT_THAT(all.timeline.facts, Contains(Key("gpu.metrics")));
}

TEST(MetricsSampler, WhereItDoesNotWorkTheRecordingSaysWhy) {
  const Fake fake;
  const Environment forbidden("FAKE_PM_Enable", "35");
  const Sampled all = sampled({.folder = {}}, [] {});
  EXPECT_THAT(all.timeline.facts.at("gpu.metrics"), HasSubstr("off: CUPTI error 35: no permission"));
}

}  // namespace
}  // namespace strobe::gpu
