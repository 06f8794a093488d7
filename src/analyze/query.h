// SQL on a trace file, which it cannot change.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "base/table.h"
#include "strobe/base/result.h"

namespace strobe::analyze {

struct QuerySink {
  std::function<void(const std::vector<std::string>& columns)> on_columns;  // once, first
  std::function<bool(const std::vector<Cell>& row)> on_row;                 // false: no more
};

// Runs one SELECT (or WITH, VALUES, EXPLAIN, or a PRAGMA that only tells something) on a SQLite file and hands over row
// by row. BLOBs come as "X'..'". The file is opened read-only, and anything that writes, attaches or loads is refused.
// Errors: kNotFound, kBadData (no SQLite file, damaged), kUsage (SQL: with the position).
Result<void> query(const std::filesystem::path& file, const std::string& sql, const QuerySink& sink);

}  // namespace strobe::analyze
