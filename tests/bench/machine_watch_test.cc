#include "bench/machine_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <thread>

#include "bench/environment_guard.h"
#include "bench/fake_nvml.h"
#include "support/test_data.h"

namespace strobe::bench {
namespace {

using testing::HasSubstr;
using Clock = std::chrono::steady_clock;

// With the stand-in for NVML of tests/gpu: the counter says 250 W, the power 240 W.
class MachineWatchTest : public testing::Test {
 protected:
  void SetUp() override {
    const auto library = fake_nvml();
    if (library.empty()) GTEST_SKIP() << "the room gpu was not built";
    environment_.set("STROBE_NVML_LIBRARY", library.string());
  }
  // What a watch over 0.7 s has seen, and for how long it watched at most.
  struct Watched {
    nlohmann::ordered_json seen;
    double seconds = 0;
  };
  static Watched watched(std::vector<int> gpus) {
    const auto before = Clock::now();
    MachineWatch watch(std::move(gpus), "/nowhere");
    std::this_thread::sleep_for(std::chrono::milliseconds(700));
    auto seen = watch.finish();
    return {std::move(seen), std::chrono::duration<double>(Clock::now() - before).count()};
  }
  test::Environment environment_;
};

TEST_F(MachineWatchTest, GpusTellByNvml) {
  const auto [seen, seconds] = watched({0});
  ASSERT_EQ(seen["gpus"].size(), 1U) << seen.dump();
  const auto& gpu = seen["gpus"][0];
  EXPECT_EQ(gpu["id"], 0);
  EXPECT_EQ(gpu["name"], "Fake GPU 9000");
  EXPECT_EQ(gpu["graphics_mhz"], 1755.0);
  EXPECT_EQ(gpu["memory_mhz"], 2619.0);
  EXPECT_EQ(gpu["watts"], 240.0);
  EXPECT_EQ(gpu["energy_from"], "counter");
  EXPECT_EQ(gpu["throttled_share"], 1.0);  // the power cap
  constexpr double kStep_j = 250 * 0.05;   // of the stand-in's counter
  EXPECT_GE(gpu["energy_joules"].get<double>(), 250 * 0.6 - kStep_j);
  EXPECT_LE(gpu["energy_joules"].get<double>(), 250 * seconds + kStep_j);
  EXPECT_FALSE(seen["not_measured"].contains("gpus"));
}

TEST_F(MachineWatchTest, WithoutACounterEnergyIsTheIntegralOfPower) {
  environment_.set("FAKE_NVML_nvmlDeviceGetTotalEnergyConsumption", "3");
  environment_.set("FAKE_NVML_REASONS", "1");  // idle
  const auto [seen, seconds] = watched({0});
  ASSERT_EQ(seen["gpus"].size(), 1U) << seen.dump();
  const auto& gpu = seen["gpus"][0];
  EXPECT_EQ(gpu["energy_from"], "power");
  EXPECT_GE(gpu["energy_joules"].get<double>(), 240 * 0.6);
  EXPECT_LE(gpu["energy_joules"].get<double>(), 240 * seconds);
  EXPECT_EQ(gpu["throttled_share"], 0.0);
}

TEST_F(MachineWatchTest, WhatIsTooShortForTheCounterIsTheIntegralOfPower) {
  const auto before = Clock::now();
  GpuWatch watch({0});
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  const auto seen = watch.finish();
  const double seconds = std::chrono::duration<double>(Clock::now() - before).count();
  if (seconds > 0.4) GTEST_SKIP() << "this machine is too busy for a short time";
  EXPECT_EQ(seen.gpus.at(0).at("energy_from"), "power");
  EXPECT_GT(seen.gpus.at(0).at("energy_joules").get<double>(), 0);
  EXPECT_LE(seen.gpus.at(0).at("energy_joules").get<double>(), 240 * seconds + 0.001);
}

TEST_F(MachineWatchTest, WhatAGpuDoesNotTellIsNull) {
  for (const char* function :
       {"nvmlDeviceGetTotalEnergyConsumption", "nvmlDeviceGetPowerUsage", "nvmlDeviceGetCurrentClocksEventReasons"})
    environment_.set(std::string("FAKE_NVML_") + function, "3");
  const auto seen = watched({0}).seen;
  ASSERT_EQ(seen["gpus"].size(), 1U) << seen.dump();
  for (const char* key : {"watts", "energy_joules", "energy_from", "throttled_share"}) {
    ASSERT_TRUE(seen["gpus"][0].contains(key)) << key;
    EXPECT_TRUE(seen["gpus"][0][key].is_null()) << key;
  }
  EXPECT_EQ(seen["gpus"][0]["graphics_mhz"], 1755.0);
}

TEST_F(MachineWatchTest, AGpuThatIsNotThereIsNamed) {
  environment_.set("FAKE_NVML_DEVICES", "2");
  const auto seen = watched({1, 5}).seen;
  ASSERT_EQ(seen["gpus"].size(), 1U) << seen.dump();
  EXPECT_EQ(seen["gpus"][0]["id"], 1);
  EXPECT_EQ(seen["not_measured"]["gpus"], "GPU 5 does not answer");
}

TEST_F(MachineWatchTest, ADriverThatDoesNotWorkSaysWhy) {
  environment_.set("FAKE_NVML_nvmlInit_v2", "18");
  const auto seen = watched({0}).seen;
  EXPECT_TRUE(seen["gpus"].empty());
  EXPECT_THAT(seen["not_measured"]["gpus"].get<std::string>(), HasSubstr("of different versions"));
}

TEST_F(MachineWatchTest, ADriverThatHangsDoesNotHoldTheEndUp) {
  environment_.set("FAKE_NVML_HANGS_AFTER", "0");
  const auto before = Clock::now();
  GpuWatch watch({0}, std::chrono::milliseconds(50));
  const auto seen = watch.finish();
  EXPECT_LT(Clock::now() - before, std::chrono::seconds(5));
  EXPECT_TRUE(seen.gpus.empty());
  EXPECT_THAT(seen.missing, HasSubstr("did not answer"));
}

}  // namespace
}  // namespace strobe::bench
