// How fast an engine is on this machine, for predictions of inference.
#pragma once

#include <atomic>
#include <string>

#include "measure/device_calibration.h"
#include "predict/layer_speed.h"
#include "strobe/base/result.h"

namespace strobe::app {

// file: of `strobe calibrate --engine`; empty: measured now, for so many seconds. threads: of a session. Errors: those
// of the file or of measuring; kUsage where the file speaks of another engine.
Result<measure::DeviceCalibration> device_calibration(const std::string& engine, int threads, const std::string& file,
                                                      double seconds, const std::atomic<bool>& stop);

predict::InferenceDevice inference_device(const measure::DeviceCalibration& calibration);

}  // namespace strobe::app
