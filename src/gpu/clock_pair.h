// The reading of all clocks at once, by which times of CUPTI come onto the recorder's clock (clock_align.h).
#pragma once

#include <optional>

#include "gpu/activity.h"
#include "gpu/cupti_abi.h"

namespace strobe::gpu {

// The tightest of several tries; nothing where the library does not tell its time.
std::optional<ClockPair> read_clock_pair(cupti::Code (*timestamp)(uint64_t*));

}  // namespace strobe::gpu
