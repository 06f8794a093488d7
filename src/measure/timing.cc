#include "measure/timing.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <limits>
#include <thread>

#include "base/statistics.h"

namespace strobe::measure {

namespace {

using Clock = std::chrono::steady_clock;

double ms_since(Clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

constexpr size_t kLeastWindow = 3;
constexpr double kWindowMs = 20, kTolerance = 0.05, kNoFall = 0.02;
constexpr double kLeastMs = 200;  // less, and the kernel's ticks of 10 ms say nothing of others
constexpr double kWatchMs = 50;

// Mean and spread of a growing sample (Welford 1962).
class RunningSpread {
 public:
  void add(double value) {
    ++count_;
    const double from_old = value - mean_;
    mean_ += from_old / static_cast<double>(count_);
    squares_ += from_old * (value - mean_);
  }
  double half_width() const {
    if (count_ < 2 || mean_ <= 0) return 0;
    const auto n = static_cast<double>(count_);
    return student_t975(count_ - 1) * std::sqrt(squares_ / (n - 1) / n) / mean_;
  }

 private:
  size_t count_ = 0;
  double mean_ = 0, squares_ = 0;
};

Result<std::vector<double>> repeat(const std::function<Result<void>()>& step, const TimingOptions& options) {
  std::vector<double> ms;
  ms.reserve(static_cast<size_t>(options.most_repetitions));
  RunningSpread spread;
  double sum_ms = 0;
  auto watched = Clock::now();
  if (options.watch != nullptr) options.watch->restart();
  while (ms.size() < static_cast<size_t>(options.most_repetitions)) {
    const auto start = Clock::now();
    STROBE_TRY(step());
    ms.push_back(ms_since(start));
    sum_ms += ms.back();
    spread.add(ms.back());
    if (options.watch != nullptr && (ms_since(watched) >= kWatchMs || ms.size() == 1)) {
      options.watch->sample();
      watched = Clock::now();
    }
    if (ms.size() < static_cast<size_t>(options.repetitions)) continue;
    if (sum_ms >= options.measure_s * 1e3) break;
    if (sum_ms >= kLeastMs && spread.half_width() <= options.half_width) break;
  }
  return ms;
}

}  // namespace

bool WarmUp::add(double ms) {
  ms_.push_back(ms);
  const size_t by_time = static_cast<size_t>(std::ceil(kWindowMs / std::max(ms, 1e-3)));
  const size_t window = std::max(kLeastWindow, std::min(by_time, size_t{1000}));
  if (ms_.size() < 2 * window) return false;
  const auto last = ms_.end() - static_cast<std::ptrdiff_t>(window);
  const auto before = last - static_cast<std::ptrdiff_t>(window);
  const double earlier = quantile({before, last}, 0.5), later = quantile({last, ms_.end()}, 0.5);
  if (std::abs(later - earlier) > kTolerance * earlier) return false;
  size_t falls = 0;
  for (auto at = before + 1; at != ms_.end(); ++at) falls += *at < *(at - 1) ? 1 : 0;
  return 6 * falls < 5 * (2 * window - 1) || *before - ms_.back() <= kNoFall * *before;
}

double student_t975(size_t degrees) {
  static constexpr std::array<double, 11> kTable = {std::numeric_limits<double>::infinity(),
                                                    12.7062,
                                                    4.3027,
                                                    3.1824,
                                                    2.7764,
                                                    2.5706,
                                                    2.4469,
                                                    2.3646,
                                                    2.3060,
                                                    2.2622,
                                                    2.2281};
  if (degrees < kTable.size()) return kTable[degrees];
  constexpr double z = 1.959964;
  const auto n = static_cast<double>(degrees);
  const double z3 = z * z * z, z5 = z3 * z * z, z7 = z5 * z * z;
  return z + (z3 + z) / (4 * n) + (5 * z5 + 16 * z3 + 3 * z) / (96 * n * n) +
         (3 * z7 + 19 * z5 + 17 * z3 - 15 * z) / (384 * n * n * n);
}

Summary summarise(const std::vector<double>& values) {
  std::vector<double> sorted = values;
  std::sort(sorted.begin(), sorted.end());
  Summary summary;
  summary.mean = mean(values);
  summary.median = quantile_sorted(sorted, 0.5);
  summary.p5 = quantile_sorted(sorted, 0.05);
  summary.p95 = quantile_sorted(sorted, 0.95);
  if (values.size() > 1 && summary.mean > 0)
    summary.half_width = student_t975(values.size() - 1) * standard_deviation(values) /
                         std::sqrt(static_cast<double>(values.size())) / summary.mean;
  return summary;
}

Clock::time_point seconds_from_now(double seconds) {
  return Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

Result<double> fastest_seconds(const std::function<Result<void>()>& step, Clock::time_point until) {
  constexpr int kWarmUps = 3;
  constexpr size_t kLeast = 5;
  constexpr double kFastest = 0.1;
  for (int i = 0; i < kWarmUps; ++i) STROBE_TRY(step());
  std::vector<double> ms;
  while (ms.size() < kLeast || Clock::now() < until) {
    const auto start = Clock::now();
    STROBE_TRY(step());
    ms.push_back(ms_since(start));
  }
  return quantile(std::move(ms), kFastest) / 1e3;
}

Result<Timing> time_steps(const std::function<Result<void>()>& step, const TimingOptions& options) {
  Timing timing;
  WarmUp warm_up;
  const auto begin = Clock::now();
  do {
    const auto start = Clock::now();
    STROBE_TRY(step());
    timing.stationary = warm_up.add(ms_since(start));
  } while (!timing.stationary && ms_since(begin) < options.warmup_s * 1e3);
  timing.warmup_steps = warm_up.steps();

  double pause_s = options.pause_s;
  for (timing.attempts = 1;; ++timing.attempts) {
    const UseCounters before = count_use();
    STROBE_ASSIGN(std::vector<double> ms, repeat(step, options));
    Interference found = interference_between(before, count_use(), options.cpus, options.threads);
    if (options.watch != nullptr) {
      options.watch->sample();
      found.gpu = options.watch->use();
    }
    if (timing.ms.empty() || found.degree() < timing.interference.degree()) {
      timing.ms = std::move(ms);
      timing.interference = found;
    }
    if (!timing.interference.disturbed() || timing.attempts >= options.attempts) return timing;
    std::this_thread::sleep_for(std::chrono::duration<double>(pause_s));
    pause_s *= 2;
  }
}

}  // namespace strobe::measure
