// Reads the folder that a recorder wrote, whether its processes ended well, were killed or are still running.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "strobe/base/result.h"

namespace strobe::record {

struct SpoolEvent {
  enum class Type : uint8_t {
    kRangeBegin,  // name, frame, category
    kRangeEnd,
    kAsyncBegin,  // name, id, frame, category
    kAsyncEnd,    // name, id
    kArgumentInt,
    kArgumentDouble,
    kArgumentText,  // of the innermost open range of the thread or of_event: name is the key
    kFlowOut,
    kFlowIn,       // name, id
    kMark,         // name, frame, category
    kCounter,      // name, number; integer too where it was recorded as one
    kThreadName,   // text
    kFact,         // name is the key, text
    kDropped,      // integer: records lost here because the ring was full
    kAsyncEndAny,  // id: of the latest one that began with it
  } type{};
  int64_t time_ns = 0;  // CLOCK_MONOTONIC
  std::string_view name;
  int64_t frame = -1;
  uint64_t id = 0;
  int64_t integer = 0;
  double number = 0;
  std::string_view text;
  std::string_view category, domain;  // empty: none
  bool of_event = false;              // an argument of the thread's last mark, asynchronous begin or end
  bool of_thread = false;             // a counter of the thread, not of the process
};

struct SpoolThread {
  int32_t pid = 0;
  int32_t tid = 0;
  std::string_view process_name;
  int64_t utc_minus_monotonic_ns = 0;  // adds up to wall-clock time, as sampled at start
  bool ended = false;  // false: killed or still running; all acknowledged records are there all the same
};

struct SpoolSummary {
  uint64_t threads = 0, events = 0, dropped = 0;
  std::map<std::string, uint64_t> faults;    // unreadable parts by kind; the rest was read
  std::map<std::string, std::string> facts;  // of the recorder: "clock" = "tsc" or "monotonic (...)", ...
};

// Calls on_event for every event, thread by thread, in the order in which each thread wrote them. Views live until the
// call returns. Errors: kNotFound (no such folder), kBadData (no spool in it); damaged files are counted in faults.
Result<SpoolSummary> read_spool(const std::filesystem::path& folder,
                                const std::function<void(const SpoolThread&, const SpoolEvent&)>& on_event);

}  // namespace strobe::record
