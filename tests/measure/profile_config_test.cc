#include "measure/profile_config.h"

#include <gtest/gtest.h>

#include "base/file.h"

namespace strobe::measure {
namespace {

ProfileConfig read(const std::string& text) {
  auto config = read_profile_config(text, "/folder");
  EXPECT_TRUE(config) << config.error().to_string();
  return config ? *config : ProfileConfig{};
}

void refused(const std::string& text, const std::string& message) {
  const auto config = read_profile_config(text, "");
  ASSERT_FALSE(config) << text;
  EXPECT_NE(config.error().to_string().find(message), std::string::npos) << config.error().to_string();
  EXPECT_EQ(config.error().exit_code(), 2);
}

TEST(ProfileConfig, EveryKey) {
  const ProfileConfig config = read(R"(
networks: [resnet18, {file: nets/a.cfg, name: mine, level: 40}]
levels: [0, 10, ..., 30]
method: l1
seed: 9
width: 64
height: 96
batch_sizes: [8, 2]
stages: [training, inference]
quantities: latency
engines: [torch, "openvino"]
device: cpu
threads: 2
till_first_fail: false
repetitions: 4
most_repetitions: 6
half_width: 0.1
measure_time: 1.5
warmup_time: 2
attempts: 2
timeout: 30
memory_limit: 4096
calibration: 5
)");
  ASSERT_EQ(config.networks.size(), 2U);
  EXPECT_EQ(config.networks[0].name, "resnet18");
  EXPECT_EQ(config.networks[0].source, "resnet18");
  EXPECT_FALSE(config.networks[0].level);
  EXPECT_EQ(config.networks[1].name, "mine");
  EXPECT_EQ(config.networks[1].source, "/folder/nets/a.cfg");
  EXPECT_EQ(config.networks[1].level, 40);
  EXPECT_EQ(config.levels, (std::vector<int>{0, 10, 20, 30}));
  EXPECT_EQ(config.method, "l1");
  EXPECT_EQ(config.seed, 9U);
  EXPECT_EQ(config.width, 64);
  EXPECT_EQ(config.height, 96);
  EXPECT_EQ(config.batch_sizes, (std::vector<int64_t>{2, 8}));
  EXPECT_EQ(config.stages, (std::vector<Stage>{Stage::kTraining, Stage::kInference}));
  EXPECT_EQ(config.quantities, (std::vector<Quantity>{Quantity::kLatency}));
  EXPECT_EQ(config.engines, (std::vector<std::string>{"torch", "openvino"}));
  EXPECT_EQ(config.threads, 2);
  EXPECT_FALSE(config.till_first_fail);
  EXPECT_EQ(config.repetitions, 4);
  EXPECT_EQ(config.most_repetitions, 6);
  EXPECT_EQ(config.half_width, 0.1);
  EXPECT_EQ(config.measure_s, 1.5);
  EXPECT_EQ(config.warmup_s, 2);
  EXPECT_EQ(config.attempts, 2);
  EXPECT_EQ(config.timeout_s, 30);
  EXPECT_EQ(config.memory_limit_mib, 4096);
  EXPECT_EQ(config.calibration_s, 5);
}

TEST(ProfileConfig, TheExampleIsRead) {
  const auto text = read_file(STROBE_TEST_PROFILE);
  ASSERT_TRUE(text) << text.error().to_string();
  const ProfileConfig config = read(*text);
  EXPECT_FALSE(config.networks.empty());
  EXPECT_FALSE(config.batch_sizes.empty());
}

TEST(ProfileConfig, WrongValuesAreToldWithTheirPlace) {
  refused("networks: resnet18\nbatch_size: [1]\n", "2:1: no key 'batch_size'; did you mean batch_sizes?");
  refused("networks: []\n", "1:11: the list is empty");
  refused("networks: [resnet18, resnet18]\n", "1:22: network 'resnet18' stands here twice");
  refused("networks: [{name: x}]\n", "expected a built-in name, a file");
  refused("networks: \"a,b\"\n", "letters, digits");
  refused("batch_sizes: [1, 0]\n", "1:18: expected a whole number from 1 to 65536");
  refused("batch_sizes: [1, 1]\n", "1:18: stands here twice");
  refused("levels: [0, 96]\n", "96");
  refused("method: big\n", "1:9: ");
  refused("stages: [train]\n", "1:10: \"train\"; ");
  refused("quantities: speed\n", "there are: memory, latency");
  refused("memory_limit: 4GiB\n", "1:15: memory_limit: expected MiB as a whole number");
  refused("till_first_fail: 3\n", "expected true or false");
  refused("timeout: -1\n", "expected a number from 0.1");
  refused("[1, 2]\n", "expected keys and values");
  refused("networks: [resnet18\n", "2:1: ");
  refused("seed: 1\nseed: 2\n", "2:1: profile: 'seed' stands here twice");
}

TEST(ProfileConfig, OptionsOverrideTheFile) {
  ProfileConfig config = read("networks: resnet18\nbatch_sizes: 4\n");
  ASSERT_TRUE(set_in_profile(config, "networks", "squeezenet1_1,nets/a.cfg"));
  ASSERT_EQ(config.networks.size(), 2U);
  EXPECT_EQ(config.networks[1].name, "a");
  EXPECT_EQ(config.networks[1].source, "nets/a.cfg");
  ASSERT_TRUE(set_in_profile(config, "batch_sizes", "2"));
  EXPECT_EQ(config.batch_sizes, (std::vector<int64_t>{2}));
  ASSERT_TRUE(set_in_profile(config, "levels", "0:90:30"));
  EXPECT_EQ(config.levels, (std::vector<int>{0, 30, 60, 90}));

  const ProfileConfig before = config;
  const auto wrong = set_in_profile(config, "batch_sizes", "2,x");
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().message(), "batch_sizes \"2,x\": expected a whole number from 1 to 65536");
  EXPECT_EQ(config.batch_sizes, before.batch_sizes);
}

TEST(ProfileConfig, WhatCannotBeMeasuredIsToldBefore) {
  const auto told = [](ProfileConfig config, const std::string& message) {
    const auto checked = check_profile_config(config);
    ASSERT_FALSE(checked) << message;
    EXPECT_NE(checked.error().to_string().find(message), std::string::npos) << checked.error().to_string();
    EXPECT_EQ(checked.error().exit_code(), 2);
  };
  ProfileConfig config;
  told(config, "no network is named");
  config = read("networks: resnet18\n");
  told(config, "no batch size is named");
  config.batch_sizes = {1};
  config.device = "gpu";
  told(config, "device 'gpu': expected cpu or cuda:N");
  for (const char* wrong : {"cuda", "cuda:", "cuda:-1", "cuda:1x", "cuda:1000"}) {
    config.device = wrong;
    told(config, "expected cpu or cuda:N");
  }
  config.device = "cpu";
  config.most_repetitions = 1;
  told(config, "less than repetitions");
  config.most_repetitions = 50;
  config.engines = {"torhc"};
  told(config, "torhc");
}

}  // namespace
}  // namespace strobe::measure
