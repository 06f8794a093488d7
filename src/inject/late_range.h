// Intervals that a program tells of after they have begun (submitted frames, events with an end): the recorder writes
// only what happens now, so they are marks that say how long ago, and `strobe record` makes ranges of them.
#pragma once

#include <cstdint>
#include <string_view>

#include "strobe/record/annotate.h"

namespace strobe::inject {

// Name of the category of such marks, and of their arguments: nanoseconds before the mark.
inline constexpr std::string_view kLateRange = "strobe.late_range";
inline constexpr std::string_view kBeganAgo = "began_ns_ago";
inline constexpr std::string_view kEndedAgo = "ended_ns_ago";

// Of CLOCK_MONOTONIC.
int64_t now_ns();
void put_late_range(record::Name name, std::string_view domain, int64_t begin_ns, int64_t end_ns);

}  // namespace strobe::inject
