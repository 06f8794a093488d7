// What the commands that ask a trace share: opening it, and printing the answer.
#pragma once

#include <string>

#include "base/table.h"
#include "report/table_format.h"
#include "strobe/base/result.h"
#include "strobe/trace/timeline.h"

namespace strobe::app {

// A trace of Strobe (a file, a folder with one, what a recorder left), or another tool's file, which is imported.
Result<trace::Timeline> open_any_trace(const std::string& path);

void print_table(const Table& table, report::Format format);

}  // namespace strobe::app
