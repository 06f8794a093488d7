// What a recorder left in a folder, with all logs beside it, as one timeline.
#pragma once

#include <filesystem>

#include "strobe/base/result.h"
#include "strobe/trace/timeline.h"

namespace strobe::app {

// What a recorder left in a folder: its spool, the logs of GPUs and FOLDER/cores.runs (each run with its holder: a
// tenant, the recorder, the system). A log of core runs that is damaged, or lacks some, is left out; the fact
// tenants.core_runs says why. Errors: as gpu::import_folder.
Result<trace::Timeline> import_recording(const std::filesystem::path& folder);

}  // namespace strobe::app
