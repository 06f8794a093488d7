// A timeline as the page's script reads it.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "strobe/trace/timeline.h"

namespace strobe::report {

// {"names", "duration_ns", "run_ns": [start, end], "lanes": [{"name", "pid", "process"}],
//  "rows": [{"lane", "depth", "async", "n", "times", "names", "frames", "open"}], "flows", "marks", "args", "notes"}
//
// A row is one line of boxes on the screen. Its ranges never overlap and stand in order, so that the script finds what
// is visible by bisection whatever the trace's size. Columns are packed as packing.h says:
//   times   gap from the end before, duration, alternating
//   names   index into "names"
//   frames  difference to the frame before, signed
nlohmann::ordered_json timeline_json(const trace::Timeline& timeline);

}  // namespace strobe::report
