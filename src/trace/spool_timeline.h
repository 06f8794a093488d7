// Turns the recorder's events into a timeline: what began and ended where, what belongs together.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

#include "record/spool_reader.h"
#include "strobe/trace/timeline.h"

namespace strobe::trace {

// Takes events thread by thread, each thread's in the order in which it wrote them; a thread may come back. What does
// not fit together (a pop without a push, an end without a begin) is counted by kind in losses, and the rest is kept.
class SpoolTimeline {
 public:
  void add(const record::SpoolThread& thread, const record::SpoolEvent& event);

  // Time 0 is the earliest event; ranges without an end get the latest one's time. Leaves this object empty.
  Timeline take();

 private:
  struct Thread {
    int32_t lane = 0;
    int64_t utc_minus_monotonic_ns = 0;
    std::vector<int32_t> open;  // rows of ranges, outermost first
    // What the arguments "of the last event" belong to.
    enum class Event : uint8_t { kOther, kMark, kAsync } last_event = Event::kOther;
    uint32_t event_row = 0;  // of marks, or a Point's order
  };
  // Either end of something that is matched by name and id once everything is known.
  struct Point {
    int32_t pid;
    StringId name;
    uint64_t id;
    int64_t time_ns;
    bool is_end;
    int32_t row;  // of the range: the one that begins here, or the innermost one around a flow's end
    int32_t lane;
    bool any_name = false;
    uint32_t order = 0;
  };
  using Value = std::variant<int64_t, double, StringId>;
  struct AsyncArgument {
    uint32_t point;  // Point::order
    StringId key;
    Value value;
  };
  struct Fact {
    int64_t time_ns;
    std::string value;
  };

  Thread& thread_of(const record::SpoolThread& thread);
  int32_t begin_range(const record::SpoolEvent& event, StringId name, int32_t lane, bool is_async);
  void add_argument(const record::SpoolEvent& event, const Thread& thread);
  void name_async_ends();
  void match_async();
  void match_flows();
  void rebase_times();
  void fault(const char* kind) { ++timeline_.losses.faults[kind]; }
  static bool same_key(const Point& a, const Point& b);
  static bool by_key_and_time(const Point& a, const Point& b);

  Timeline timeline_;
  std::unordered_map<int64_t, Thread> threads_;  // by pid and tid
  Thread* current_ = nullptr;
  int64_t current_key_ = -1;
  std::map<int32_t, size_t> process_rows_;
  std::vector<Point> async_, flows_;
  std::vector<AsyncArgument> async_arguments_;
  std::map<std::string, Fact> facts_;
  int64_t first_ns_ = 0, last_ns_ = 0, utc_minus_monotonic_ns_ = 0;
  bool empty_ = true;
};

}  // namespace strobe::trace
