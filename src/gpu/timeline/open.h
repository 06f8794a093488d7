// Recordings and traces with their GPU work: what trace/spool_import.h and trace/open.h do, and add_gpu_logs().
#pragma once

#include <filesystem>

#include "strobe/base/result.h"
#include "strobe/trace/timeline.h"
#include "trace/store.h"

namespace strobe::gpu {

// The timeline of a recorder's folder. Errors: as trace::import_spool and add_gpu_logs.
Result<trace::Timeline> import_folder(const std::filesystem::path& folder);

// trace::open_trace, with import_folder for what a recorder left.
Result<trace::Timeline> open_trace(const std::filesystem::path& path,
                                   trace::StoreParts parts = trace::StoreParts::kAll);

}  // namespace strobe::gpu
