// The trace file: SQLite, whose tables are those of an Nsight Systems export where the concept exists, plus STROBE_*
// tables (docs/trace-format.md).
#pragma once

#include <filesystem>

#include "strobe/base/result.h"
#include "strobe/trace/timeline.h"

namespace strobe::trace {

// Raised when a reader of the old tables would misread the new ones.
inline constexpr int kStoreVersion = 1;

// Writes the whole timeline; the file appears under its name when complete. Errors: kIo (no space, not writable).
Result<void> write_store(const Timeline& timeline, const std::filesystem::path& path);
// Errors: kNotFound, kBadData (not SQLite, not a Strobe trace, written by a newer version: says which).
Result<Timeline> read_store(const std::filesystem::path& path);

}  // namespace strobe::trace
