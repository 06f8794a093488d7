// Ctrl-C and SIGTERM as a flag that long work looks at.
#pragma once

#include <atomic>

namespace strobe::app {

// From the first call on: the first signal sets the flag, so that what is under way is finished and kept; the second
// one ends the program at once.
const std::atomic<bool>& stop_on_interrupt();

}  // namespace strobe::app
