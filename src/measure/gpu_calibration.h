// The part of a device's calibration that is of GPUs.
#pragma once

#include "measure/device_calibration.h"
#include "strobe/engines/engine.h"

namespace strobe::measure {

// Fills in what is measured; engine, device and threads are set. To be called in a process that has not touched the
// device. Errors: kUnsupported (a device that is not there), kEngine.
Result<void> calibrate_gpu(engines::Engine& engine, double seconds, DeviceCalibration& found);

}  // namespace strobe::measure
