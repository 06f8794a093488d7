// How a critical path is printed.
#pragma once

#include <string>

#include "analyze/critical_path.h"
#include "report/table_format.h"

namespace strobe::app {

// `table`, which tells of `path`, in a format; as JSON with the graph's figures as members before its own.
std::string critical_path_text(const analyze::CriticalPath& path, const Table& table, report::Format format);

// "node 12, edge 3"
std::string counts_text(const std::vector<std::pair<std::string, size_t>>& counts);

}  // namespace strobe::app
