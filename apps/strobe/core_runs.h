// Who ran on the cores, out of the log beside a recording, into its timeline.
#pragma once

#include <filesystem>

#include "strobe/base/result.h"
#include "strobe/trace/timeline.h"

namespace strobe::app {

// Adds what FOLDER/cores.runs holds, if it is there, to the timeline that the spool of that folder became: of the time
// of the recording, each run with its holder (a tenant, the recorder, the system). Errors: kBadData, kIo.
Result<void> add_core_runs(trace::Timeline& timeline, const std::filesystem::path& folder);

}  // namespace strobe::app
