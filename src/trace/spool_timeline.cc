#include "trace/spool_timeline.h"

#include <algorithm>
#include <limits>
#include <tuple>

namespace strobe::trace {

using record::SpoolEvent;
using Type = record::SpoolEvent::Type;

namespace {

constexpr int64_t kOpen = std::numeric_limits<int64_t>::min();

// Damaged records may hold any time: differences stop at 36 years instead of overflowing.
constexpr int64_t kLongest = int64_t{1} << 60;

int64_t difference(int64_t later, int64_t earlier) {
  int64_t result = 0;
  return __builtin_sub_overflow(later, earlier, &result) ? kLongest : std::min(result, kLongest);
}

int64_t sum(int64_t a, int64_t b) {
  int64_t result = 0;
  return __builtin_add_overflow(a, b, &result) ? 0 : result;
}

}  // namespace

SpoolTimeline::Thread& SpoolTimeline::thread_of(const record::SpoolThread& thread) {
  const auto key = static_cast<int64_t>((static_cast<uint64_t>(static_cast<uint32_t>(thread.pid)) << 32) |
                                        static_cast<uint32_t>(thread.tid));
  if (current_ && current_key_ == key) return *current_;
  const auto [found, is_new] = threads_.try_emplace(key);
  current_ = &found->second;
  current_key_ = key;
  if (is_new) {
    current_->lane = static_cast<int32_t>(timeline_.lanes.size());
    timeline_.lanes.push_back({Lane::Kind::kThread, thread.pid, thread.tid, 0});
    const auto [row, new_process] = process_rows_.try_emplace(thread.pid, timeline_.processes.size());
    if (new_process) timeline_.processes.push_back({thread.pid, 0});
    Process& process = timeline_.processes[row->second];
    if (process.name == 0) process.name = timeline_.strings.intern(thread.process_name);
  }
  current_->utc_minus_monotonic_ns = thread.utc_minus_monotonic_ns;
  return *current_;
}

int32_t SpoolTimeline::begin_range(const SpoolEvent& event, StringId name, int32_t lane, bool is_async) {
  Ranges& ranges = timeline_.ranges;
  ranges.start_ns.push_back(event.time_ns);
  ranges.end_ns.push_back(kOpen);
  ranges.name.push_back(name);
  ranges.lane.push_back(lane);
  ranges.frame.push_back(event.frame);
  ranges.is_async.push_back(is_async ? 1 : 0);
  if (!event.category.empty() || !event.domain.empty())
    ranges.categorize_last(timeline_.strings.intern(event.category), timeline_.strings.intern(event.domain));
  return static_cast<int32_t>(ranges.size() - 1);
}

void SpoolTimeline::add_argument(const SpoolEvent& event, const Thread& thread) {
  if (!event.of_event && thread.open.empty()) return fault("argument outside any range");
  Value value;
  if (event.type == Type::kArgumentInt)
    value = event.integer;
  else if (event.type == Type::kArgumentDouble)
    value = event.number;
  else
    value = timeline_.strings.intern(event.text);
  const StringId key = timeline_.strings.intern(event.name);
  if (!event.of_event) {
    timeline_.arguments.range.push_back(thread.open.back());
    timeline_.arguments.key.push_back(key);
    timeline_.arguments.value.push_back(value);
  } else if (thread.last_event == Thread::Event::kMark) {
    timeline_.mark_arguments.mark.push_back(static_cast<int32_t>(thread.event_row));
    timeline_.mark_arguments.key.push_back(key);
    timeline_.mark_arguments.value.push_back(value);
  } else if (thread.last_event == Thread::Event::kAsync) {
    async_arguments_.push_back({thread.event_row, key, value});
  } else {
    fault("argument outside any range");
  }
}

void SpoolTimeline::add(const record::SpoolThread& spool_thread, const SpoolEvent& event) {
  Thread& thread = thread_of(spool_thread);
  if (empty_ || event.time_ns < first_ns_) {
    first_ns_ = event.time_ns;
    utc_minus_monotonic_ns_ = thread.utc_minus_monotonic_ns;
  }
  last_ns_ = empty_ ? event.time_ns : std::max(last_ns_, event.time_ns);
  empty_ = false;

  Strings& strings = timeline_.strings;
  const int32_t innermost = thread.open.empty() ? kNone : thread.open.back();
  const bool is_argument =
      event.type == Type::kArgumentInt || event.type == Type::kArgumentDouble || event.type == Type::kArgumentText;
  if (!is_argument) thread.last_event = Thread::Event::kOther;
  switch (event.type) {
    case Type::kRangeBegin:
      thread.open.push_back(begin_range(event, strings.intern(event.name), thread.lane, false));
      break;
    case Type::kRangeEnd:
      if (innermost == kNone) return fault("unmatched pop");
      timeline_.ranges.end_ns[static_cast<size_t>(innermost)] = event.time_ns;
      thread.open.pop_back();
      break;
    case Type::kAsyncBegin:
    case Type::kAsyncEnd:
    case Type::kAsyncEndAny: {
      const StringId name = strings.intern(event.name);
      const bool is_end = event.type != Type::kAsyncBegin;
      const int32_t row = is_end ? kNone : begin_range(event, name, thread.lane, true);
      Point point{spool_thread.pid, name, event.id, event.time_ns, is_end, row, thread.lane};
      point.any_name = event.type == Type::kAsyncEndAny;
      point.order = static_cast<uint32_t>(async_.size());
      async_.push_back(point);
      thread.last_event = Thread::Event::kAsync;
      thread.event_row = point.order;
      break;
    }
    case Type::kArgumentInt:
    case Type::kArgumentDouble:
    case Type::kArgumentText:
      add_argument(event, thread);
      break;
    case Type::kFlowOut:
    case Type::kFlowIn:
      flows_.push_back({spool_thread.pid, strings.intern(event.name), event.id, event.time_ns,
                        event.type == Type::kFlowIn, innermost, thread.lane});
      break;
    case Type::kMark:
      timeline_.marks.time_ns.push_back(event.time_ns);
      timeline_.marks.name.push_back(strings.intern(event.name));
      timeline_.marks.lane.push_back(thread.lane);
      timeline_.marks.frame.push_back(event.frame);
      if (!event.category.empty() || !event.domain.empty())
        timeline_.marks.categorize_last(strings.intern(event.category), strings.intern(event.domain));
      thread.last_event = Thread::Event::kMark;
      thread.event_row = static_cast<uint32_t>(timeline_.marks.size() - 1);
      break;
    case Type::kCounter:
      timeline_.counters.time_ns.push_back(event.time_ns);
      timeline_.counters.name.push_back(strings.intern(event.name));
      timeline_.counters.pid.push_back(spool_thread.pid);
      timeline_.counters.value.push_back(event.number);
      if (event.of_thread) {
        timeline_.counters.lane.resize(timeline_.counters.size(), kNone);
        timeline_.counters.lane.back() = thread.lane;
      }
      break;
    case Type::kThreadName:
      timeline_.lanes[static_cast<size_t>(thread.lane)].name = strings.intern(event.text);
      break;
    case Type::kFact: {
      // Threads come one after the other, so the last one in time may have come already.
      const auto [found, is_new] =
          facts_.try_emplace(std::string(event.name), Fact{event.time_ns, std::string(event.text)});
      if (!is_new && event.time_ns >= found->second.time_ns) found->second = {event.time_ns, std::string(event.text)};
      break;
    }
    case Type::kDropped:
      timeline_.losses.dropped_records += event.integer > 0 ? static_cast<uint64_t>(event.integer) : 0;
      break;
  }
}

bool SpoolTimeline::same_key(const Point& a, const Point& b) {
  return std::tie(a.pid, a.name, a.id) == std::tie(b.pid, b.name, b.id);
}

bool SpoolTimeline::by_key_and_time(const Point& a, const Point& b) {
  return std::tie(a.pid, a.name, a.id, a.time_ns, a.is_end) < std::tie(b.pid, b.name, b.id, b.time_ns, b.is_end);
}

// An end by id alone takes the name of the latest range that began with it.
void SpoolTimeline::name_async_ends() {
  if (std::none_of(async_.begin(), async_.end(), [](const Point& point) { return point.any_name; })) return;
  std::stable_sort(async_.begin(), async_.end(), [](const Point& a, const Point& b) {
    return std::tie(a.pid, a.id, a.time_ns, a.is_end) < std::tie(b.pid, b.id, b.time_ns, b.is_end);
  });
  const Point* begin = nullptr;
  for (Point& point : async_) {
    if (begin && (begin->pid != point.pid || begin->id != point.id)) begin = nullptr;
    if (!point.is_end)
      begin = &point;
    else if (point.any_name && begin)
      point.name = begin->name;
  }
}

// Ids are unique among the open ranges of a name only, so each end belongs to the latest begin before it.
void SpoolTimeline::match_async() {
  name_async_ends();
  std::stable_sort(async_.begin(), async_.end(), by_key_and_time);
  std::vector<int32_t> row_of(async_.size(), kNone);  // by the order in which they came
  Point* open = nullptr;
  for (Point& point : async_) {
    if (open && !same_key(*open, point)) open = nullptr;
    if (!point.is_end) {
      if (open) fault("asynchronous range begun again while open");
      open = &point;
    } else if (open) {
      timeline_.ranges.end_ns[static_cast<size_t>(open->row)] = point.time_ns;
      point.row = open->row;
      open = nullptr;
    } else {
      fault("asynchronous end without a begin");
    }
    row_of[point.order] = point.row;
  }
  for (const AsyncArgument& argument : async_arguments_) {
    const int32_t row = row_of[argument.point];
    if (row == kNone) {
      fault("argument outside any range");
      continue;
    }
    timeline_.arguments.range.push_back(row);
    timeline_.arguments.key.push_back(argument.key);
    timeline_.arguments.value.push_back(argument.value);
  }
}

// Each arrival belongs to the latest departure before it; one departure may arrive at several places.
void SpoolTimeline::match_flows() {
  std::stable_sort(flows_.begin(), flows_.end(), by_key_and_time);
  Flows& flows = timeline_.flows;
  const Point* from = nullptr;
  bool arrived = true;
  const auto leave = [&] {
    if (!arrived) fault("flow that never arrived");
    arrived = true;
  };
  for (const Point& point : flows_) {
    if (from && !same_key(*from, point)) {
      leave();
      from = nullptr;
    }
    if (!point.is_end) {
      leave();
      from = &point;
      arrived = false;
    } else if (from) {
      flows.name.push_back(point.name);
      flows.from_ns.push_back(from->time_ns);
      flows.to_ns.push_back(point.time_ns);
      flows.from_range.push_back(from->row);
      flows.to_range.push_back(point.row);
      flows.from_lane.push_back(from->lane);
      flows.to_lane.push_back(point.lane);
      arrived = true;
    } else {
      fault("flow that arrived without a departure");
    }
  }
  leave();
}

void SpoolTimeline::rebase_times() {
  const auto rebase = [this](std::vector<int64_t>& times) {
    for (int64_t& time : times) time = difference(time, first_ns_);
  };
  Ranges& ranges = timeline_.ranges;
  ranges.open.assign(ranges.size(), 0);
  for (size_t i = 0; i < ranges.size(); ++i) {
    if (ranges.end_ns[i] != kOpen) continue;
    ranges.end_ns[i] = last_ns_;
    ranges.open[i] = 1;
  }
  rebase(ranges.start_ns);
  rebase(ranges.end_ns);
  rebase(timeline_.marks.time_ns);
  rebase(timeline_.counters.time_ns);
  rebase(timeline_.flows.from_ns);
  rebase(timeline_.flows.to_ns);
  timeline_.duration_ns = difference(last_ns_, first_ns_);
  timeline_.monotonic_start_ns = empty_ ? 0 : first_ns_;
  timeline_.utc_start_ns = empty_ ? 0 : sum(first_ns_, utc_minus_monotonic_ns_);
}

Timeline SpoolTimeline::take() {
  match_async();
  match_flows();
  rebase_times();
  for (auto& [key, fact] : facts_) timeline_.facts[key] = std::move(fact.value);
  timeline_.finish();
  Timeline done = std::move(timeline_);
  *this = SpoolTimeline();
  return done;
}

}  // namespace strobe::trace
