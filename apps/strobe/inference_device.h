// How fast an engine is on this machine, for predictions of inference.
#pragma once

#include <atomic>
#include <string>

#include "measure/device_calibration.h"
#include "predict/layer_speed.h"
#include "strobe/base/result.h"

namespace strobe::app {

// file: of `strobe calibrate --engine`; empty: measured now, for so many seconds. threads: of a session. device: "cpu"
// or "cuda:N"; name: of that GPU, empty where it is not known. Errors: those of the file or of measuring; kUsage where
// the file speaks of another engine, or of another kind of device.
Result<measure::DeviceCalibration> device_calibration(const std::string& engine, const std::string& device,
                                                      const std::string& name, int threads, const std::string& file,
                                                      double seconds, const std::atomic<bool>& stop);

predict::InferenceDevice inference_device(const measure::DeviceCalibration& calibration);

}  // namespace strobe::app
