#include "inference_device.h"

#include <fmt/format.h>

#include "base/file.h"

namespace strobe::app {

Result<measure::DeviceCalibration> device_calibration(const std::string& engine, const std::string& device,
                                                      const std::string& name, int threads, const std::string& file,
                                                      double seconds, const std::atomic<bool>& stop) {
  if (file.empty()) return measure::calibrate_device(engine, device, threads, seconds, &stop);
  STROBE_ASSIGN(const std::string text, read_file(file));
  auto read = measure::parse_calibration(text);
  if (!read) return std::move(read).error().at(file);
  if (read->engine != engine)
    return usage_error(fmt::format("it is of engine {}, and {} was asked for", read->engine, engine)).at(file);
  if ((read->device == "cpu") != (device == "cpu"))
    return usage_error(fmt::format("it is of device {}, and {} was asked for: strobe calibrate --engine {} --device {}",
                                   read->device, device, engine, device))
        .at(file);
  if (!name.empty() && !read->device_name.empty() && read->device_name != name)
    return usage_error(fmt::format("it is of a {}, and {} is a {}", read->device_name, device, name)).at(file);
  return read;
}

predict::InferenceDevice inference_device(const measure::DeviceCalibration& calibration) {
  using predict::WorkKind;
  predict::InferenceDevice device;
  const auto peak = [&device](WorkKind kind) -> double& {
    return device.limits.peak_gflops[static_cast<size_t>(kind)];
  };
  peak(WorkKind::kDepthwise) = calibration.depthwise_gflops;
  peak(WorkKind::kPointwise) = calibration.conv1x1_gflops;
  for (const WorkKind kind : {WorkKind::k3x3, WorkKind::kStrided, WorkKind::kOtherConv})
    peak(kind) = calibration.conv3x3_gflops;
  peak(WorkKind::kLinear) = calibration.linear_gflops;
  peak(WorkKind::kMemory) = calibration.conv1x1_gflops;
  device.limits.bandwidth_gb_s = calibration.memory_gbytes;
  device.limits.launch_us = calibration.launch_us;
  // What each engine does with a batch norm or an activation behind a convolution, as `strobe layers --fusion` shows.
  device.fuses = calibration.engine.starts_with("openvino") || calibration.engine.starts_with("opencv") ||
                 calibration.engine.starts_with("tensorrt");
  device.queued = calibration.device != "cpu";
  device.copy_gb_s = calibration.copy_gbytes;
  return device;
}

}  // namespace strobe::app
