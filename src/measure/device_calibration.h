// How fast this device is through an engine, for predictions that start from operations and bytes.
#pragma once

#include <atomic>
#include <string>

#include "strobe/base/result.h"

namespace strobe::measure {

struct DeviceCalibration {
  std::string engine, version, device;
  int threads = 1;
  double seconds = 0;  // that it took
  // 1e9 operations a second in inference, a multiply-add counts 2: convolutions 1x1, 3x3 and depthwise 3x3 with
  // stride 1, linear layers; of sizes that fill the caches and the vector units.
  double conv1x1_gflops = 0, conv3x3_gflops = 0, depthwise_gflops = 0, linear_gflops = 0;
  double memory_gbytes = 0;  // 1e9 bytes a second: reads and writes of arrays beyond the caches (triad), all threads
  double launch_us = 0;      // what one more layer costs that has next to nothing to compute
  // Of a GPU: its name, empty where nothing tells it; GB/s of values that a run brings there, through pinned memory;
  // MiB that a process holds of it besides what the engine's allocator has (context, code of kernels, libraries'
  // workspaces), 0 where that is not told.
  std::string device_name = {};
  double copy_gbytes = 0, context_mib = 0;
};

// In a process of its own, for about that many seconds (30 s give figures that repeat to a few percent). Rates are the
// cost of one layer more in a chain of equal ones, so that what a run costs by itself drops out; of the runs the
// fastest tenth counts, since others only slow them. On a GPU ("cuda:N") batches grow until a layer takes long beside
// its launch, chains begin and end with few values, and the memory is that of activations. threads: 0 is the allowed
// cores. Errors: kInterrupted, kEngine, those of loading; kUnsupported (a device that is not there, an engine for
// CPUs).
Result<DeviceCalibration> calibrate_device(const std::string& engine, const std::string& device, int threads,
                                           double seconds, const std::atomic<bool>* stop = nullptr);

// {"schema": 1, "engine": ..., "conv1x1_gflops": ..., ...}, with the facts of the machine.
std::string calibration_json(const DeviceCalibration& calibration);
// Errors: kBadData.
Result<DeviceCalibration> parse_calibration(const std::string& text);

}  // namespace strobe::measure
