#include "collect/core_switches.h"

#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "collect/core_set.h"
#include "collect/proc_reader.h"
#include "support/test_data.h"

namespace strobe::collect {
namespace {

struct Busy {
  int32_t tid = 0;
  SchedStat before, after;
};

SchedStat schedstat() {
  ProcFile file("/proc/thread-self/schedstat");
  SchedStat stat;
  parse_schedstat(file.read(), stat);
  return stat;
}

// Two threads that never sleep share a core: the kernel's log of who ran must give each the time that its own counters
// give it, and all of the wait is between runs that were cut short.
TEST(CoreSwitches, TwoThreadsOnOneCoreAsTheKernelsCountersSay) {
  const test::ScratchFolder folder;
  const int core = parse_cores(allowed_core_list())->front();
  auto switches = CoreSwitches::start({core}, folder.path() / "cores.runs");
  if (!switches) GTEST_SKIP() << switches.error().to_string();
  std::atomic<bool> stop{false};
  std::vector<Busy> busy(2);
  std::vector<std::thread> threads;
  for (Busy& one : busy)
    threads.emplace_back([&one, &stop, core] {
      ASSERT_TRUE(bind_to_cores(std::to_string(core)));
      one.tid = static_cast<int32_t>(::syscall(SYS_gettid));
      one.before = schedstat();
      while (!stop) {
      }
      one.after = schedstat();
    });
  for (int i = 0; i < 30; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    switches->drain();
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  switches->stop();
  const auto log = read_core_runs(folder.path() / "cores.runs");
  ASSERT_TRUE(log) << log.error().to_string();
  EXPECT_EQ(log->lost, 0U);
  EXPECT_GT(log->to_ns - log->from_ns, 500'000'000);
  for (size_t i = 1; i < log->runs.size(); ++i)
    EXPECT_GE(log->runs[i].start_ns, log->runs[i - 1].end_ns) << "one core runs one thread at a time";
  for (const Busy& one : busy) {
    EXPECT_EQ(log->parents.count(one.tid), 1U);
    int64_t ran = 0, waited = 0, last = 0;
    bool preempted = false;
    for (const CoreRun& run : log->runs) {
      if (run.tid != one.tid) continue;
      EXPECT_EQ(run.pid, ::getpid());
      ran += run.end_ns - run.start_ns;
      if (last > 0 && preempted) waited += run.start_ns - last;
      last = run.end_ns;
      preempted = run.preempted;
    }
    const auto cpu = static_cast<double>(one.after.cpu_ns - one.before.cpu_ns);
    const auto wait = static_cast<double>(one.after.wait_ns - one.before.wait_ns);
    // Beginning and end of the thread lie outside of its own readings.
    EXPECT_NEAR(static_cast<double>(ran), cpu, 0.05 * cpu + 5e6);
    EXPECT_NEAR(static_cast<double>(waited), wait, 0.05 * wait + 10e6);
    EXPECT_GT(waited, 0);
  }
}

TEST(CoreSwitches, NamesTheCoreThatIsNotThere) {
  const test::ScratchFolder folder;
  const auto switches = CoreSwitches::start({4000}, folder.path() / "cores.runs");
  ASSERT_FALSE(switches);
  EXPECT_EQ(switches.error().kind(), ErrorKind::kUnsupported);
}

}  // namespace
}  // namespace strobe::collect
