// The events of a timeline as HolisticTraceAnalysis 0.6.1 sees them: which it keeps, in whole microseconds, how calls
// and device events correlate.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "analyze/critical_path.h"
#include "strobe/base/result.h"
#include "strobe/trace/timeline.h"

namespace strobe::analyze::hta {

inline constexpr int64_t kNotDevice = -1;

struct Event {
  int32_t range = trace::kNone;
  int64_t start = 0, end = 0;   // nanoseconds, of a Kineto trace at whole microseconds
  int64_t stream = kNotDevice;  // HTA's column `stream`; waits for an event or a context have none either
  int64_t correlation = -1;     // -1: none
  int32_t partner = -1;         // HTA's index_correlation: event; -1: no correlation, kUnlinked: to nothing kept
  int32_t pid = 0, tid = 0;
  uint8_t sync_type = 0;  // of device events, as DeviceOp's
  bool is_call = false;   // a framework's operation or a call of the runtime or driver
  bool is_annotation = false;
  bool in_window = false;
  int64_t duration() const { return end - start; }
};
inline constexpr int32_t kUnlinked = -2;

struct Events {
  // A launch, or an operation of a device and its launch, before all that `all` has of launches.
  struct Queued {
    int32_t range = trace::kNone, partner = trace::kNone;  // ranges
    bool is_launch = false;
  };
  std::vector<Event> all;      // in the order of the timeline's ranges: the window's, and what their edges depend on
  std::vector<Queued> before;  // of these only the length of each stream's queue counts
  int64_t start = 0, end = 0;  // the window
};

// Errors: kNotFound where the choice names no range or instance.
Result<Events> events_of(const trace::Timeline& timeline, const WindowChoice& choice);

}  // namespace strobe::analyze::hta
