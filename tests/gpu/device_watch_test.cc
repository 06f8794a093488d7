#include "gpu/device_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>

#include "gpu/fake.h"

namespace strobe::gpu {
namespace {

using testing::Environment;
using testing::fake_library;
using ::testing::HasSubstr;

constexpr int64_t kMib = 1 << 20, kGib = int64_t{1} << 30;

class WatchTest : public ::testing::Test {
 protected:
  void hold(pid_t pid, int64_t bytes, int percent) const {
    std::ofstream(folder_ / "held", std::ios::app) << pid << ' ' << bytes << ' ' << percent << '\n';
  }
  std::unique_ptr<DeviceWatch> open() const {
    auto watch = DeviceWatch::open(0);
    EXPECT_TRUE(watch) << watch.error().to_string();
    return watch ? std::move(*watch) : nullptr;
  }

 private:
  testing::Folder folder_;
  Environment cuda_{"STROBE_CUDA_LIBRARY", fake_library()},
      nvml_{"STROBE_NVML_LIBRARY", fake_library("libstrobe_fake_nvml.so")},
      held_{"FAKE_NVML_HELD", (folder_ / "held").string()};
};

// A process that only waits.
class Other {
 public:
  Other() : pid_(::fork()) {
    if (pid_ == 0)
      for (;;) ::pause();
  }
  Other(const Other&) = delete;
  Other& operator=(const Other&) = delete;
  ~Other() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_;
};

TEST_F(WatchTest, FactsAreThoseOfTheDevice) {
  const auto facts = open()->facts();
  EXPECT_EQ(facts.at("name"), "Fake GPU 9000");
  EXPECT_EQ(facts.at("uuid"), "GPU-ab000000-0000-0000-0000-0000000000cd");
  EXPECT_EQ(facts.at("memory_mib"), "81920");
  EXPECT_EQ(facts.at("driver"), "580.00");
  EXPECT_EQ(facts.at("processors"), "132");
  EXPECT_EQ(facts.at("compute_capability"), "9.0");
  EXPECT_EQ(facts.at("sm_clock_mhz_max"), "1980");
  EXPECT_EQ(facts.at("memory_clock_mhz_max"), "2619");
  EXPECT_EQ(facts.at("power_limit_w"), "500");
}

TEST_F(WatchTest, TheDeviceIsFoundByItsIdWhateverItsNumber) {
  const Environment two("FAKE_NVML_DEVICES", "2"), turned("FAKE_NVML_TURNED_BY", "1"), cuda("FAKE_CUDA_DEVICES", "2");
  EXPECT_EQ(open()->facts().at("uuid"), "GPU-ab000000-0000-0000-0000-0000000000cd");
}

TEST_F(WatchTest, RefusalsAreOneLine) {
  const auto refusal = [](int number) {
    const auto watch = DeviceWatch::open(number);
    EXPECT_FALSE(watch);
    const std::string line = watch ? "" : watch.error().to_string();
    EXPECT_EQ(line.find('\n'), std::string::npos);
    EXPECT_EQ(watch ? 0 : watch.error().exit_code(), 2);
    return line;
  };
  EXPECT_THAT(refusal(1), HasSubstr("cuda:1: the driver has 1 device"));
  {
    const Environment two("FAKE_CUDA_DEVICES", "2");  // NVML has the first one only
    EXPECT_THAT(refusal(1), HasSubstr("no device with its id"));
  }
  const Environment nowhere("STROBE_NVML_LIBRARY", "/nowhere/libnvidia-ml.so.1");
  EXPECT_THAT(refusal(0), HasSubstr("/nowhere/libnvidia-ml.so.1"));
}

TEST_F(WatchTest, MemoryIsThatOfThisProcess) {
  const Other other;
  hold(other.pid(), 10 * kGib, 0);
  const auto watch = open();
  DeviceMoment now = watch->memory();
  EXPECT_EQ(now.total, 80 * kGib);
  EXPECT_EQ(now.used, 15 * kGib);
  EXPECT_EQ(now.free, 64 * kGib);
  hold(::getpid(), 700 * kMib, 0);
  hold(other.pid(), 11 * kGib, 0);  // grows meanwhile, and is not ours
  now = watch->memory();
  EXPECT_EQ(now.own, 700 * kMib);
  EXPECT_FALSE(now.own_is_growth);
}

TEST_F(WatchTest, WhereNvmlDoesNotNameProcessesMemoryIsWhatCameSince) {
  const Environment refused("FAKE_NVML_nvmlDeviceGetComputeRunningProcesses_v3", "3");
  const auto watch = open();
  EXPECT_EQ(watch->memory().own, 0);
  hold(::getpid(), 700 * kMib, 0);
  const DeviceMoment now = watch->memory();
  EXPECT_EQ(now.own, 700 * kMib);
  EXPECT_TRUE(now.own_is_growth);
}

TEST_F(WatchTest, OthersAreThoseBesideThisProcess) {
  const Other other;
  const auto watch = open();
  hold(::getpid(), kGib, 70);
  hold(other.pid(), kGib, 25);
  const Environment no_reason("FAKE_NVML_REASONS", "1");
  watch->restart();
  for (int i = 0; i < 4; ++i) {
    ::usleep(2000);  // figures have times in microseconds, and each is given once
    watch->sample();
  }
  const DeviceUse use = watch->use();
  EXPECT_EQ(use.samples, 4);
  EXPECT_DOUBLE_EQ(use.others_share, 0.25);
  EXPECT_EQ(use.throttled_share, 0);
  EXPECT_EQ(use.clock_mhz, 1755);
  EXPECT_EQ(use.clock_spread, 0);
}

TEST_F(WatchTest, ClocksThatMoveAndAreHeldDownAreSeen) {
  const auto watch = open();
  watch->sample();
  watch->restart();  // what was before does not count
  {
    const Environment slow("FAKE_NVML_SM_CLOCK", "1500"), hot("FAKE_NVML_REASONS", "32");
    watch->sample();
  }
  const Environment fast("FAKE_NVML_SM_CLOCK", "2000"), free("FAKE_NVML_REASONS", "0");
  watch->sample();
  const DeviceUse use = watch->use();
  EXPECT_EQ(use.samples, 2);
  EXPECT_EQ(use.clock_mhz, 1750);
  EXPECT_DOUBLE_EQ(use.clock_spread, 0.25);
  EXPECT_EQ(use.throttled_share, 0.5);
}

TEST_F(WatchTest, WhatADeviceDoesNotTellIsSaidSo) {
  const Environment clock("FAKE_NVML_nvmlDeviceGetClockInfo", "3"),
      reasons("FAKE_NVML_nvmlDeviceGetCurrentClocksEventReasons", "3"),
      use_of("FAKE_NVML_nvmlDeviceGetProcessUtilization", "3");
  const auto watch = open();
  watch->sample();
  const DeviceUse use = watch->use();
  EXPECT_LT(use.others_share, 0);
  EXPECT_LT(use.throttled_share, 0);
  EXPECT_LT(use.clock_mhz, 0);
  EXPECT_LT(use.clock_spread, 0);
}

}  // namespace
}  // namespace strobe::gpu
