// The trace file: SQLite with tables STROBE_*, and views over them that are the tables of an Nsight Systems export
// where the concept exists (docs/trace-format.md).
#pragma once

#include <cstdint>
#include <filesystem>

#include "strobe/base/result.h"
#include "strobe/trace/timeline.h"

namespace strobe::trace {

// Raised when a reader of the old tables would misread the new ones.
inline constexpr int kStoreVersion = 2;

// Writes the whole timeline; the file appears under its name when complete. Errors: kIo (no space, not writable).
Result<void> write_store(const Timeline& timeline, const std::filesystem::path& path);
// How much of a trace is read; what is left out stays empty in the timeline, and is most of many files.
enum class StoreParts : uint8_t {
  kAll,
  kOperations,  // no arguments, marks, flows, counters
  kRanges,      // neither what devices did beyond their ranges, nor the calls' correlations
};

// Errors: kNotFound, kBadData (not SQLite, not a Strobe trace, written in another version: says which).
Result<Timeline> read_store(const std::filesystem::path& path, StoreParts parts = StoreParts::kAll);

}  // namespace strobe::trace
