// One event of a Chrome trace (as PyTorch's profiler, Perfetto's JSON and many others write it), as views of its text.
#pragma once

#include <string_view>
#include <vector>

#include "base/json_scan.h"
#include "strobe/trace/timeline.h"

namespace strobe::importers {

struct EventArgument {
  std::string_view key;
  json::Value value;
};

struct Event {
  char phase = 0;  // 0: the event has none
  bool binds_to_enclosing = false;
  json::Value name, category, pid, tid, time, duration, id, local_id;
  std::vector<EventArgument> args;
};

// The object that begins at `at`. kBad also for an object in which a main member stands twice: two events torn
// together.
json::Scan scan_event(const char*& at, const char* end, Event& event);

// What an event's category says. Names as PyTorch 1.8 (2021) to 2.x write them.
struct Category {
  trace::RangeKind kind = trace::RangeKind::kAnnotation;
  bool known = false;         // one of PyTorch's
  bool on_stream = false;     // its pid and tid are a device and a stream
  bool launch_arrow = false;  // flows of it say what correlation numbers say
};
Category category_of(std::string_view name);

}  // namespace strobe::importers
