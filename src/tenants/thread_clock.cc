#include "tenants/thread_clock.h"

#include <fmt/format.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <ctime>

namespace strobe::tenants {

ThreadClock::ThreadClock()
    : schedstat_(fmt::format("/proc/self/task/{}/schedstat", static_cast<long>(::syscall(SYS_gettid)))) {}

ThreadTimes ThreadClock::read() {
  ThreadTimes times;
  timespec cpu{};
  // The file's own CPU time lags behind by up to a tick; its waiting time is exact while the thread runs.
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &cpu);
  times.cpu_ns = static_cast<int64_t>(cpu.tv_sec) * 1'000'000'000 + cpu.tv_nsec;
  collect::SchedStat stat;
  const char* text = schedstat_.read();
  if (text != nullptr && collect::parse_schedstat(text, stat)) times.runnable_ns = stat.wait_ns;
  return times;
}

}  // namespace strobe::tenants
