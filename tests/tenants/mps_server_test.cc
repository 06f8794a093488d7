// MPS with a stand-in for NVIDIA's control program (mps/nvidia-cuda-mps-control).
#include "tenants/mps_server.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "support/test_data.h"

namespace strobe::tenants {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class Mps : public ::testing::Test {
 protected:
  void SetUp() override {
    ::unsetenv(kMpsPipeVariable);
    ::setenv("FAKE_MPS_DIARY", (folder_ / "diary").c_str(), 1);
    ::unsetenv("FAKE_MPS_FAILS");
    path_ = std::getenv("PATH");
  }
  void TearDown() override { ::setenv("PATH", path_.c_str(), 1); }

  void put_stand_in() const {
    ::setenv("PATH", (std::string(test::binaries_folder()) + "/../tests/mps:" + path_).c_str(), 1);
  }
  std::vector<std::string> diary() const {
    std::vector<std::string> lines;
    std::ifstream file(folder_ / "diary");
    for (std::string line; std::getline(file, line);) lines.push_back(line);
    return lines;
  }

  const test::ScratchFolder folder_;
  std::string path_;
};

TEST_F(Mps, IsThereForProcessesThatAreStartedMeanwhileAndGoes) {
  put_stand_in();
  fs::path pipes;
  {
    auto server = MpsServer::start(true);
    ASSERT_TRUE(server) << server.error().to_string();
    pipes = std::getenv(kMpsPipeVariable);
    EXPECT_TRUE(fs::is_fifo(pipes / "control"));
    const pid_t child = ::fork();
    if (child == 0) ::_exit(pipes == std::getenv(kMpsPipeVariable) ? 0 : 1);  // and it is not its to end
    int status = -1;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
    EXPECT_TRUE(fs::exists(pipes));
  }
  EXPECT_EQ(std::getenv(kMpsPipeVariable), nullptr);
  EXPECT_FALSE(fs::exists(pipes));
  EXPECT_THAT(diary(), ElementsAre("get_server_list", "quit"));
}

TEST_F(Mps, OffKeepsAwayFromADaemonOfTheMachine) {
  ::setenv(kMpsPipeVariable, "/somewhere/else", 1);
  {
    auto server = MpsServer::start(false);
    ASSERT_TRUE(server) << server.error().to_string();
    EXPECT_STRNE(std::getenv(kMpsPipeVariable), "/somewhere/else");
    EXPECT_TRUE(fs::is_empty(std::getenv(kMpsPipeVariable)));
  }
  EXPECT_STREQ(std::getenv(kMpsPipeVariable), "/somewhere/else");
}

TEST_F(Mps, WhatDoesNotComeUpIsToldInItsOwnWords) {
  put_stand_in();
  ::setenv("FAKE_MPS_FAILS", "1", 1);
  auto server = MpsServer::start(true);
  ASSERT_FALSE(server);
  EXPECT_EQ(server.error().kind(), ErrorKind::kUnsupported);
  EXPECT_THAT(server.error().to_string(), HasSubstr("An instance of this daemon is already running"));
  EXPECT_EQ(std::getenv(kMpsPipeVariable), nullptr);
  ::setenv("PATH", folder_.path().c_str(), 1);
  auto none = MpsServer::start(true);
  ASSERT_FALSE(none);
  EXPECT_THAT(none.error().to_string(), HasSubstr("no program nvidia-cuda-mps-control on PATH"));
}

// The daemon does not outlive the process that started it, however that one ends.
TEST_F(Mps, GoesWithAKilledOwner) {
  put_stand_in();
  const pid_t owner = ::fork();
  if (owner == 0) {
    auto server = MpsServer::start(true);
    if (server) std::ofstream(folder_ / "pipes") << std::getenv(kMpsPipeVariable) << std::flush;
    ::kill(::getpid(), SIGKILL);
  }
  int status = 0;
  ::waitpid(owner, &status, 0);
  ASSERT_TRUE(WIFSIGNALED(status));
  std::ifstream file(folder_ / "pipes");
  std::string pipes;
  ASSERT_TRUE(std::getline(file, pipes));
  // Nobody reads the pipe any more: opening it without waiting fails then.
  for (int i = 0; i < 3000; ++i) {
    const int fd = ::open((pipes + "/control").c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) break;
    ::close(fd);
    ::usleep(10'000);
    ASSERT_LT(i, 2999) << "the daemon is still there";
  }
  fs::remove_all(pipes);
}

}  // namespace
}  // namespace strobe::tenants
