#include "analyze/critical_path_hta_events.h"

#include <algorithm>
#include <array>
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

bool is_device_side(const Event& event) {
  return (event.stream >= 0 && event.correlation >= 0) || event.sync_type == kEventSync ||
         event.sync_type == kContextSync;
}

// The last host range and the last device range of each correlation number.
class LastOfNumber {
 public:
  struct Pair {
    int32_t host = kNone, device = kNone;
  };
  LastOfNumber(int64_t largest, size_t count) {
    // Profilers count up, so that a number is as good as its place.
    constexpr size_t kMostPlacesForOne = 8;
    if (static_cast<uint64_t>(largest) < kMostPlacesForOne * (count + 1))
      dense_.resize(static_cast<size_t>(largest) + 1);
    else
      sparse_.reserve(count);
  }
  Pair& operator[](int64_t number) { return dense_.empty() ? sparse_[number] : dense_[static_cast<size_t>(number)]; }
  Pair of(int64_t number) const {
    if (!dense_.empty()) return dense_[static_cast<size_t>(number)];
    const auto found = sparse_.find(number);
    return found == sparse_.end() ? Pair{} : found->second;
  }

 private:
  std::vector<Pair> dense_;
  std::unordered_map<int64_t, Pair> sparse_;
};

bool is_profiler_step(std::string_view name) {
  constexpr std::string_view kStep = "ProfilerStep#";
  return name.starts_with(kStep) && name.size() > kStep.size() && name[kStep.size()] >= '0' &&
         name[kStep.size()] <= '9';
}

// Makes events of ranges. What HTA does to the whole trace (join correlation numbers, leave out the last step) is done
// with ranges' numbers, so that only the events of a window need be made. Ranges stand by start, and whole microseconds
// keep that order: "starts before" is "has a smaller number".
class Reader {
 public:
  explicit Reader(const Timeline& timeline)
      : timeline_(timeline), ranges_(timeline.ranges), microseconds_(timeline), last_(make_last()) {
    find_last_step();
  }

  // The first range that starts at or after a time, in HTA's microseconds.
  size_t first_from(int64_t time) const {
    return static_cast<size_t>(std::partition_point(ranges_.start_ns.begin(), ranges_.start_ns.end(),
                                                    [&](int64_t start) { return shrunk(start, start).start < time; }) -
                               ranges_.start_ns.begin());
  }
  int64_t start_of(size_t range) const { return shrunk(ranges_.start_ns[range], ranges_.end_ns[range]).start; }
  size_t count() const { return ranges_.size(); }

  // HTA's view of a range. Its partner is a range; see link().
  Event event(size_t i) {
    Event event;
    event.range = static_cast<int32_t>(i);
    const trace::Lane& lane = timeline_.lanes[static_cast<size_t>(ranges_.lane[i])];
    event.pid = lane.kind == trace::Lane::Kind::kThread ? lane.pid : lane.device;
    event.tid = lane.tid;
    microseconds_.shrink(ranges_.start_ns[i], ranges_.end_ns[i], event);
    set_correlation(event, op_.at(timeline_.device_ops, event.range), call_.at(timeline_.api_calls, event.range));
    const trace::StringId name = ranges_.name[i];
    event.is_call = ranges_.kind[i] == RangeKind::kApi || (ranges_.kind[i] == RangeKind::kOperator && !is_python(name));
    event.is_annotation = ranges_.kind[i] == RangeKind::kAnnotation;
    event.partner = partner_of(event);
    return event;
  }
  bool keeps(size_t i) {
    if (ranges_.is_async[i] || ranges_.open[i]) return false;
    return !drops_ || keeps(event(i));
  }
  // Whether it is before the last step, or the device's work for what is.
  bool keeps(const Event& event) const {
    if (!drops_) return true;
    if (!is_device_side(event)) return is_kept_start(event.range) && event.stream == kNotDevice;
    return event.partner >= 0 && is_kept_start(event.partner);
  }

  // Calls visit(event, its row) for each kept event of a device or call in order; without times.
  template <typename Visit>
  void for_each_correlated(const Visit& visit) const {
    const auto offer = [&](const trace::DeviceOp* op, const trace::ApiCall* call) {
      Event event;
      event.range = op ? op->range : call->range;
      const auto at = static_cast<size_t>(event.range);
      if (ranges_.is_async[at] || ranges_.open[at]) return;
      set_correlation(event, op, call);
      event.partner = partner_of(event);
      if (keeps(event)) visit(event, op);
    };
    for_each_row(offer);
  }

  // The two events to which all with the event's number are partners; -1: none.
  std::array<int32_t, 2> linked(const Event& event) const {
    if (event.correlation < 0) return {-1, -1};
    const auto [host, device] = last_.of(event.correlation);
    return {host, device};
  }

 private:
  // Rows of a table by range, asked for in ascending order or not.
  template <typename Row>
  struct Cursor {
    size_t next = 0;
    const Row* at(const std::vector<Row>& rows, int32_t range) {
      if (next > 0 && rows[next - 1].range >= range) next = 0;
      constexpr size_t kFew = 8;
      for (size_t i = 0; i < kFew && next < rows.size() && rows[next].range < range; ++i) ++next;
      if (next < rows.size() && rows[next].range < range)
        next = static_cast<size_t>(std::partition_point(rows.begin() + static_cast<std::ptrdiff_t>(next), rows.end(),
                                                        [range](const Row& row) { return row.range < range; }) -
                                   rows.begin());
      return next < rows.size() && rows[next].range == range ? &rows[next] : nullptr;
    }
  };

  // Of several rows of one range the first counts; a device's row before a call's.
  template <typename Offer>
  void for_each_row(const Offer& offer) const {
    const auto& ops = timeline_.device_ops;
    const auto& calls = timeline_.api_calls;
    size_t op = 0, call = 0;
    while (op < ops.size() || call < calls.size()) {
      const bool has_op = op < ops.size() && (call == calls.size() || ops[op].range <= calls[call].range);
      const int32_t range = has_op ? ops[op].range : calls[call].range;
      offer(has_op ? &ops[op] : nullptr, has_op ? nullptr : &calls[call]);
      while (op < ops.size() && ops[op].range == range) ++op;
      while (call < calls.size() && calls[call].range == range) ++call;
    }
  }

  void set_correlation(Event& event, const trace::DeviceOp* op, const trace::ApiCall* call) const {
    if (op) {
      event.stream = timeline_.lanes[static_cast<size_t>(ranges_.lane[static_cast<size_t>(event.range)])].tid;
      event.sync_type = op->sync_type;
      if (op->correlation != 0) event.correlation = op->correlation;
    } else if (call && call->correlation != 0) {
      event.correlation = call->correlation;
    }
  }

  // Of several with one number the last counts, as in HTA's join.
  LastOfNumber make_last() const {
    int64_t largest = 0;
    size_t count = 0;
    for (const trace::DeviceOp& op : timeline_.device_ops) largest = std::max(largest, op.correlation), ++count;
    for (const trace::ApiCall& call : timeline_.api_calls) largest = std::max(largest, call.correlation), ++count;
    LastOfNumber last(largest, count);
    for_each_row([&](const trace::DeviceOp* op, const trace::ApiCall* call) {
      Event event;
      event.range = op ? op->range : call->range;
      const auto at = static_cast<size_t>(event.range);
      if (ranges_.is_async[at] || ranges_.open[at]) return;
      set_correlation(event, op, call);
      if (event.correlation < 0) return;
      auto& [host, device] = last[event.correlation];
      (is_device_side(event) ? device : host) = event.range;
    });
    return last;
  }

  int32_t partner_of(const Event& event) const {
    if (event.correlation < 0) return -1;
    const auto [host, device] = last_.of(event.correlation);
    if (is_device_side(event)) return host < 0 ? kUnlinked : host;
    const bool is_kept = device >= 0 && (!drops_ || (host >= 0 && is_kept_start(host)));
    return is_kept ? device : kUnlinked;
  }

  // With two or more steps of the profiler HTA leaves out the last one, and what the device did for it.
  void find_last_step() {
    std::vector<uint8_t> is_step(timeline_.strings.size());
    for (trace::StringId id = 0; id < is_step.size(); ++id) is_step[id] = is_profiler_step(timeline_.strings[id]);
    std::set<trace::StringId> steps;
    size_t last = 0;
    for (size_t i = 0; i < ranges_.size(); ++i) {
      if (!is_step[ranges_.name[i]] || ranges_.is_async[i] || ranges_.open[i]) continue;
      steps.insert(ranges_.name[i]);
      last = i;
    }
    drops_ = steps.size() >= 2;
    if (drops_) first_dropped_ = first_from(start_of(last));
  }
  bool is_kept_start(int32_t range) const { return static_cast<size_t>(range) < first_dropped_; }

  Event shrunk(int64_t start_ns, int64_t end_ns) const {
    Event event;
    microseconds_.shrink(start_ns, end_ns, event);
    return event;
  }
  bool is_python(trace::StringId name) {
    if (python_.empty()) python_.assign(timeline_.strings.size(), -1);
    if (python_[name] < 0) python_[name] = is_python_function(timeline_.strings[name]) ? 1 : 0;
    return python_[name] > 0;
  }

  const Timeline& timeline_;
  const trace::Ranges& ranges_;
  const Microseconds microseconds_;
  const LastOfNumber last_;
  Cursor<trace::DeviceOp> op_;
  Cursor<trace::ApiCall> call_;
  std::vector<int8_t> python_;  // by name; -1: not known
  bool drops_ = false;
  size_t first_dropped_ = 0;
};

// The ranges from `from` up to `to` and, in `also`, others; as numbers in order.
std::vector<int32_t> merged(size_t from, size_t to, std::vector<int32_t>& also) {
  std::erase_if(also,
                [&](int32_t range) { return static_cast<size_t>(range) >= from && static_cast<size_t>(range) < to; });
  std::sort(also.begin(), also.end());
  also.erase(std::unique(also.begin(), also.end()), also.end());
  const auto behind = std::partition_point(also.begin(), also.end(),
                                           [from](int32_t range) { return static_cast<size_t>(range) < from; });
  std::vector<int32_t> all(also.begin(), behind);
  for (size_t i = from; i < to; ++i) all.push_back(static_cast<int32_t>(i));
  all.insert(all.end(), behind, also.end());
  return all;
}

// Events from `from` up to `to`, and those outside that a result for these may depend on: what calls there asked for;
// launches whose operations were in a stream's queue meanwhile, the length of the queue before these; with recorded
// waits for events, which may reach anywhere, all that is correlated.
void read_window(Reader& reader, size_t from, size_t to, Events& events) {
  const auto lies_in = [](int32_t range, size_t first, size_t behind) {
    return range >= 0 && static_cast<size_t>(range) >= first && static_cast<size_t>(range) < behind;
  };
  std::vector<int32_t> also;
  const bool is_all = from == 0 && to == reader.count();
  if (!is_all) {
    size_t first = from, last = to > from ? to - 1 : from;
    bool has_events = false;
    reader.for_each_correlated([&](const Event& event, const trace::DeviceOp* op) {
      has_events |=
          op && (op->sync_type == kEventSync || op->sync_type == kStreamWaitsForEvent || op->sync_stream >= 0);
      if (!is_device_side(event) || !lies_in(event.partner, from, to)) return;
      first = std::min(first, static_cast<size_t>(event.range));
      last = std::max(last, static_cast<size_t>(event.range));
    });
    // All that begins at the same time, since of these HTA counts launches first.
    if (last < reader.count()) {
      first = reader.first_from(reader.start_of(first));
      last = reader.first_from(reader.start_of(last) + 1);
    }
    reader.for_each_correlated([&](const Event& event, const trace::DeviceOp* op) {
      if (has_events || (op && op->sync_type != 0) || lies_in(event.range, first, last) ||
          lies_in(event.partner, first, last)) {
        also.push_back(event.range);
        for (const int32_t linked : reader.linked(event))
          if (linked >= 0) also.push_back(linked);
      } else if (event.partner >= 0 && static_cast<size_t>(event.range) < first) {
        events.before.push_back({event.range, event.partner, event.stream == kNotDevice});
      }
    });
  }
  const std::vector<int32_t> chosen = merged(from, to, also);
  std::vector<int32_t> event_of(reader.count(), -1);
  events.all.reserve(chosen.size());
  for (const int32_t range : chosen) {
    if (!reader.keeps(static_cast<size_t>(range))) continue;
    event_of[static_cast<size_t>(range)] = static_cast<int32_t>(events.all.size());
    events.all.push_back(reader.event(static_cast<size_t>(range)));
  }
  std::erase_if(events.before,
                [&](const Events::Queued& queued) { return event_of[static_cast<size_t>(queued.range)] >= 0; });
  for (Event& event : events.all)
    if (event.partner >= 0 && (event.partner = event_of[static_cast<size_t>(event.partner)]) < 0)
      event.partner = kUnlinked;
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
  Reader reader(timeline);
  size_t first_kept = 0;
  while (first_kept < reader.count() && !reader.keeps(first_kept)) ++first_kept;
  if (first_kept == reader.count()) return not_found("the trace holds no event: there is no path");
  Events events;
  if (choice.range.empty()) {
    read_window(reader, 0, reader.count(), events);
    events.start = std::numeric_limits<int64_t>::max();
    events.end = std::numeric_limits<int64_t>::min();
    for (const Event& event : events.all) {
      events.start = std::min(events.start, event.start);
      events.end = std::max(events.end, event.end);
    }
  } else {
    std::vector<int32_t> candidates = ranges_named(timeline, choice.range);
    std::erase_if(candidates, [&](int32_t range) { return !reader.keeps(static_cast<size_t>(range)); });
    STROBE_ASSIGN(const int32_t range, choose_instance(timeline, candidates, choice));
    const Event chosen = reader.event(static_cast<size_t>(range));
    events.start = chosen.start;
    events.end = chosen.end;
    const size_t from = reader.first_from(events.start);
    read_window(reader, from, std::max(from, reader.first_from(events.end + 1)), events);
  }
  clip(events);
  return events;
}

}  // namespace strobe::analyze::hta
