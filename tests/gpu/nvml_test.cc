#include "gpu/nvml.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <thread>
#include <vector>

#include "base/gpu_words.h"
#include "gpu/fake.h"
#include "gpu/nvml_reader.h"
#include "gpu/sampler.h"
#include "gpu/timeline/gpu_timeline.h"
#include "record/clock.h"
#include "strobe/record/annotate.h"
#include "trace/spool_import.h"

namespace strobe::gpu {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using testing::Environment;
using testing::fake_library;
using testing::Folder;
using ::testing::HasSubstr;

namespace words = gpu_words;

class NvmlTest : public ::testing::Test {
 protected:
  Environment library_{"STROBE_NVML_LIBRARY", fake_library("libstrobe_fake_nvml.so")};
};

std::string refusal() {
  const auto nvml = Nvml::open();
  return nvml ? "" : nvml.error().to_string();
}
std::vector<unsigned> indices(const Result<Nvml::Devices>& devices) {
  std::vector<unsigned> all;
  if (devices)
    for (const NvmlDevice& one : devices->list) all.push_back(one.index);
  return all;
}

TEST(Nvml, OneLineSaysWhyThereIsNone) {
  {
    const Environment nowhere("STROBE_NVML_LIBRARY", "/nowhere/libnvidia-ml.so.1");
    EXPECT_THAT(refusal(), HasSubstr("/nowhere/libnvidia-ml.so.1"));
  }
  {
    const Environment other("STROBE_NVML_LIBRARY", fake_library());
    EXPECT_THAT(refusal(), HasSubstr("is no NVML that can be used"));
  }
  const Environment library("STROBE_NVML_LIBRARY", fake_library("libstrobe_fake_nvml.so"));
  const std::pair<const char*, const char*> cases[] = {{"18", "of different versions"},
                                                       {"9", "kernel module is not loaded"},
                                                       {"4", "no permission"},
                                                       {"12345", "NVML error 12345"}};
  for (const auto& [code, text] : cases) {
    const Environment forced("FAKE_NVML_nvmlInit_v2", code);
    EXPECT_THAT(refusal(), HasSubstr(text));
    EXPECT_EQ(refusal().find('\n'), std::string::npos);
  }
  const Environment none("FAKE_NVML_DEVICES", "0");
  const auto nvml = Nvml::open();
  ASSERT_TRUE(nvml);
  EXPECT_FALSE(nvml->visible_devices());
}

TEST_F(NvmlTest, DevicesAreThoseThatTheEnvironmentLeaves) {
  const Environment three("FAKE_NVML_DEVICES", "3");
  const auto nvml = Nvml::open();
  ASSERT_TRUE(nvml) << nvml.error().to_string();
  EXPECT_EQ(nvml->driver_version(), "580.00");
  EXPECT_THAT(indices(nvml->devices(nullptr, nullptr)), ElementsAre(0, 1, 2));
  EXPECT_THAT(indices(nvml->devices("2,0", nullptr)), ElementsAre(2, 0));
  EXPECT_THAT(indices(nvml->devices("1, 7, 0", nullptr)), ElementsAre(1));  // CUDA stops at what is not there
  EXPECT_THAT(indices(nvml->devices("GPU-ab02", nullptr)), ElementsAre(2));
  for (const char* nothing : {"", "-1", "NoDevFiles"}) {
    const auto devices = nvml->devices(nothing, nullptr);
    ASSERT_FALSE(devices) << nothing;
    EXPECT_THAT(devices.error().to_string(), HasSubstr("none of 3 devices"));
  }
  // Numbers mean CUDA's order, which is that of the bus only where it says so or devices are alike.
  const Environment different("FAKE_NVML_DIFFERENT", "1");
  EXPECT_THAT(indices(nvml->devices("1", "PCI_BUS_ID")), ElementsAre(1));
  const auto all = nvml->devices("1", nullptr);
  EXPECT_THAT(indices(all), ElementsAre(0, 1, 2));
  EXPECT_THAT(all->notes, Contains(HasSubstr("CUDA_DEVICE_ORDER")));
  // One that has fallen off the bus does not hide the others.
  const Environment dead("FAKE_NVML_DEAD_DEVICE", "1");
  const auto alive = nvml->devices(nullptr, nullptr);
  EXPECT_THAT(indices(alive), ElementsAre(0, 2));
  EXPECT_THAT(alive->notes, Contains(HasSubstr("GPU 1 does not answer: NVML error 15")));
}

TEST_F(NvmlTest, UniqueIdsAreTheBytesThatCuptiGives) {
  NvmlDevice device;
  device.index = 3;
  device.uuid = "GPU-ab000000-0000-0000-0000-0000000000cd";
  const auto bytes = device.uuid_bytes();
  EXPECT_EQ(reinterpret_cast<const uint8_t*>(bytes.data())[0], 0xAB);
  EXPECT_EQ(reinterpret_cast<const uint8_t*>(bytes.data())[15], 0xCD);
  device.uuid = "GPU-1234";
  const auto made_up = device.uuid_bytes();
  EXPECT_EQ(made_up[1], 3U);
}

// The values of the last look, those of processes as "name@pid".
struct Look {
  std::map<std::string, double> values;
  std::vector<int64_t> use_times;
  bool there = false;
};
Look look(NvmlReader& reader) {
  Look seen;
  seen.there = reader.read([&seen](int64_t time_ns, const char* name, double value, uint32_t pid) {
    seen.values[name + (pid == 0 ? std::string() : "@" + std::to_string(pid))] = value;
    if (std::string_view(name) == words::kBusy) seen.use_times.push_back(time_ns);
  });
  return seen;
}

class ReaderTest : public NvmlTest {
 protected:
  ReaderTest() : processes_("/proc") {
    auto nvml = Nvml::open();
    if (!nvml) std::abort();
    nvml_.emplace(std::move(*nvml));
    device_ = nvml_->devices(nullptr, nullptr)->list[0];
  }
  NvmlReader reader() { return {*nvml_, device_, processes_}; }
  std::optional<Nvml> nvml_;
  NvmlDevice device_;
  ProcessNumbers processes_;
};

TEST_F(ReaderTest, EveryFigureIsRead) {
  const int32_t self = ::getpid();
  const Environment pids("FAKE_NVML_PIDS", std::to_string(self));
  NvmlReader one = reader();
  std::this_thread::sleep_for(std::chrono::milliseconds(130));
  const int64_t before = record::monotonic_ns();
  const Look seen = look(one);
  EXPECT_TRUE(seen.there);
  const auto value = [&seen](const std::string& name) {
    const auto found = seen.values.find(name);
    return found == seen.values.end() ? -1 : found->second;
  };
  EXPECT_EQ(value(words::kPower), 250);
  EXPECT_STREQ(one.power_source(), "instant");
  EXPECT_EQ(value(words::kEnergy), 0);
  EXPECT_EQ(value(words::kSmClock), 1755);
  EXPECT_EQ(value(words::kMemoryClock), 2619);
  EXPECT_EQ(value(words::kClockReasons), 4);
  EXPECT_EQ(value(words::kTemperature), 61);
  EXPECT_EQ(value(words::kMemoryUsed), static_cast<double>(uint64_t{5} << 30));
  EXPECT_EQ(one.memory_bytes(), uint64_t{80} << 30);
  EXPECT_EQ(value(words::kEncoder), 0);
  EXPECT_EQ(value(words::kDecoder), 12);
  // The ring's finer curve: a value each 20 ms since the reader was made, at their own times.
  EXPECT_EQ(value(words::kBusy), 80);
  EXPECT_EQ(value(words::kMemoryBusy), 40);
  ASSERT_GE(seen.use_times.size(), 5U);
  EXPECT_LE(seen.use_times.size(), 12U);
  for (size_t i = 1; i < seen.use_times.size(); ++i)
    EXPECT_NEAR(static_cast<double>(seen.use_times[i] - seen.use_times[i - 1]), 20e6, 1.0);
  EXPECT_LE(seen.use_times.back(), before + 20'000'000);
  EXPECT_GT(seen.use_times.front(), before - 400'000'000);
  EXPECT_TRUE(one.not_measured().empty());
  EXPECT_EQ(one.failed(), 0U);
  // What was given once is not given again.
  EXPECT_LE(look(one).use_times.size(), 1U);
}

TEST_F(ReaderTest, ASingleFigureThatIsNotSupportedIsLeftOut) {
  const Environment heat("FAKE_NVML_nvmlDeviceGetTemperature", "3"), instant("FAKE_NVML_field_186", "3"),
      use("FAKE_NVML_nvmlDeviceGetSamples", "3"), newer("FAKE_NVML_nvmlDeviceGetMemoryInfo_v2", "3"),
      processes("FAKE_NVML_nvmlDeviceGetComputeRunningProcesses_v3", "4");
  NvmlReader one = reader();
  const Look seen = look(one);
  EXPECT_TRUE(seen.there);
  EXPECT_EQ(seen.values.count(words::kTemperature), 0U);
  EXPECT_EQ(seen.values.at(words::kPower), 240);  // NVML's own mean
  EXPECT_STREQ(one.power_source(), "average");
  EXPECT_EQ(seen.values.at(words::kBusy), 75);  // of the last period
  EXPECT_EQ(seen.values.at(words::kMemoryBusy), 30);
  EXPECT_EQ(seen.values.at(words::kMemoryUsed), static_cast<double>(uint64_t{6} << 30));
  EXPECT_THAT(one.not_measured().at(words::kTemperature), HasSubstr("not supported"));
  EXPECT_THAT(one.not_measured().at(words::kProcessMemory), HasSubstr("no permission"));
  EXPECT_EQ(one.failed(), 0U);
}

TEST_F(ReaderTest, AReadingThatFailsOnceIsAskedForAgain) {
  NvmlReader one = reader();
  {
    const Environment failing("FAKE_NVML_nvmlDeviceGetTemperature", "999");
    EXPECT_EQ(look(one).values.count(words::kTemperature), 0U);
  }
  EXPECT_EQ(one.failed(), 1U);
  EXPECT_EQ(look(one).values.at(words::kTemperature), 61);
}

TEST_F(ReaderTest, AnOldLibraryGivesWhatItHas) {
  const Environment old("STROBE_NVML_LIBRARY", fake_library("libstrobe_fake_nvml_old.so"));
  const auto nvml = Nvml::open();
  ASSERT_TRUE(nvml);
  EXPECT_EQ(nvml->driver_version(), "?");
  const auto devices = nvml->devices(nullptr, nullptr);
  ASSERT_TRUE(devices);
  NvmlReader one(*nvml, devices->list[0], processes_);
  const Look seen = look(one);
  EXPECT_THAT(seen.values, ElementsAre(std::pair<const std::string, double>(words::kPower, 240)));
  EXPECT_THAT(one.not_measured().at(words::kEnergy), HasSubstr("does not have the function"));
  EXPECT_THAT(one.not_measured().at(words::kProcessSm), HasSubstr("does not have the function"));
  EXPECT_TRUE(seen.there);
}

TEST_F(ReaderTest, GpmTellsWhatHappenedBetweenTwoSamples) {
  NvmlReader one = reader();
  EXPECT_EQ(look(one).values.count(words::kGpmSmBusy), 0U) << "the first one has none before it";
  EXPECT_EQ(look(one).values.count(words::kGpmSmBusy), 0U) << "too soon for its counters";
  std::this_thread::sleep_for(std::chrono::milliseconds(120));
  const Look seen = look(one);
  // The stand-in gives each figure's number and 10.
  const std::pair<const char*, double> expected[] = {
      {words::kGpmSmBusy, 12},         {words::kGpmOccupancy, 13},
      {words::kGpmTensor, 15},         {words::kGpmDram, 20},
      {words::kGpmFp64, 21},           {words::kGpmFp32, 22},
      {words::kGpmFp16, 23},           {words::kGpmInteger, 14},
      {words::kPcieSent, 30 * 0x1p20}, {words::kPcieReceived, 31 * 0x1p20}};
  for (const auto& [name, value] : expected) EXPECT_EQ(seen.values.at(name), value) << name;
  EXPECT_TRUE(one.not_measured().empty());
  EXPECT_EQ(one.failed(), 0U);
}

TEST_F(ReaderTest, GpmIsOffWhereADeviceHasNone) {
  {
    const Environment without("FAKE_NVML_GPM", "0");
    NvmlReader one = reader();
    EXPECT_TRUE(look(one).there);
    EXPECT_THAT(one.not_measured().at("gpm"), HasSubstr("not supported"));
  }
  const Environment lacking("FAKE_NVML_gpm_fp64", "3");  // one figure of them
  NvmlReader one = reader();
  look(one);
  std::this_thread::sleep_for(std::chrono::milliseconds(120));
  const Look seen = look(one);
  EXPECT_EQ(seen.values.count(words::kGpmFp64), 0U);
  EXPECT_EQ(seen.values.at(words::kGpmFp32), 22);
  EXPECT_EQ(one.not_measured().count(words::kGpmFp64), 1U);
}

TEST_F(ReaderTest, ListsThatGrowWhileTheyAreReadAreReadAgain) {
  std::string many;
  for (int pid = 1; pid <= 300; ++pid) many += std::to_string(pid) + ",";
  const Environment pids("FAKE_NVML_PIDS", many + "301"), grows("FAKE_NVML_GROWS", "3");
  // In a pid namespace of its own, only the sum is sure.
  NvmlReader one = reader();
  const Look seen = look(one);
  double sum = seen.values.count(words::kUnmatchedMemory) != 0 ? seen.values.at(words::kUnmatchedMemory) : 0;
  for (const auto& [name, value] : seen.values)
    if (name.starts_with(std::string(words::kProcessMemory) + "@")) sum += value;
  EXPECT_EQ(sum, 301.0 * static_cast<double>(uint64_t{3} << 30));
  EXPECT_EQ(one.failed(), 0U);
  const Environment endless("FAKE_NVML_GROWS", "1000000");
  EXPECT_TRUE(look(one).there);  // given up, and said
  EXPECT_GT(one.failed(), 0U);
}

TEST_F(ReaderTest, ProcessesOfAnotherNamespaceAreMatchedByTheDeviceThatTheyHold) {
  namespace fs = std::filesystem;
  const Folder proc;
  fs::create_directories(proc / "self/ns");
  std::ofstream(proc / "self/ns/pid") << "";  // another number than the machine's first namespace has
  for (const char* pid : {"11", "12"}) fs::create_directories(proc / (std::string(pid) + "/fd"));
  fs::create_symlink("/dev/nvidia0", proc / "11/fd/5");
  fs::create_symlink("/dev/null", proc / "12/fd/5");
  ProcessNumbers numbers(proc.path());
  EXPECT_FALSE(numbers.are_ours());
  const Environment pids("FAKE_NVML_PIDS", "11,12,13");
  NvmlReader one(*nvml_, device_, numbers);
  const Look seen = look(one);
  const auto gib = static_cast<double>(uint64_t{1} << 30);
  EXPECT_EQ(seen.values.at("process_memory_bytes@11"), 3 * gib);
  EXPECT_EQ(seen.values.at("process_sm_percent@11"), 60);
  EXPECT_EQ(seen.values.at(words::kUnmatchedMemory), 6 * gib);
  EXPECT_EQ(seen.values.at(words::kUnmatchedSm), 120);
  EXPECT_EQ(seen.values.count("process_memory_bytes@12"), 0U);
  EXPECT_EQ(seen.values.count("process_memory_bytes@13"), 0U);
}

TEST_F(NvmlTest, TheClocksReasonsInWords) {
  EXPECT_EQ(words::clock_reasons_text(0), "");
  EXPECT_EQ(words::clock_reasons_text(0x4 | 0x40), "power cap, thermal slowdown by hardware");
  EXPECT_EQ(words::clock_reasons_text(0x1 | (uint64_t{1} << 40)), "idle, others");
  EXPECT_EQ(words::parse_counter("gpu.12.power_w"), std::pair(12, std::string_view("power_w")));
  for (const char* none : {"gpu.pinned_bytes", "gpu.1", "gpu.-1.power_w", "os.cpu_ms", "gpu..power_w"})
    EXPECT_FALSE(words::parse_counter(none)) << none;
}

// What a sampler left, as a timeline.
trace::Timeline sampled(const Folder& folder, std::chrono::milliseconds time, GpuSummary* summary = nullptr) {
  EXPECT_TRUE(record::start({.folder = folder.path()}));
  {
    const auto sampler = start_sampling_or_say_why({.folder = folder.path(), .period = std::chrono::milliseconds(10)});
    std::this_thread::sleep_for(time);
  }
  EXPECT_TRUE(record::stop());
  auto timeline = trace::import_spool(folder.path());
  EXPECT_TRUE(timeline);
  const auto added = add_gpu_logs(*timeline, folder.path());
  EXPECT_TRUE(added);
  if (summary != nullptr) *summary = *added;
  return std::move(*timeline);
}
std::vector<std::pair<int64_t, double>> curve(const trace::Timeline& timeline, std::string_view name) {
  std::vector<std::pair<int64_t, double>> points;
  for (size_t i = 0; i < timeline.counters.size(); ++i)
    if (timeline.strings[timeline.counters.name[i]] == name)
      points.emplace_back(timeline.counters.time_ns[i], timeline.counters.value[i]);
  return points;
}

TEST_F(NvmlTest, SamplesAreCountersOfTheTimeline) {
  const Environment two("FAKE_NVML_DEVICES", "2"), one("CUDA_VISIBLE_DEVICES", "1");
  const Folder folder;
  GpuSummary summary;
  const trace::Timeline timeline = sampled(folder, std::chrono::milliseconds(600), &summary);
  EXPECT_GT(summary.samples, 100U);
  EXPECT_EQ(summary.logs, 0U);  // of a process that used a device
  EXPECT_TRUE(curve(timeline, "gpu.0.power_w").empty());
  const auto power = curve(timeline, "gpu.1.power_w");
  ASSERT_GE(power.size(), 10U);
  EXPECT_EQ(power.front().second, 250);
  // The energy's difference over the window is the power, but for a step of the counter at either end.
  const auto energy = curve(timeline, "gpu.1.energy_j");
  ASSERT_GE(energy.size(), 2U);
  const double seconds = static_cast<double>(energy.back().first - energy.front().first) / 1e9;
  EXPECT_GE(seconds, 0.5);
  EXPECT_NEAR(energy.back().second, 250 * seconds, 250 * 0.06);
  EXPECT_EQ(timeline.facts.at("gpu.1.name"), "Fake GPU 9000");
  EXPECT_EQ(timeline.facts.at("gpu.1.memory_bytes"), std::to_string(uint64_t{80} << 30));
  EXPECT_EQ(timeline.facts.at("gpu.1.uuid"), "GPU-ab010000-0000-0000-0000-0000000000cd");
  EXPECT_EQ(timeline.facts.at("gpu.1.power_source"), "instant");
  EXPECT_THAT(timeline.facts.at("gpu.sampling"), HasSubstr("on: NVML of driver 580.00"));
  EXPECT_EQ(timeline.losses.faults.size(), 0U);
  EXPECT_LE(energy.back().first, timeline.duration_ns);
}

TEST_F(NvmlTest, ADeviceThatIsLostEndsItsCurvesAndIsTold) {
  const Environment lost("FAKE_NVML_LOST_AFTER", "60");  // some looks
  const Folder folder;
  const trace::Timeline timeline = sampled(folder, std::chrono::milliseconds(300));
  EXPECT_THAT(timeline.facts.at("gpu.0.lost"), HasSubstr("NVML error 15"));
  const auto power = curve(timeline, "gpu.0.power_w");
  EXPECT_GE(power.size(), 1U);
  EXPECT_LT(power.size(), 10U);
}

TEST_F(NvmlTest, ADriverThatHangsDoesNotHoldTheRunUp) {
  const Folder folder;
  ASSERT_TRUE(record::start({.folder = folder.path()}));
  const Environment hangs("FAKE_NVML_HANGS_AFTER", "0");
  const int64_t before = record::monotonic_ns();
  {
    const auto sampler =
        start_sampling_or_say_why({.folder = folder.path(), .stop_timeout = std::chrono::milliseconds(50)});
    ASSERT_TRUE(sampler);
  }
  EXPECT_LT(record::monotonic_ns() - before, 3'000'000'000);
  ASSERT_TRUE(record::stop());
  auto timeline = trace::import_spool(folder.path());
  ASSERT_TRUE(timeline);
  EXPECT_TRUE(add_gpu_logs(*timeline, folder.path()));
  EXPECT_THAT(timeline->facts.at("gpu.sampling.hangs"), HasSubstr("did not answer"));
}

TEST_F(NvmlTest, WhereItDoesNotWorkTheRecordingSaysWhy) {
  const Environment mismatch("FAKE_NVML_nvmlInit_v2", "18");
  const Folder folder;
  const trace::Timeline timeline = sampled(folder, std::chrono::milliseconds(1));
  EXPECT_THAT(timeline.facts.at("gpu.sampling"), HasSubstr("off: NVML error 18"));
}

TEST(Nvml, WithoutAnyDriverNothingIsSaid) {
  if (std::filesystem::exists("/proc/driver/nvidia")) GTEST_SKIP() << "there is a driver";
  const Environment nowhere("STROBE_NVML_LIBRARY", "/nowhere/libnvidia-ml.so.1");
  const Folder folder;
  const trace::Timeline timeline = sampled(folder, std::chrono::milliseconds(1));
  EXPECT_EQ(timeline.facts.count("gpu.sampling"), 0U);
}

}  // namespace
}  // namespace strobe::gpu
