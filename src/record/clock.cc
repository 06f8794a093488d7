#include "record/clock.h"

#include <algorithm>
#include <cmath>
#include <fstream>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace strobe::record {
namespace {

constexpr double kMaxTime = 8e18;  // ns; below what 64 bits hold

int64_t realtime_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return now.tv_sec * 1'000'000'000LL + now.tv_nsec;
}

bool invariant_counter() {
#if defined(__x86_64__)
  unsigned a = 0;
  unsigned b = 0;
  unsigned c = 0;
  unsigned d = 0;
  return __get_cpuid(0x80000007, &a, &b, &c, &d) != 0 && (d >> 8 & 1) != 0;
#else
  return false;
#endif
}

}  // namespace

ClockChoice choose_clock(bool invariant, const std::string& clocksource) {
  if (!invariant) return {false, "monotonic (the processor has no invariant time-stamp counter)"};
  // Clock sources of hypervisors are computed from the counter; hpet and acpi_pm mean that the kernel distrusts it.
  const bool trusted = clocksource.empty() || clocksource == "tsc" || clocksource == "kvm-clock" ||
                       clocksource == "hyperv_clocksource_tsc_page" || clocksource == "xen";
  if (!trusted)
    return {false, "monotonic (the kernel does not trust the time-stamp counter and uses " + clocksource + ")"};
  return {true, "tsc"};
}

ClockChoice choose_clock() {
  std::string source;
  std::ifstream("/sys/devices/system/clocksource/clocksource0/current_clocksource") >> source;
  return choose_clock(invariant_counter(), source);
}

ClockPair sample_clocks(bool counter) {
  ClockPair best;
  for (int attempt = 0; attempt < 10; ++attempt) {
    const int64_t before = monotonic_ns();
    const uint64_t reading = read_clock(counter);
    const int64_t wall = realtime_ns();
    const int64_t after = monotonic_ns();
    const int64_t width = after - before;
    if (attempt > 0 && width >= best.width_ns) continue;
    const int64_t middle = before + width / 2;
    best = {counter ? reading : static_cast<uint64_t>(middle), middle, wall, width};
  }
  return best;
}

ClockMap::ClockMap(bool counter, std::vector<ClockPair> pairs) : counter_(counter) {
  std::stable_sort(pairs.begin(), pairs.end(),
                   [](const ClockPair& a, const ClockPair& b) { return a.monotonic_ns < b.monotonic_ns; });
  for (const ClockPair& pair : pairs) {
    if (pair.monotonic_ns < 0 || static_cast<double>(pair.monotonic_ns) > kMaxTime / 2) {
      ++rejected_;
      continue;
    }
    if (!pairs_.empty() && pair.monotonic_ns == pairs_.back().monotonic_ns) continue;
    if (!pairs_.empty() && pair.counter <= pairs_.back().counter) {
      ++rejected_;
      continue;
    }
    pairs_.push_back(pair);
  }
  if (pairs_.size() >= 2) {
    overall_ = static_cast<double>(pairs_.back().monotonic_ns - pairs_.front().monotonic_ns) /
               static_cast<double>(pairs_.back().counter - pairs_.front().counter);
  }
}

int64_t ClockMap::to_monotonic_ns(uint64_t reading) const {
  if (!counter_ || pairs_.empty()) return static_cast<int64_t>(reading);
  const auto extrapolate = [&](const ClockPair& from) {
    const double ns = std::round(static_cast<double>(static_cast<int64_t>(reading - from.counter)) * overall_);
    // A damaged reading can be anything; the result stays a number.
    return from.monotonic_ns + static_cast<int64_t>(std::clamp(ns, -kMaxTime / 2, kMaxTime / 2));
  };
  if (reading <= pairs_.front().counter) return extrapolate(pairs_.front());
  if (reading >= pairs_.back().counter) return extrapolate(pairs_.back());
  if (last_ + 1 >= pairs_.size() || reading < pairs_[last_].counter || reading >= pairs_[last_ + 1].counter) {
    const auto after = std::upper_bound(pairs_.begin(), pairs_.end(), reading,
                                        [](uint64_t value, const ClockPair& pair) { return value < pair.counter; });
    last_ = static_cast<size_t>(after - pairs_.begin()) - 1;
  }
  const ClockPair& a = pairs_[last_];
  const ClockPair& b = pairs_[last_ + 1];
  const double share = static_cast<double>(reading - a.counter) / static_cast<double>(b.counter - a.counter);
  return a.monotonic_ns + std::llround(share * static_cast<double>(b.monotonic_ns - a.monotonic_ns));
}

uint64_t ClockMap::widen(uint64_t cut) const {
  const uint64_t base = pairs_.empty() ? 0 : pairs_.front().counter;
  const uint64_t ahead = (cut - base) & kClockMask;
  // Readings a little before the first pair come out as almost a full turn ahead.
  return ahead > kClockMask / 2 ? base - (kClockMask + 1 - ahead) : base + ahead;
}

}  // namespace strobe::record
