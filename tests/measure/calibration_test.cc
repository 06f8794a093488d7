#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "engines/loader.h"
#include "measure/device_calibration.h"

namespace strobe::measure {
namespace {

DeviceCalibration made() {
  return {"torch", "2.0", "cpu", 2, 30, 101.5, 90, 20, 60, 12.5, 4.25};
}

TEST(DeviceCalibration, JsonThereAndBack) {
  const auto back = parse_calibration(calibration_json(made()));
  ASSERT_TRUE(back) << back.error().to_string();
  EXPECT_EQ(back->engine, "torch");
  EXPECT_EQ(back->threads, 2);
  EXPECT_EQ(back->conv1x1_gflops, 101.5);
  EXPECT_EQ(back->conv3x3_gflops, 90);
  EXPECT_EQ(back->depthwise_gflops, 20);
  EXPECT_EQ(back->linear_gflops, 60);
  EXPECT_EQ(back->memory_gbytes, 12.5);
  EXPECT_EQ(back->launch_us, 4.25);
}

TEST(DeviceCalibration, OfAGpuHasMore) {
  DeviceCalibration gpu = made();
  gpu.device = "cuda:1";
  gpu.copy_gbytes = 11.5;
  const auto plain = parse_calibration(calibration_json(gpu));
  ASSERT_TRUE(plain) << plain.error().to_string();
  EXPECT_EQ(plain->copy_gbytes, 11.5);
  EXPECT_EQ(plain->context_mib, 0);
  gpu.device_name = "Some GPU";
  gpu.context_mib = 412;
  const auto back = parse_calibration(calibration_json(gpu));
  ASSERT_TRUE(back) << back.error().to_string();
  EXPECT_EQ(back->device, "cuda:1");
  EXPECT_EQ(back->device_name, "Some GPU");
  EXPECT_EQ(back->context_mib, 412);
  gpu.copy_gbytes = 0;
  EXPECT_FALSE(parse_calibration(calibration_json(gpu)));
}

TEST(DeviceCalibration, RefusalsAreBadInputAndOneLine) {
  const auto word = calibrate_device("torch", "gpu0", 1, 1);
  ASSERT_FALSE(word);
  EXPECT_EQ(word.error().exit_code(), 2);
  EXPECT_NE(word.error().to_string().find("expected cpu or cuda:N"), std::string::npos);
  for (const auto& engine : engines::list_engines()) {
    if (!engine.built || engine.name == "torch" || engine.name == "tensorrt") continue;
    const auto found = calibrate_device(engine.name, "cuda:0", 1, 1);
    ASSERT_FALSE(found);
    EXPECT_EQ(found.error().exit_code(), 2);
    EXPECT_NE(found.error().to_string().find("runs on the CPU only"), std::string::npos);
  }
}

TEST(DeviceCalibration, DamagedJsonIsRefused) {
  EXPECT_FALSE(parse_calibration("{"));
  EXPECT_FALSE(parse_calibration("[]"));
  EXPECT_FALSE(parse_calibration("{\"schema\": 2}"));
  nlohmann::json json = nlohmann::json::parse(calibration_json(made()));
  for (const auto& [key, value] : json.items()) {
    if (key == "facts") continue;
    nlohmann::json damaged = json;
    damaged.erase(key);
    EXPECT_FALSE(parse_calibration(damaged.dump())) << key;
    damaged[key] = value.is_string() ? nlohmann::json(1) : nlohmann::json("x");
    EXPECT_FALSE(parse_calibration(damaged.dump())) << key;
  }
}

// What is measured here holds on every machine that runs these tests: a convolution does more operations a second than
// a depthwise one, which waits for memory, and no core does more than 2 * 2 * 16 operations at 10 GHz.
TEST(DeviceCalibration, OfThisMachine) {
  for (const auto& engine : engines::list_engines()) {
    if (!engine.built || engine.name == "tensorrt") continue;  // that one is for GPUs
    const auto found = calibrate_device(engine.name, "cpu", 1, 3);
    ASSERT_TRUE(found) << found.error().to_string();
    EXPECT_EQ(found->threads, 1);
    for (const double rate :
         {found->conv1x1_gflops, found->conv3x3_gflops, found->depthwise_gflops, found->linear_gflops}) {
      EXPECT_GT(rate, 0.01) << engine.name;
      EXPECT_LT(rate, 4000) << engine.name;
    }
    EXPECT_GT(found->memory_gbytes, 0.1);
    EXPECT_LT(found->memory_gbytes, 1000);
    EXPECT_GT(found->launch_us, 0);
    EXPECT_LT(found->launch_us, 1e5);
  }
}

}  // namespace
}  // namespace strobe::measure
