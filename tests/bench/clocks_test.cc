#include "strobe/bench/clocks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <vector>

#include "base/file.h"
#include "bench/environment_guard.h"
#include "bench/machine_watch.h"
#include "bench/tool.h"
#include "support/test_data.h"

namespace strobe::bench {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

// A program that answers as nvidia-smi does and writes down how it was called.
class ClocksTest : public testing::Test {
 protected:
  void install(const std::string& answers) {
    const fs::path program = folder_ / "nvidia-smi";
    std::ofstream(program) << "#!/bin/sh\necho \"$*\" >> '" << calls().string() << "'\ncase \"$*\" in\n"
                           << answers << "\nesac\n";
    fs::permissions(program, fs::perms::owner_all);
    environment_.set("STROBE_NVML_LIBRARY", "/nowhere/libnvidia-ml.so.1");
    environment_.set("PATH", folder_.path().string() + ":" + std::getenv("PATH"));
  }
  fs::path calls() const { return folder_ / "calls"; }
  std::string called() const { return read_file(calls()).value_or(std::string()); }
  Log log() {
    return [this](LogLevel level, std::string_view text) {
      if (level >= LogLevel::kWarning) said_ += std::string(text) + "\n";
    };
  }

  test::ScratchFolder folder_;
  test::Environment environment_;
  std::string said_;
};

constexpr const char* kGpu = R"(*persistence_mode*) echo Disabled;;
*power.limit*) echo 250.00;;
*power.max_limit*) echo 300.00;;
*clocks.max.graphics*) echo 1980;;
*clocks.max.memory*) echo 2619;;
*pstate*) echo P0;;
*clocks.gr*) echo '1980, 2619, 100.0, NVIDIA Test';;)";

TEST_F(ClocksTest, AllIsMaximizedAndPutBack) {
  install(kGpu);
  const GpuClocks clocks = maximize_clocks(3, log());
  EXPECT_TRUE(clocks.done) << said_;
  EXPECT_FALSE(clocks.persistence_was_on);
  EXPECT_DOUBLE_EQ(clocks.power_limit_w.value_or(0), 250);
  for (const char* call : {"-i 3 --persistence-mode=1", "-i 3 --power-limit=300", "-i 3 --lock-gpu-clocks=1980,1980",
                           "-i 3 --lock-memory-clocks=2619,2619"})
    EXPECT_THAT(called(), HasSubstr(call));
  fs::remove(calls());
  reset_clocks(3, clocks, log());
  for (const char* call :
       {"-i 3 --reset-gpu-clocks", "-i 3 --reset-memory-clocks", "-i 3 --power-limit=250", "-i 3 --persistence-mode=0"})
    EXPECT_THAT(called(), HasSubstr(call));
}

TEST_F(ClocksTest, WithoutRightsNothingIsDoneNorUndone) {
  install(std::string("--*=*[0-9]|*--lock*|*--persistence-mode=*) exit 4;;\n") + kGpu);
  const GpuClocks clocks = maximize_clocks(0, log());
  EXPECT_FALSE(clocks.done);
  EXPECT_THAT(said_, HasSubstr("cannot turn on the persistence mode"));
  fs::remove(calls());
  reset_clocks(0, clocks, log());
  EXPECT_EQ(called(), "");
}

TEST_F(ClocksTest, WithoutAGpuThereIsAWarning) {
  install("*) exit 9;;");
  EXPECT_FALSE(maximize_clocks(kAllGpus, log()).done);
  EXPECT_THAT(said_, HasSubstr("no GPU"));
}

TEST_F(ClocksTest, AToolThatHangsIsGivenUp) {
  install("*) sleep 60;;");
  EXPECT_FALSE(run_tool({"nvidia-smi"}, 1));
  EXPECT_FALSE(run_tool({"no-such-program-anywhere"}));
}

TEST_F(ClocksTest, TheMachineIsWatched) {
  install(kGpu);
  const fs::path root = folder_ / "root";
  fs::create_directories(root / "sys/devices/system/cpu/cpu0/cpufreq");
  std::ofstream(root / "sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq") << "2400000\n";
  fs::create_directories(root / "sys/class/powercap/intel-rapl:0");
  fs::create_directories(root / "sys/class/powercap/intel-rapl:0:0");
  const fs::path energy = root / "sys/class/powercap/intel-rapl:0/energy_uj";
  std::ofstream(root / "sys/class/powercap/intel-rapl:0/max_energy_range_uj") << "9000000\n";
  std::ofstream(root / "sys/class/powercap/intel-rapl:0:0/energy_uj") << "1\n";
  std::ofstream(energy) << "8000000\n";
  MachineWatch watch({0}, root);
  ASSERT_TRUE(write_file(energy, "2000000\n"));  // past the end of its range: 1 J and 2 J
  const auto seen = watch.finish();
  EXPECT_EQ(seen["cpu_energy_joules"], 3.0) << seen.dump();
  EXPECT_EQ(seen["cpu_mhz"]["mean"], 2400.0);
  EXPECT_EQ(seen["gpus"][0]["watts"], 100.0);
  EXPECT_EQ(seen["gpus"][0]["name"], "NVIDIA Test");
  EXPECT_EQ(seen["gpus"][0]["energy_from"], "power");
  EXPECT_TRUE(seen["gpus"][0]["throttled_share"].is_null());
  EXPECT_TRUE(seen["not_measured"].empty());
}

TEST_F(ClocksTest, WhatIsNotThereIsNamed) {
  install("*) exit 9;;");
  MachineWatch watch({0}, folder_ / "empty");
  const auto seen = watch.finish();
  EXPECT_TRUE(seen["cpu_mhz"].is_null());
  EXPECT_TRUE(seen["cpu_energy_joules"].is_null());
  EXPECT_THAT(seen["not_measured"]["cpu_energy_joules"].get<std::string>(), HasSubstr("RAPL"));
  EXPECT_TRUE(seen["not_measured"].contains("gpus"));
}

}  // namespace
}  // namespace strobe::bench
