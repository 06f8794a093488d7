// What the commands that ask a trace share: opening it, and printing the answer.
#pragma once

#include <string>

#include "base/table.h"
#include "report/table_format.h"
#include "strobe/base/result.h"
#include "strobe/trace/timeline.h"
#include "trace/store.h"

namespace strobe::app {

// A trace of Strobe (a file, a folder with one, what a recorder left), or another tool's file, which is imported.
// parts: what of a trace file the question needs.
Result<trace::Timeline> open_any_trace(const std::string& path, trace::StoreParts parts = trace::StoreParts::kAll);

void print_table(const Table& table, report::Format format);

}  // namespace strobe::app
