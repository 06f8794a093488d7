#include "tenants/thread_priority.h"

#include <fmt/format.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace strobe::tenants {

Result<void> set_thread_priority(std::optional<int> nice, std::optional<int> realtime) {
  const auto thread = static_cast<id_t>(::syscall(SYS_gettid));
  if (nice && ::setpriority(PRIO_PROCESS, thread, *nice) != 0)
    return unsupported(
        fmt::format("nice {} is not allowed ({}; CAP_SYS_NICE or RLIMIT_NICE allow it)", *nice, std::strerror(errno)));
  if (realtime) {
    const sched_param priority{.sched_priority = *realtime};
    if (::sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &priority) != 0)
      return unsupported(
          fmt::format("real-time priority {} is not allowed ({}; CAP_SYS_NICE or RLIMIT_RTPRIO allow it)", *realtime,
                      std::strerror(errno)));
  }
  return {};
}

}  // namespace strobe::tenants
