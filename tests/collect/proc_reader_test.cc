#include "collect/proc_reader.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>

namespace strobe::collect {
namespace {

// Fields of a real file, with a name that tries to look like more of them.
constexpr const char* kStat =
    "4242 (a) R 1 (b) S 77 4242 4242 0 -1 4194304 1001 2002 3003 4004 50 60 70 80 20 0 7 0 123456 987654321 555 1 2 3";

TEST(ProcReader, StatOfANameWithBrackets) {
  ProcessStat stat;
  ASSERT_TRUE(parse_stat(kStat, stat));
  EXPECT_EQ(stat.name, "a) R 1 (b");
  EXPECT_EQ(stat.state, 'S');
  EXPECT_EQ(stat.parent, 77);
  EXPECT_EQ(stat.minor_faults, 1001);
  EXPECT_EQ(stat.major_faults, 3003);
  EXPECT_EQ(stat.cpu_ticks, 110);
  EXPECT_EQ(stat.start_ticks, 123456);
  EXPECT_EQ(stat.rss_pages, 555);
}

TEST(ProcReader, StatThatIsCutIsRefused) {
  const std::string whole = kStat;
  const size_t needed = whole.find(" 1 2 3");
  for (size_t bytes = 0; bytes < needed - 3; ++bytes) {
    ProcessStat stat;
    EXPECT_FALSE(parse_stat(whole.substr(0, bytes).c_str(), stat)) << bytes;
  }
}

TEST(ProcReader, OwnProcessAsTheKernelShowsIt) {
  ProcFile file("/proc/self/stat");
  for (int i = 0; i < 3; ++i) {  // the file stays open and is read anew
    const char* text = file.read();
    ASSERT_NE(text, nullptr);
    ProcessStat stat;
    ASSERT_TRUE(parse_stat(text, stat));
    EXPECT_EQ(stat.parent, ::getppid());
    EXPECT_GT(stat.rss_pages, 100);
  }
}

TEST(ProcReader, SchedstatGrowsWithWork) {
  ProcFile file("/proc/self/schedstat");
  SchedStat before, after;
  const char* text = file.read();
  ASSERT_NE(text, nullptr);
  ASSERT_TRUE(parse_schedstat(text, before));
  const clock_t until = std::clock() + CLOCKS_PER_SEC / 20;
  while (std::clock() < until) {
  }
  ASSERT_TRUE(parse_schedstat(file.read(), after));
  EXPECT_GT(after.cpu_ns - before.cpu_ns, 20'000'000);
}

TEST(ProcReader, StatusNumbers) {
  const char* text = "Name:\tx\nVmHWM:\t  1234 kB\nvoluntary_ctxt_switches:\t5\nnonvoluntary_ctxt_switches:\t6\n";
  EXPECT_EQ(status_number(text, "VmHWM"), 1234);
  EXPECT_EQ(status_number(text, "voluntary_ctxt_switches"), 5);
  EXPECT_EQ(status_number(text, "nonvoluntary_ctxt_switches"), 6);
  EXPECT_EQ(status_number(text, "VmRSS"), -1);
}

TEST(ProcReader, DeadProcessIsGone) {
  const pid_t pid = ::fork();
  if (pid == 0) ::_exit(0);
  ProcFile file("/proc/" + std::to_string(pid) + "/stat");
  EXPECT_NE(file.read(), nullptr);
  ::waitpid(pid, nullptr, 0);
  EXPECT_EQ(file.read(), nullptr);
}

TEST(ProcReader, NumbersInAFolder) {
  std::vector<int32_t> pids;
  numbers_in("/proc", pids);
  EXPECT_NE(std::find(pids.begin(), pids.end(), ::getpid()), pids.end());
  numbers_in("/no such folder", pids);
  EXPECT_TRUE(pids.empty());
}

}  // namespace
}  // namespace strobe::collect
