#include "bench/held_clocks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <functional>
#include <thread>

#include "base/file.h"
#include "bench/environment_guard.h"
#include "bench/fake_nvml.h"
#include "support/test_data.h"

namespace strobe::bench {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr const char* kLocked =
    "nvmlDeviceSetPersistenceMode 0 on\n"
    "nvmlDeviceSetPowerManagementLimit 0 700000\n"
    "nvmlDeviceSetGpuLockedClocks 0 1980 1980\n"
    "nvmlDeviceSetMemoryLockedClocks 0 2619 2619\n";
constexpr const char* kPutBack =
    "nvmlDeviceResetMemoryLockedClocks 0\n"
    "nvmlDeviceResetGpuLockedClocks 0\n"
    "nvmlDeviceSetPowerManagementLimit 0 500000\n"
    "nvmlDeviceSetPersistenceMode 0 off\n";

// With the stand-in for NVML of tests/gpu, which writes down what is set.
class HeldClocksTest : public testing::Test {
 protected:
  void SetUp() override {
    const auto library = fake_nvml();
    if (library.empty()) GTEST_SKIP() << "the room gpu was not built";
    environment_.set("STROBE_NVML_LIBRARY", library.string());
    environment_.set("FAKE_NVML_CALLS", calls_file().string());
  }
  std::filesystem::path calls_file() const { return folder_ / "calls"; }
  std::string calls() const { return read_file(calls_file()).value_or(std::string()); }
  Log log() {
    return [this](LogLevel level, std::string_view text) {
      if (level >= LogLevel::kWarning) said_ += std::string(text) + "\n";
    };
  }
  // Another process holds the clocks, and comes to an end.
  void dies(const std::function<void()>& in_child, const std::function<void(pid_t)>& from_outside) {
    int ready[2];
    ASSERT_EQ(::pipe(ready), 0);
    const pid_t holder = ::fork();
    if (holder == 0) {
      ::setpgid(0, 0);
      const HeldClocks held({0}, log());
      [[maybe_unused]] const ssize_t told = ::write(ready[1], held.done() ? "y" : "n", 1);
      in_child();
      for (;;) ::pause();
    }
    char is_done = 0;
    ASSERT_EQ(::read(ready[0], &is_done, 1), 1);
    EXPECT_EQ(is_done, 'y');
    from_outside(holder);
    int status = 0;
    ASSERT_EQ(::waitpid(holder, &status, 0), holder);
    EXPECT_TRUE(WIFSIGNALED(status));
    ::close(ready[0]), ::close(ready[1]);
    for (int i = 0; i < 500 && calls() != std::string(kLocked) + kPutBack; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    EXPECT_EQ(calls(), std::string(kLocked) + kPutBack);
  }

  test::ScratchFolder folder_;
  test::Environment environment_;
  std::string said_;
};

TEST_F(HeldClocksTest, AreLockedAndPutBack) {
  {
    const HeldClocks held({0}, log());
    EXPECT_TRUE(held.done()) << said_;
    EXPECT_EQ(calls(), kLocked);
  }
  EXPECT_EQ(calls(), std::string(kLocked) + kPutBack);
  EXPECT_EQ(said_, "");
}

TEST_F(HeldClocksTest, ArePutBackWhenTheirHolderIsKilled) {
  dies([] {}, [](pid_t holder) { ::kill(holder, SIGKILL); });
}

TEST_F(HeldClocksTest, ArePutBackWhenTheirHolderCrashes) {
  dies([] { ::signal(SIGABRT, SIG_DFL), ::raise(SIGABRT); }, [](pid_t) {});
}

TEST_F(HeldClocksTest, AnInterruptionOfTheWholeGroupLeavesTheGuardian) {
  dies([] { ::signal(SIGINT, SIG_DFL); }, [](pid_t holder) { ::kill(-holder, SIGINT); });
}

TEST_F(HeldClocksTest, AreStillPutBackWithoutTheGuardian) {
  HeldClocks held({0}, log());
  ::kill(held.guardian(), SIGKILL);
  held.release();
  EXPECT_EQ(calls(), std::string(kLocked) + kPutBack);
  EXPECT_THAT(said_, HasSubstr("put back without it"));
}

TEST_F(HeldClocksTest, AForkedChildLeavesThem) {
  HeldClocks held({0}, log());
  const pid_t child = ::fork();
  if (child == 0) {
    held.release();
    ::_exit(0);
  }
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  EXPECT_EQ(calls(), kLocked);
  held.release();
  EXPECT_EQ(calls(), std::string(kLocked) + kPutBack);
}

TEST_F(HeldClocksTest, WithoutTheRightOneLineSaysSo) {
  environment_.set("FAKE_NVML_nvmlDeviceSetPersistenceMode", "4");
  {
    const HeldClocks held({0}, log());
    EXPECT_FALSE(held.done());
  }
  EXPECT_EQ(said_, "cannot turn on the persistence mode: NVML error 4: no permission: root or its right is needed\n");
  EXPECT_EQ(calls(), "");
}

TEST_F(HeldClocksTest, WhatWasDoneBeforeARefusalIsUndone) {
  environment_.set("FAKE_NVML_nvmlDeviceSetGpuLockedClocks", "4");
  {
    const HeldClocks held({0}, log());
    EXPECT_FALSE(held.done());
  }
  EXPECT_THAT(said_, HasSubstr("cannot lock the graphics clock: NVML error 4"));
  EXPECT_THAT(calls(), AllOf(HasSubstr("PowerManagementLimit 0 500000"), HasSubstr("PersistenceMode 0 off")));
}

TEST_F(HeldClocksTest, AMemoryWithOneClockIsNoFailure) {
  environment_.set("FAKE_NVML_nvmlDeviceSetMemoryLockedClocks", "3");
  environment_.set("FAKE_NVML_nvmlDeviceResetMemoryLockedClocks", "3");
  {
    const HeldClocks held({0}, log());
    EXPECT_TRUE(held.done());
  }
  EXPECT_THAT(said_, Not(HasSubstr("reset")));
}

TEST_F(HeldClocksTest, DevicesAreThoseOfTheEnvironment) {
  environment_.set("FAKE_NVML_DEVICES", "3");
  environment_.set("CUDA_VISIBLE_DEVICES", "2");
  {
    const HeldClocks held({}, log());
    EXPECT_TRUE(held.done());
  }
  EXPECT_THAT(calls(), AllOf(HasSubstr("GpuLockedClocks 2 1980"), Not(HasSubstr("GpuLockedClocks 0")),
                             Not(HasSubstr("GpuLockedClocks 1"))));
}

}  // namespace
}  // namespace strobe::bench
