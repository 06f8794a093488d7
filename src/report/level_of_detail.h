// What is drawn of rows with more ranges than a page can hold: long ranges as they are, short ones of the same stretch
// of time together as one box, and all of them in a stretch at the beginning.
#pragma once

#include <cstdint>
#include <vector>

#include "strobe/trace/timeline.h"

namespace strobe::report {

// Which ranges stand for themselves.
struct Detail {
  int64_t shortest_ns = 0;                      // these and longer ones; 0: all of them
  int64_t full_from_ns = 0, full_until_ns = 0;  // shorter ones as well where they start in [from, until)
  size_t drawn_together = 0;                    // ranges that do not stand for themselves
};

// Rows: the ranges of each line, in order of start. The finest detail that makes at most about `most` boxes; full
// detail from `from_ns` on, as long as a third of them lasts.
Detail choose_detail(const trace::Ranges& ranges, const std::vector<const std::vector<int32_t>*>& rows, size_t most,
                     int64_t from_ns);

struct Box {
  int32_t range = trace::kNone;  // the one, or of several the one whose name has most of their time
  int64_t start_ns = 0, end_ns = 0;
  int64_t busy_ns = 0;  // of the ranges in it, which may have gaps
  int64_t count = 1;
};

// The boxes of one line.
std::vector<Box> boxes_of(const trace::Ranges& ranges, const std::vector<int32_t>& row, const Detail& detail);

}  // namespace strobe::report
