// Times of single runs out of counters that hold means.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace strobe::engines {

// For a framework whose counters hold, by kernel, the mean time of all runs so far, cut to whole microseconds
// (OpenVINO): one run is what the sum grew by. The k-th run is known to about k microseconds; what one run got too much
// is taken from the next ones, so that the mean of several runs is known to one. It must be told every run.
class RunningMeans {
 public:
  explicit RunningMeans(size_t kernels) : told_ns_(kernels) {}

  void next_run() { ++runs_; }
  // Of the run that next_run() began; once a kernel and run. At least 1.
  int64_t last_run_ns(size_t kernel, int64_t mean_us);

 private:
  int64_t runs_ = 0;
  std::vector<int64_t> told_ns_;  // by kernel: the sum of what was returned
};

}  // namespace strobe::engines
