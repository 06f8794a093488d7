#include "strobe/trace/timeline.h"

#include <algorithm>
#include <cstddef>
#include <numeric>

namespace strobe::trace {

StringId Strings::intern(std::string_view text) {
  if (const auto found = ids_.find(text); found != ids_.end()) return found->second;
  const auto id = static_cast<StringId>(texts_.size());
  texts_.push_back(&ids_.emplace(text, id).first->first);
  return id;
}

int64_t Strings::find(std::string_view text) const {
  const auto found = ids_.find(text);
  return found == ids_.end() ? int64_t{kNone} : int64_t{found->second};
}

namespace {

using Order = std::vector<uint32_t>;  // new position -> old position

// A stable order of 0..count-1. A natural merge sort: rows come as a few ascending runs (one a thread), so that ten
// million of them cost a pass or two; rows already in order cost one look and give an empty order.
template <typename Less>
Order stable_order(size_t count, Less less) {
  std::vector<size_t> runs{0};
  for (size_t i = 1; i < count; ++i)
    if (less(static_cast<uint32_t>(i), static_cast<uint32_t>(i - 1))) runs.push_back(i);
  if (runs.size() == 1) return {};
  runs.push_back(count);
  Order order(count), merged(count);
  std::iota(order.begin(), order.end(), 0U);
  while (runs.size() > 2) {
    std::vector<size_t> next{0};
    for (size_t i = 0; i + 1 < runs.size(); i += 2) {
      const size_t end = runs[std::min(i + 2, runs.size() - 1)];
      const auto at = [&](size_t index) { return order.begin() + static_cast<std::ptrdiff_t>(index); };
      std::merge(at(runs[i]), at(runs[i + 1]), at(runs[i + 1]), at(end),
                 merged.begin() + static_cast<std::ptrdiff_t>(runs[i]), less);
      next.push_back(end);
    }
    order.swap(merged);
    runs.swap(next);
  }
  return order;
}

// Columns that may be left short by whoever has nothing to say in them.
template <typename T>
void fill_up(std::vector<T>& column, size_t size, T none) {
  if (!column.empty()) column.resize(size, none);
}
template <typename Rows>
void categorize(Rows& rows, StringId category, StringId domain) {
  const auto put = [&rows](std::vector<StringId>& column, StringId value) {
    if (value == 0) return;
    column.resize(rows.size(), 0);
    column.back() = value;
  };
  put(rows.category, category);
  put(rows.domain, domain);
}

template <typename... Columns>
void reorder(const Order& order, Columns&... columns) {
  if (order.empty()) return;
  const auto apply = [&order](auto& column) {
    if (column.empty()) return;
    std::decay_t<decltype(column)> sorted;
    sorted.reserve(column.size());
    for (const uint32_t from : order) sorted.push_back(column[from]);
    column.swap(sorted);
  };
  (apply(columns), ...);
}

// old position -> new position
std::vector<int32_t> inverse(const Order& order) {
  std::vector<int32_t> new_index(order.size());
  for (size_t i = 0; i < order.size(); ++i) new_index[order[i]] = static_cast<int32_t>(i);
  return new_index;
}

// One end of a flow whose range is asked for.
struct Query {
  int64_t time_ns;
  int32_t lane;
  int32_t* answer;
};

std::vector<Query> unresolved_ends(Flows& flows) {
  std::vector<Query> queries;
  for (size_t i = 0; i < flows.size(); ++i) {
    if (flows.from_range[i] == kNone && flows.from_lane[i] != kNone)
      queries.push_back({flows.from_ns[i], flows.from_lane[i], &flows.from_range[i]});
    if (flows.to_range[i] == kNone && flows.to_lane[i] != kNone)
      queries.push_back({flows.to_ns[i], flows.to_lane[i], &flows.to_range[i]});
  }
  std::stable_sort(queries.begin(), queries.end(),
                   [](const Query& a, const Query& b) { return a.time_ns < b.time_ns; });
  return queries;
}

// One sweep in time order. The open ranges of a lane are a chain of parents, so that its innermost one says it all.
// Returns the number of ranges that overlap an earlier one without nesting in it.
uint64_t nest(Ranges& ranges, size_t lane_count, const std::vector<Query>& queries) {
  std::vector<int32_t> innermost(lane_count, kNone);
  uint64_t overlaps = 0;
  auto query = queries.begin();
  const auto answer_before = [&](const int64_t* limit) {
    for (; query != queries.end() && (!limit || query->time_ns < *limit); ++query) {
      int32_t& top = innermost[static_cast<size_t>(query->lane)];
      while (top != kNone && ranges.end_ns[static_cast<size_t>(top)] < query->time_ns)
        top = ranges.parent[static_cast<size_t>(top)];
      *query->answer = top;
    }
  };
  for (size_t i = 0; i < ranges.size(); ++i) {
    answer_before(&ranges.start_ns[i]);
    ranges.parent[i] = kNone;
    if (ranges.is_async[i] || is_device(ranges.kind[i])) continue;
    int32_t& top = innermost[static_cast<size_t>(ranges.lane[i])];
    // A range that ends earlier than this one contains nothing that starts later on without this one containing it
    // as well: it leaves the chain, even if it is still open.
    bool overlaps_one = false;
    while (top != kNone && ranges.end_ns[static_cast<size_t>(top)] < ranges.end_ns[i]) {
      overlaps_one |= ranges.end_ns[static_cast<size_t>(top)] > ranges.start_ns[i];
      top = ranges.parent[static_cast<size_t>(top)];
    }
    overlaps += overlaps_one ? 1 : 0;
    ranges.parent[i] = top;
    if (ranges.frame[i] == kNoFrame && top != kNone) ranges.frame[i] = ranges.frame[static_cast<size_t>(top)];
    top = static_cast<int32_t>(i);
  }
  answer_before(nullptr);
  return overlaps;
}

void sort_ranges(Timeline& timeline) {
  Ranges& ranges = timeline.ranges;
  const Order order = stable_order(ranges.size(), [&ranges](uint32_t a, uint32_t b) {
    return ranges.start_ns[a] != ranges.start_ns[b] ? ranges.start_ns[a] < ranges.start_ns[b]
                                                    : ranges.end_ns[a] > ranges.end_ns[b];
  });
  if (order.empty()) return;
  reorder(order, ranges.start_ns, ranges.end_ns, ranges.name, ranges.lane, ranges.frame, ranges.is_async, ranges.open,
          ranges.kind, ranges.category, ranges.domain);
  const std::vector<int32_t> new_index = inverse(order);
  const auto follow = [&new_index](std::vector<int32_t>& column) {
    for (int32_t& index : column)
      if (index != kNone) index = new_index[static_cast<size_t>(index)];
  };
  follow(timeline.arguments.range);
  follow(timeline.flows.from_range);
  follow(timeline.flows.to_range);
  const auto follow_one = [&new_index](int32_t& index) {
    if (index != kNone) index = new_index[static_cast<size_t>(index)];
  };
  for (DeviceOp& op : timeline.device_ops) {
    follow_one(op.range);
    follow_one(op.launch);
    follow_one(op.capture);
  }
  for (ApiCall& call : timeline.api_calls) follow_one(call.range);
}

// A call may launch many operations, and numbers are unique within a process only.
void find_launches(Timeline& timeline) {
  const auto by_range = [](const auto& a, const auto& b) { return a.range < b.range; };
  const auto sort = [&by_range](auto& rows) {
    if (!std::is_sorted(rows.begin(), rows.end(), by_range)) std::stable_sort(rows.begin(), rows.end(), by_range);
  };
  sort(timeline.device_ops);
  sort(timeline.api_calls);
  const auto& calls = timeline.api_calls;
  const auto pid_of = [&timeline](int32_t range) {
    return timeline.lanes[static_cast<size_t>(timeline.ranges.lane[static_cast<size_t>(range)])].pid;
  };
  struct Key {
    int32_t pid;
    int64_t correlation;
    bool operator==(const Key&) const = default;
  };
  struct Hash {
    size_t operator()(const Key& key) const {
      return std::hash<uint64_t>{}(static_cast<uint64_t>(key.correlation) * 0x9E3779B97F4A7C15ULL ^
                                   static_cast<uint32_t>(key.pid));
    }
  };
  std::unordered_map<Key, int32_t, Hash> call_of;
  const auto lacks_launch = [](const DeviceOp& op) { return op.launch == kNone && op.correlation != 0; };
  if (std::any_of(timeline.device_ops.begin(), timeline.device_ops.end(), lacks_launch)) {
    call_of.reserve(calls.size());
    for (const ApiCall& call : calls)
      if (call.correlation != 0) call_of.try_emplace({pid_of(call.range), call.correlation}, call.range);
  }
  for (DeviceOp& op : timeline.device_ops) {
    if (lacks_launch(op)) {
      const auto found = call_of.find({pid_of(op.range), op.correlation});
      if (found != call_of.end()) op.launch = found->second;
    }
    int64_t& frame = timeline.ranges.frame[static_cast<size_t>(op.range)];
    if (frame == kNoFrame && op.launch != kNone) frame = timeline.ranges.frame[static_cast<size_t>(op.launch)];
  }
}

void sort_marks(Timeline& timeline, const Order& order) {
  if (order.empty()) return;
  Marks& marks = timeline.marks;
  reorder(order, marks.time_ns, marks.name, marks.lane, marks.frame, marks.category, marks.domain);
  const std::vector<int32_t> new_index = inverse(order);
  for (int32_t& mark : timeline.mark_arguments.mark) mark = new_index[static_cast<size_t>(mark)];
}

void sort_the_rest(Timeline& timeline) {
  const auto by = [](const auto& column) {
    return stable_order(column.size(), [&column](uint32_t a, uint32_t b) { return column[a] < column[b]; });
  };
  Arguments& arguments = timeline.arguments;
  reorder(by(arguments.range), arguments.range, arguments.key, arguments.value);
  sort_marks(timeline, by(timeline.marks.time_ns));
  MarkArguments& of_marks = timeline.mark_arguments;
  reorder(by(of_marks.mark), of_marks.mark, of_marks.key, of_marks.value);
  Counters& counters = timeline.counters;
  reorder(by(counters.time_ns), counters.time_ns, counters.name, counters.pid, counters.value, counters.lane);
  Flows& flows = timeline.flows;
  reorder(by(flows.from_ns), flows.from_ns, flows.to_ns, flows.name, flows.from_range, flows.to_range, flows.from_lane,
          flows.to_lane);
}

}  // namespace

void Ranges::categorize_last(StringId category_name, StringId domain_name) {
  categorize(*this, category_name, domain_name);
}
void Marks::categorize_last(StringId category_name, StringId domain_name) {
  categorize(*this, category_name, domain_name);
}

void Timeline::finish() {
  fill_up(ranges.category, ranges.size(), StringId{0});
  fill_up(ranges.domain, ranges.size(), StringId{0});
  fill_up(marks.category, marks.size(), StringId{0});
  fill_up(marks.domain, marks.size(), StringId{0});
  fill_up(counters.lane, counters.size(), kNone);
  ranges.parent.assign(ranges.size(), kNone);
  ranges.kind.resize(ranges.size(), RangeKind::kAnnotation);
  uint64_t backwards = 0;
  for (size_t i = 0; i < ranges.size(); ++i) {
    if (ranges.end_ns[i] >= ranges.start_ns[i]) continue;
    ranges.end_ns[i] = ranges.start_ns[i];
    ++backwards;
  }
  if (backwards > 0) losses.faults["range that ends before it starts"] += backwards;
  sort_ranges(*this);
  sort_the_rest(*this);
  if (const uint64_t overlaps = nest(ranges, lanes.size(), unresolved_ends(flows)); overlaps > 0)
    losses.faults["range that overlaps another of its thread without nesting"] += overlaps;
  find_launches(*this);
}

}  // namespace strobe::trace
