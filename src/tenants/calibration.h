// Calibration: how much kinds of work slow each other on this machine, measured in pairs, and how soon its kernel
// serves threads that share cores. The base of what-if and forecast on real cores (docs/forecast.md).
#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "strobe/base/result.h"

namespace strobe::tenants {

struct CalibrationOptions {
  std::vector<int> cores;             // the first two are used: one for the measured work, one for its neighbour
  double seconds_each = 0.5;          // of each measurement
  int rounds = 3;                     // of all pairs, of which the median counts
  int wake_ups = 600, balances = 80;  // so often each is measured; 0: not
  const std::atomic<bool>* stop = nullptr;
};

struct PairCalibration {
  std::vector<std::string> classes;    // "compute", "bandwidth"
  std::vector<std::vector<double>> a;  // [x][y]: time of x beside y / time of x alone - 1, at least 0
  // How soon the kernel serves run queues, in ms: quantiles in equal steps from 0 to 1. wake_up: from when a thread
  // should wake up on a core that another one keeps busy until it runs; balance: from when a core becomes idle until it
  // takes one of the two threads that are busy on the other core. Empty: not measured.
  std::vector<double> wake_up_ms{}, balance_ms{};
  double seconds = 0;  // that it took
};

// Errors: kUnsupported (fewer than two cores), kInterrupted.
Result<PairCalibration> calibrate(const CalibrationOptions& options);

// {"classes": [...], "a": [[...]], ...}, as forecast and what-if read it. Work that engines call small, and what stages
// do without an engine ("cpu"), count as compute; copies as bandwidth.
std::string calibration_json(const PairCalibration& calibration);

}  // namespace strobe::tenants
