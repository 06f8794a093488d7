// The trace that a recorder would have written of a simulated run, by docs/tenant-trace.md.
#pragma once

#include "simulate/device.h"
#include "strobe/trace/timeline.h"

namespace strobe::simulate {

// Finished. The damage that the scenario asks for is done: noise of each stamp, lost operations, missing hand-overs, a
// wrong clock. Same scenario and log, same trace.
trace::Timeline timeline_of(const Scenario& scenario, const Log& log);

}  // namespace strobe::simulate
