// The tables of a trace file that grow with the trace.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "strobe/base/result.h"
#include "strobe/trace/timeline.h"
#include "trace/sqlite.h"

namespace strobe::trace {

// By table: the page at which it begins.
using RootPages = std::map<std::string, int64_t>;
Result<RootPages> root_pages(Database& database);

// Fills these tables, which must be empty, of a file that nobody has open.
Result<void> write_bulk_tables(const Timeline& timeline, const std::filesystem::path& path, const RootPages& roots);

}  // namespace strobe::trace
