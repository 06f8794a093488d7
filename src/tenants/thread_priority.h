// How the kernel's scheduler treats the calling thread.
#pragma once

#include <optional>

#include "strobe/base/result.h"

namespace strobe::tenants {

// nice: -20..19 of this thread alone; realtime: SCHED_FIFO with this priority. Errors: kUnsupported (not allowed: says
// what would allow it).
Result<void> set_thread_priority(std::optional<int> nice, std::optional<int> realtime);

}  // namespace strobe::tenants
