// One measurement, in a process of its own.
#pragma once

#include <filesystem>
#include <string>

#include "measure/child.h"
#include "measure/measurement_file.h"
#include "measure/profile_config.h"
#include "strobe/base/result.h"

namespace strobe::measure {

// The row of a measurement; one that ran out of memory or time, or died, is a row that did not pass. options: log, stop
// and waiting are used, the timeout is the configuration's. Errors: kInterrupted; what would fail for every batch size
// (an unknown layer, a file that is no network, a machine that does not tell memory).
Result<MeasurementRow> measure_one(const NetworkChoice& network, const MeasurementKey& key, const ProfileConfig& config,
                                   ChildOptions options);

}  // namespace strobe::measure
