// Everything that the page shows of one run: the answers of the analyses, counters, facts, losses and the timeline.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "base/table.h"
#include "report/html_report.h"

namespace strobe::report {

// {"columns": [...], "rows": [[...]], "notes", "coverage"?}: cells in place, a missing one is null.
nlohmann::ordered_json table_json(const Table& table);

nlohmann::ordered_json run_json(const ReportInput& run);

// Whether frames passed stages; else the page speaks of ranges alone.
bool is_pipeline(const trace::Timeline& timeline);

}  // namespace strobe::report
