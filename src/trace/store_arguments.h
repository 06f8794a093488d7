// Reading STROBE_ARGUMENT, which may have more rows than there are ranges.
#pragma once

#include "strobe/base/result.h"
#include "strobe/trace/timeline.h"
#include "trace/store_ranges.h"

namespace strobe::trace {

// All rows in their order, with a connection of its own, so that another thread may read other tables meanwhile.
// table.count: of ranges. Errors: kBadData that names the row.
Result<Arguments> read_arguments(const RangeTable& table);

}  // namespace strobe::trace
