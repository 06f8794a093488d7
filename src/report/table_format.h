// The one renderer of tables.
#pragma once

#include <string>

#include "base/table.h"
#include "strobe/base/result.h"

namespace strobe::report {

enum class Format : uint8_t { kText, kCsv, kJson };
// "text", "csv", "json". Errors: kUsage naming the three.
Result<Format> parse_format(const std::string& name);

// text: aligned, numbers right, the title above, coverage and notes below; long texts are shortened. csv: RFC 4180,
// header row, full precision, notes left out. json: {"title", "rows": [{column: value}], "coverage"?, "notes"?}; a
// missing value is null.
std::string format_table(const Table& table, Format format);

}  // namespace strobe::report
