// Tables that were added to version 2 of the trace file after its first release, which a file may lack: categories of
// ranges and marks, arguments of marks, threads of counters, who ran on the cores, where nodes of graphs were captured.
#pragma once

#include <vector>

#include "strobe/base/result.h"
#include "strobe/trace/timeline.h"
#include "trace/sqlite.h"
#include "trace/store.h"
#include "trace/store_rows.h"

namespace strobe::trace {

// To be called when the timeline has its ranges, operations, marks, counters and lanes. strings: by id in the file.
Result<void> read_additions(Database& database, ReadBudget& budget, const std::vector<StringId>& strings,
                            Timeline& timeline, StoreParts parts);

}  // namespace strobe::trace
