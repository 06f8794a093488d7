// ThreadClock: what the kernel says of the calling thread: how long it ran, and how long it was ready and did not run.
#pragma once

#include <cstdint>

#include "collect/proc_reader.h"

namespace strobe::tenants {

struct ThreadTimes {
  int64_t cpu_ns = 0;       // running
  int64_t runnable_ns = 0;  // ready, in the run queue
};

// Of the thread that makes it; used by no other. Reading costs about a microsecond.
class ThreadClock {
 public:
  ThreadClock();
  ThreadTimes read();

 private:
  collect::ProcFile schedstat_;
};

}  // namespace strobe::tenants
