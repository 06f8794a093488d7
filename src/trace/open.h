// Finds and opens traces by what a user names: a trace file, a run's output folder, a recorder's folder.
#pragma once

#include <filesystem>
#include <functional>
#include <vector>

#include "strobe/base/result.h"
#include "strobe/trace/timeline.h"
#include "trace/spool_import.h"
#include "trace/store.h"

namespace strobe::trace {

// The trace files that a path stands for, in the order of their names: the file itself; of a folder, its *.sqlite
// files. Empty for a folder without any. Errors: kNotFound, kIo.
Result<std::vector<std::filesystem::path>> trace_files(const std::filesystem::path& path);

// The recorder's folder that a path stands for: its subfolder "spool" (of a run's output folder), else itself.
std::filesystem::path spool_folder(const std::filesystem::path& path);

// The one trace at a path: a trace file, a folder that holds exactly one, or what a recorder left there (killed or
// not), also in its only subfolder with a recording. Errors: as read_store and import_spool; kUsage for a folder with
// several traces or recordings (names them), kNotFound for a folder with none.
// parts: of a trace file; of a recorder's folder all is read, by `import`.
using Import = std::function<Result<Timeline>(const std::filesystem::path& folder)>;
Result<Timeline> open_trace(const std::filesystem::path& path, StoreParts parts = StoreParts::kAll,
                            const Import& import = import_spool);

}  // namespace strobe::trace
