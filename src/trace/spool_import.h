#pragma once

#include <filesystem>

#include "strobe/base/result.h"
#include "strobe/trace/timeline.h"

namespace strobe::trace {

// The timeline of everything in a recorder's folder, processes merged, finished. Errors: as record::read_spool.
Result<Timeline> import_spool(const std::filesystem::path& folder);

}  // namespace strobe::trace
