#pragma once

#include "analyze/what_if.h"

namespace strobe::analyze {

// What-if of a trace that is no pipeline's run: its dependency graph with scaled services.
Result<WhatIf> device_what_if(const trace::Timeline& timeline, const WhatIfOptions& options);

}  // namespace strobe::analyze
