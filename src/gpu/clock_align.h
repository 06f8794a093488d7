// CUPTI's clock (CLOCK_REALTIME, which steps) onto the recorder's (CLOCK_MONOTONIC).
#pragma once

#include <cstdint>
#include <vector>

#include "gpu/activity.h"

namespace strobe::gpu {

// Straight lines between neighbouring pairs; outside of them the offset of the nearest one. Where the clock was set in
// between (the two rates differ by more than any slewing does) a line would bend the times of a second's work: before
// the step the earlier pair's offset holds, after it the later one's, and steps are counted. Times that a clock which
// was set back showed twice are taken for the later ones.
class ClockAlignment {
 public:
  explicit ClockAlignment(std::vector<ClockPair> pairs);
  bool empty() const { return pairs_.empty(); }
  int64_t to_monotonic_ns(uint64_t cupti_ns) const;
  uint64_t steps() const { return steps_; }
  // Half the widest bracket of the pairs that are used: how far a pair itself may be off.
  int64_t uncertainty_ns() const { return uncertainty_ns_; }

 private:
  struct Point {
    int64_t cupti_ns, monotonic_ns;
    bool steps_to_next;
  };
  std::vector<Point> pairs_;
  uint64_t steps_ = 0;
  int64_t uncertainty_ns_ = 0;
};

}  // namespace strobe::gpu
