// Repeated timing of a step: warm-up until stationary, repetitions until the mean is known well enough, and again where
// other programs disturbed it.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <vector>

#include "measure/interference.h"
#include "strobe/base/result.h"

namespace strobe::measure {

// Tells from the durations of the steps so far whether they have become stationary: the medians of the last two windows
// of equal size differ by at most 5 %, and the steps in them do not fall by more than 2 % in five sixths of the places
// or more from one to the next (a warm-up that goes on slowly). A window is as many steps as take 20 ms, at least 3.
class WarmUp {
 public:
  // Whether it is stationary with this one, in ms.
  bool add(double ms);
  size_t steps() const { return ms_.size(); }

 private:
  std::vector<double> ms_;
};

// What is told of a sample of durations; definitions of quantiles in base/statistics.h.
struct Summary {
  double mean = 0, median = 0, p5 = 0, p95 = 0;
  double half_width = 0;  // of the 95 % interval of the mean (Student's t, independent values) / mean
};
Summary summarise(const std::vector<double>& values);

// 97.5 % quantile of Student's t: tabulated up to 10 degrees of freedom, above by Fisher & Cornish 1960 (error < 1e-4).
double student_t975(size_t degrees);

struct TimingOptions {
  int repetitions = 5, most_repetitions = 500;  // at least, at most
  double half_width = 0.02;                     // enough when reached, after 0.2 s
  double measure_s = 5;                         // enough when over, after `repetitions`
  double warmup_s = 5;                          // longest warm-up; at least one step
  int attempts = 3;                             // while disturbed; the least disturbed one is kept
  double pause_s = 0.5;                         // before the second attempt; twice that before the third, ...
  int cpus = 1, threads = 1;                    // for interference_between
  gpu::DeviceWatch* watch = nullptr;            // of a GPU: sampled between two steps, each 50 ms
};

struct Timing {
  std::vector<double> ms;  // of each repetition
  size_t warmup_steps = 0;
  bool stationary = false;  // false: the warm-up ran out of time
  int attempts = 0;
  Interference interference;
};

std::chrono::steady_clock::time_point seconds_from_now(double seconds);

// Seconds of a step, for rates of a device, which others only make slower: the fastest tenth of the steps until then,
// after three to warm up; at least five. Errors: the step's.
Result<double> fastest_seconds(const std::function<Result<void>()>& step, std::chrono::steady_clock::time_point until);

// Errors: the step's.
Result<Timing> time_steps(const std::function<Result<void>()>& step, const TimingOptions& options);

}  // namespace strobe::measure
