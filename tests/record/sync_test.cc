// What is on the disk when the machine goes down: all that is older than the period that was asked for.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <string>
#include <thread>

#include "record/recorded.h"
#include "strobe/record/annotate.h"
#include "support/test_data.h"

namespace {

std::atomic<int> syncs_of_spools{0}, syncs_of_names{0};
std::atomic<bool> disk_fails{false};

std::string path_of(int file) {
  char path[4096] = "";
  const ssize_t bytes = ::readlink(("/proc/self/fd/" + std::to_string(file)).c_str(), path, sizeof path);
  return {path, bytes > 0 ? static_cast<size_t>(bytes) : 0};
}

}  // namespace

// Stands in front of the system's own, for the recorder of this program.
extern "C" int fdatasync(int file) {
  const std::string path = path_of(file);
  if (path.ends_with(".spool")) ++syncs_of_spools;
  if (path.ends_with(".names")) ++syncs_of_names;
  if (disk_fails.load()) {
    errno = EIO;
    return -1;
  }
  return static_cast<int>(::syscall(SYS_fdatasync, file));
}

namespace strobe::record {
namespace {

using strobe::test::ScratchFolder;

Options options_for(const ScratchFolder& folder, int period_ms) {
  Options options;
  options.folder = folder.path();
  options.sync_period_ms = period_ms;
  return options;
}

TEST(Sync, HappensEveryPeriodAndAtTheEnd) {
  const ScratchFolder folder;
  syncs_of_spools = syncs_of_names = 0;
  ASSERT_TRUE(start(options_for(folder, 1)));
  const Name name("m");
  while (syncs_of_spools.load() < 5) mark(name);
  const int before = syncs_of_spools.load();
  ASSERT_TRUE(stop());
  EXPECT_GT(syncs_of_spools.load(), before);
  EXPECT_GE(syncs_of_names.load(), syncs_of_spools.load());
  auto recorded = test::read_all(folder.path());
  ASSERT_TRUE(recorded);
  EXPECT_THAT(recorded->summary.faults, testing::IsEmpty());
}

TEST(Sync, ALongPeriodDoesNotHoldTheEndBack) {
  const ScratchFolder folder;
  syncs_of_spools = 0;
  ASSERT_TRUE(start(options_for(folder, 3'600'000)));
  mark(Name("m"));
  ASSERT_TRUE(stop());
  EXPECT_EQ(syncs_of_spools.load(), 1);
}

TEST(Sync, IsLeftToTheKernelUnlessAskedFor) {
  const ScratchFolder folder;
  syncs_of_spools = syncs_of_names = 0;
  ASSERT_TRUE(start(options_for(folder, 0)));
  mark(Name("m"));
  ASSERT_TRUE(stop());
  EXPECT_EQ(syncs_of_spools.load() + syncs_of_names.load(), 0);
}

TEST(Sync, AFailureIsSaidAtTheEnd) {
  const ScratchFolder folder;
  ASSERT_TRUE(start(options_for(folder, 1)));
  disk_fails = true;
  mark(Name("m"));
  const auto stopped = stop();
  disk_fails = false;
  ASSERT_FALSE(stopped);
  EXPECT_EQ(stopped.error().kind(), ErrorKind::kIo);
  EXPECT_THAT(stopped.error().to_string(), testing::HasSubstr("cannot sync"));
}

TEST(Sync, APeriodThatCannotBeIsRefused) {
  const ScratchFolder folder;
  EXPECT_THAT(start(options_for(folder, -1)).error().to_string(), testing::HasSubstr("expected 0 (none) or more"));
}

}  // namespace
}  // namespace strobe::record
