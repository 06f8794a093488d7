// Calibration: how much kinds of work slow each other on this machine, measured in pairs, and how soon its kernel
// serves threads that share cores. The base of what-if and forecast on real cores (docs/forecast.md).
#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "strobe/base/result.h"
#include "tenants/run_queue_probe.h"

namespace strobe::tenants {

struct CalibrationOptions {
  std::vector<int> cores;           // the first two are used: one for the measured work, one for its neighbour
  double seconds_each = 0.5;        // of each measurement
  int rounds = 3;                   // of all pairs, of which the median counts
  RunQueueProbeOptions run_queues;  // of these cores; how often each thing is tried
  const std::atomic<bool>* stop = nullptr;
};

struct PairCalibration {
  std::vector<std::string> classes;    // "compute", "bandwidth"
  std::vector<std::vector<double>> a;  // [x][y]: time of x beside y / time of x alone - 1, at least 0
  RunQueueProbe run_queues{};
  double seconds = 0;  // that it took
};

// Errors: kUnsupported (fewer than two cores), kInterrupted.
Result<PairCalibration> calibrate(const CalibrationOptions& options);

// {"classes": [...], "a": [[...]], ...}, as forecast and what-if read it. Work that engines call small, and what stages
// do without an engine ("cpu"), count as compute; copies as bandwidth.
std::string calibration_json(const PairCalibration& calibration);

}  // namespace strobe::tenants
