#pragma once

#include <string>

#include "analyze/critical_path.h"

namespace strobe::analyze {

// The path of a frame in a trace of several tenants: its account tiles [stamp, done]. strict: a wait for a resource
// jumps to what its holder did, also of another tenant, and a wait for a thread to the earlier frame that it worked on.
// Errors: kUsage (several tenants have that frame and none is named), kNotFound (no such tenant or frame).
Result<CriticalPath> critical_path_tenants(const trace::Timeline& timeline, const WindowChoice& choice);

}  // namespace strobe::analyze
