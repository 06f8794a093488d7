#include "analyze/critical_path_hta_events.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <set>
#include <unordered_map>

namespace strobe::analyze::hta {

using trace::kNone;
using trace::RangeKind;
using trace::Timeline;

namespace {

enum SyncType : uint8_t { kEventSync = 1, kStreamWaitsForEvent = 2, kContextSync = 4 };

// HTA reads times as doubles of microseconds and then shrinks every event to whole ones, so that a double's rounding
// (a quarter of a microsecond at times since the epoch) is part of its result. This needs the times of the file.
class Microseconds {
 public:
  explicit Microseconds(const Timeline& timeline) {
    const auto format = timeline.facts.find("import.format");
    rounds_ = format != timeline.facts.end() && format->second == "kineto";
    origin_ = timeline.utc_start_ns;
    const auto base = timeline.facts.find("trace.baseTimeNanoseconds");
    int64_t base_ns = 0;
    if (base != timeline.facts.end() &&
        std::from_chars(base->second.data(), base->second.data() + base->second.size(), base_ns).ec == std::errc())
      origin_ -= base_ns;
  }
  void shrink(int64_t start_ns, int64_t end_ns, Event& event) const {
    event.start = start_ns;
    event.end = end_ns;
    if (!rounds_) return;
    // Long doubles hold 63-bit integers, so that this is the double next to the decimal text.
    const auto as_double = [](int64_t ns) { return static_cast<double>(static_cast<long double>(ns) / 1000.0L); };
    const double start = as_double(origin_ + start_ns);
    const double end = start + as_double(end_ns - start_ns);
    event.start = static_cast<int64_t>(std::ceil(start)) * 1000 - origin_;
    event.end = static_cast<int64_t>(std::floor(end)) * 1000 - origin_;
  }

 private:
  bool rounds_ = false;
  int64_t origin_ = 0;
};

// Functions of Python stand beside operators in the timeline; HTA has no nodes for them.
bool is_python_function(std::string_view name) {
  return name.find(".py(") != std::string_view::npos || name.starts_with("nn.Module: ") ||
         name.starts_with("<built-in");
}

Events read_events(const Timeline& timeline) {
  Events events;
  const trace::Ranges& ranges = timeline.ranges;
  const Microseconds microseconds(timeline);
  std::vector<int8_t> python(timeline.strings.size(), -1);
  events.event_of.assign(ranges.size(), -1);
  auto op = timeline.device_ops.begin();
  auto call = timeline.api_calls.begin();
  for (size_t i = 0; i < ranges.size(); ++i) {
    if (ranges.is_async[i] || ranges.open[i]) continue;
    Event event;
    event.range = static_cast<int32_t>(i);
    const trace::Lane& lane = timeline.lanes[static_cast<size_t>(ranges.lane[i])];
    event.pid = lane.kind == trace::Lane::Kind::kThread ? lane.pid : lane.device;
    event.tid = lane.tid;
    microseconds.shrink(ranges.start_ns[i], ranges.end_ns[i], event);
    while (op != timeline.device_ops.end() && op->range < event.range) ++op;
    while (call != timeline.api_calls.end() && call->range < event.range) ++call;
    if (op != timeline.device_ops.end() && op->range == event.range) {
      event.stream = lane.tid;
      event.sync_type = op->sync_type;
      if (op->correlation != 0) event.correlation = op->correlation;
    } else if (call != timeline.api_calls.end() && call->range == event.range && call->correlation != 0) {
      event.correlation = call->correlation;
    }
    const trace::StringId name = ranges.name[i];
    if (ranges.kind[i] == RangeKind::kOperator && python[name] < 0)
      python[name] = is_python_function(timeline.strings[name]) ? 1 : 0;
    event.is_call = ranges.kind[i] == RangeKind::kApi || (ranges.kind[i] == RangeKind::kOperator && python[name] == 0);
    event.is_annotation = ranges.kind[i] == RangeKind::kAnnotation;
    events.event_of[i] = static_cast<int32_t>(events.all.size());
    events.all.push_back(event);
  }
  return events;
}

bool is_device_side(const Event& event) {
  return (event.stream >= 0 && event.correlation >= 0) || event.sync_type == kEventSync ||
         event.sync_type == kContextSync;
}

// The last host event and the last device event of each correlation number.
class LastOfNumber {
 public:
  struct Pair {
    int32_t host = -1, device = -1;
  };
  explicit LastOfNumber(const std::vector<Event>& events) {
    int64_t largest = 0;
    size_t count = 0;
    for (const Event& event : events) {
      largest = std::max(largest, event.correlation);
      count += event.correlation >= 0 ? 1 : 0;
    }
    // Profilers count up, so that a number is as good as its place.
    constexpr size_t kMostPlacesForOne = 8;
    if (static_cast<uint64_t>(largest) < kMostPlacesForOne * (count + 1))
      dense_.resize(static_cast<size_t>(largest) + 1);
    else
      sparse_.reserve(count);
  }
  Pair& operator[](int64_t number) { return dense_.empty() ? sparse_[number] : dense_[static_cast<size_t>(number)]; }

 private:
  std::vector<Pair> dense_;
  std::unordered_map<int64_t, Pair> sparse_;
};

// Of several with one number the last counts, as in HTA's join.
void correlate(std::vector<Event>& events) {
  LastOfNumber last(events);
  for (size_t i = 0; i < events.size(); ++i) {
    if (events[i].correlation < 0) continue;
    auto& [host, device] = last[events[i].correlation];
    (is_device_side(events[i]) ? device : host) = static_cast<int32_t>(i);
  }
  for (Event& event : events) {
    if (event.correlation < 0) continue;
    const auto [host, device] = last[event.correlation];
    event.partner = is_device_side(event) ? host : device;
    if (event.partner < 0) event.partner = kUnlinked;
  }
}

bool is_profiler_step(std::string_view name) {
  constexpr std::string_view kStep = "ProfilerStep#";
  return name.starts_with(kStep) && name.size() > kStep.size() && name[kStep.size()] >= '0' &&
         name[kStep.size()] <= '9';
}

// With two or more steps of the profiler HTA leaves out the last one, and what the device did for it.
void drop_last_step(const Timeline& timeline, Events& events) {
  std::set<trace::StringId> steps;
  int64_t last_start = std::numeric_limits<int64_t>::min();
  std::vector<int8_t> is_step(timeline.strings.size(), -1);
  for (const Event& event : events.all) {
    const trace::StringId name = timeline.ranges.name[static_cast<size_t>(event.range)];
    if (is_step[name] < 0) is_step[name] = is_profiler_step(timeline.strings[name]) ? 1 : 0;
    if (!is_step[name]) continue;
    steps.insert(name);
    last_start = std::max(last_start, event.start);
  }
  if (steps.size() < 2) return;
  std::vector<int32_t> place(events.all.size(), -1);
  std::vector<Event> kept;
  for (size_t i = 0; i < events.all.size(); ++i) {
    const Event& event = events.all[i];
    const bool keep = is_device_side(event)
                          ? event.partner >= 0 && events.all[static_cast<size_t>(event.partner)].start < last_start
                          : event.start < last_start && event.stream == kNotDevice;
    if (!keep) {
      events.event_of[static_cast<size_t>(event.range)] = -1;
      continue;
    }
    place[i] = static_cast<int32_t>(kept.size());
    events.event_of[static_cast<size_t>(event.range)] = place[i];
    kept.push_back(event);
  }
  for (Event& event : kept)
    if (event.partner >= 0 && (event.partner = place[static_cast<size_t>(event.partner)]) < 0)
      event.partner = kUnlinked;
  events.all.swap(kept);
}

// Host events that begin in the window and last; device events whose calls are such.
void clip(Events& events) {
  for (Event& event : events.all)
    event.in_window =
        event.stream == kNotDevice && event.start >= events.start && event.start <= events.end && event.duration() > 0;
  for (size_t i = 0; i < events.all.size(); ++i) {
    Event& event = events.all[i];
    if (event.stream == kNotDevice) continue;
    if (event.sync_type == kStreamWaitsForEvent) event.in_window = true;
    if (event.partner < 0) continue;
    const Event& call = events.all[static_cast<size_t>(event.partner)];
    if (call.partner == static_cast<int32_t>(i) && call.start >= events.start && call.start <= events.end &&
        call.duration() > 0)
      event.in_window = true;
  }
}

}  // namespace

Result<Events> events_of(const Timeline& timeline, const WindowChoice& choice) {
  Events events = read_events(timeline);
  correlate(events.all);
  drop_last_step(timeline, events);
  if (events.all.empty()) return not_found("the trace holds no event: there is no path");
  if (choice.range.empty()) {
    events.start = std::numeric_limits<int64_t>::max();
    events.end = std::numeric_limits<int64_t>::min();
    for (const Event& event : events.all) {
      events.start = std::min(events.start, event.start);
      events.end = std::max(events.end, event.end);
    }
  } else {
    std::vector<int32_t> candidates = ranges_named(timeline, choice.range);
    std::erase_if(candidates, [&](int32_t range) { return events.range_to_event(range) < 0; });
    STROBE_ASSIGN(const int32_t range, choose_instance(timeline, candidates, choice));
    const Event& chosen = events.all[static_cast<size_t>(events.range_to_event(range))];
    events.start = chosen.start;
    events.end = chosen.end;
  }
  clip(events);
  return events;
}

}  // namespace strobe::analyze::hta
