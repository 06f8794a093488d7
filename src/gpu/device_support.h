// Whether a device's counters can be had, before anything is asked of them.
#pragma once

#include <string>

#include "gpu/cupti_metrics.h"
#include "strobe/base/result.h"

namespace strobe::gpu {

// Initialises the profiler, and gives the chip as CUPTI calls it ("GH100"). Errors: kUnsupported, with CUPTI's code.
Result<std::string> chip_of(const CuptiMetrics& cupti, int device_number);

// api: cupti::kApiPmSampling or kApiRangeProfiling; handle: the driver's CUdevice. Errors: kUnsupported, with what is
// in the way (architecture, virtual GPU, confidential computing, ...).
Result<void> check_support(const CuptiMetrics& cupti, int handle, const std::string& chip, int api);

}  // namespace strobe::gpu
