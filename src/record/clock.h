// The recorder's clock: the processor's time-stamp counter where it ticks evenly, CLOCK_MONOTONIC elsewhere, and the
// conversion of its readings to CLOCK_MONOTONIC.
#pragma once

#include <time.h>

#include <cstdint>
#include <string>
#include <vector>

#include "record/layout.h"

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace strobe::record {

struct ClockChoice {
  bool counter = false;
  std::string note;  // "tsc", or "monotonic (why)"
};

// `clocksource`: the kernel's choice, as in /sys/devices/system/clocksource; empty: unknown.
ClockChoice choose_clock(bool invariant_counter, const std::string& clocksource);
ClockChoice choose_clock();

inline int64_t monotonic_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1'000'000'000LL + now.tv_nsec;
}

// Plain rdtsc: rdtscp, which waits for earlier instructions, costs 13 ns more a pair and buys nothing for ranges.
inline uint64_t read_clock(bool counter) {
#if defined(__x86_64__)
  if (counter) [[likely]]
    return __rdtsc();
#else
  (void)counter;
#endif
  return static_cast<uint64_t>(monotonic_ns());
}

// Reads all clocks at once: the tightest of several tries.
ClockPair sample_clocks(bool counter);

// Readings to CLOCK_MONOTONIC: straight lines between neighbouring pairs. Outside of the pairs the rate is that of the
// whole recording, so that two pairs close to each other do not set the direction.
class ClockMap {
 public:
  ClockMap(bool counter, std::vector<ClockPair> pairs);
  int64_t to_monotonic_ns(uint64_t reading) const;
  // Pairs left out because they contradict their neighbours (a counter that was set back).
  uint64_t rejected() const { return rejected_; }
  double ticks_per_ns() const { return overall_ > 0 ? 1 / overall_ : 0; }
  // Undoes the cut to kClockBits: the full reading nearest to the recording's start.
  uint64_t widen(uint64_t cut) const;

 private:
  bool counter_;
  std::vector<ClockPair> pairs_;  // by counter, strictly ascending
  uint64_t rejected_ = 0;
  double overall_ = 1;  // ns a tick
  mutable size_t last_ = 0;
};

}  // namespace strobe::record
