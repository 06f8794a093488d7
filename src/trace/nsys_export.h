// A timeline as the SQLite export of Nsight Systems that it would have been: its tables are tables, there is nothing
// else in the file, and programs made for such exports accept it.
#pragma once

#include <filesystem>

#include "strobe/base/result.h"
#include "strobe/trace/timeline.h"

namespace strobe::trace {

// All tables of docs/trace-format.md's "Tables of an Nsight Systems export", also those without rows. The file appears
// under its name when complete. What an export has no place for (frames, flows, counters, layers, arguments) is not in
// it. Errors: kIo.
Result<void> write_nsys(const Timeline& timeline, const std::filesystem::path& path);

}  // namespace strobe::trace
