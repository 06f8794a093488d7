// What can be told only when all events are there: time 0, which process a stream belongs to, where flows and marks
// are.
#include <algorithm>
#include <numeric>
#include <set>
#include <tuple>

#include "importers/kineto_builder.h"

namespace strobe::importers {

using trace::kNone;
using trace::Lane;

trace::Timeline KinetoBuilder::finish() {
  if (first_ns_ > last_ns_) first_ns_ = last_ns_ = 0;
  close_open_ranges();
  place_marks();
  connect_flows();
  find_owners();
  name_and_sort_lanes();
  shift_times();
  timeline_.finish();
  return std::move(timeline_);
}

void KinetoBuilder::close_open_ranges() {
  trace::Ranges& ranges = timeline_.ranges;
  for (size_t i = 0; i < ranges.size(); ++i)
    if (ranges.open[i]) ranges.end_ns[i] = last_ns_;
}

void KinetoBuilder::shift_times() {
  const auto shift = [this](std::vector<int64_t>& times) {
    for (int64_t& time : times) time -= first_ns_;
  };
  shift(timeline_.ranges.start_ns);
  shift(timeline_.ranges.end_ns);
  shift(timeline_.marks.time_ns);
  shift(timeline_.counters.time_ns);
  shift(timeline_.flows.from_ns);
  shift(timeline_.flows.to_ns);
  for (const auto& [name, time] : time_facts_) timeline_.facts[name] = std::to_string(time - first_ns_);
  timeline_.duration_ns = last_ns_ - first_ns_;
  // Without a base, times are since the epoch (older files) or since anything.
  constexpr int64_t kYear2001_ns = 1'000'000'000'000'000'000;
  if (base_ns_) {
    timeline_.utc_start_ns = first_ns_ + *base_ns_;
  } else if (first_ns_ >= kYear2001_ns) {
    timeline_.utc_start_ns = first_ns_;
  }
}

// In PyTorch's files pid and tid of a stream's rows are its device and number.
std::optional<int32_t> KinetoBuilder::lane_at(Place place) const {
  if (const auto found = thread_lanes_.find(place); found != thread_lanes_.end()) return found->second;
  if (const auto found = stream_lanes_.find(place); found != stream_lanes_.end()) return found->second;
  return std::nullopt;
}

void KinetoBuilder::place_marks() {
  for (size_t i = 0; i < mark_places_.size(); ++i) {
    const auto lane = lane_at(mark_places_[i]);
    timeline_.marks.lane[i] = lane ? *lane : thread_lane(mark_places_[i]);
  }
}

// Ends with the same category, name and id, in the order of their times: s, any t, f. An id may come again.
void KinetoBuilder::connect_flows() {
  const auto rank = [](char phase) { return phase == 's' ? 0 : phase == 't' ? 1 : 2; };
  const auto same = [](const FlowEnd& a, const FlowEnd& b) {
    return a.category == b.category && a.name == b.name && a.id == b.id;
  };
  std::stable_sort(flow_ends_.begin(), flow_ends_.end(), [&rank](const FlowEnd& a, const FlowEnd& b) {
    return std::tuple(a.category, a.name, a.id, a.time_ns, rank(a.phase)) <
           std::tuple(b.category, b.name, b.id, b.time_ns, rank(b.phase));
  });
  trace::Flows& flows = timeline_.flows;
  const FlowEnd* from = nullptr;  // where the next arrow starts
  bool arrived = true;
  uint64_t no_departure = 0, no_arrival = 0;
  for (const FlowEnd& end : flow_ends_) {
    if (from && (!same(*from, end) || end.phase == 's')) {
      no_arrival += arrived ? 0 : 1;
      from = nullptr;
    }
    if (end.phase == 's') {
      from = &end;
      arrived = false;
      continue;
    }
    if (!from) {
      ++no_departure;
      continue;
    }
    flows.name.push_back(end.name);
    flows.from_ns.push_back(from->time_ns);
    flows.to_ns.push_back(end.time_ns);
    flows.from_range.push_back(kNone);
    flows.to_range.push_back(kNone);
    flows.from_lane.push_back(lane_at(from->place).value_or(kNone));
    flows.to_lane.push_back(lane_at(end.place).value_or(kNone));
    arrived = true;
    from = end.phase == 't' ? &end : nullptr;
  }
  if (from && !arrived) ++no_arrival;
  if (no_departure > 0) add_fault("flow that arrived without a departure", no_departure);
  if (no_arrival > 0) add_fault("flow that never arrived", no_arrival);
  flow_ends_ = {};
}

// Streams belong to the process whose calls have their correlation numbers; most files have one such process.
void KinetoBuilder::find_owners() {
  const auto pid_of = [this](int32_t range) {
    return timeline_.lanes[static_cast<size_t>(timeline_.ranges.lane[static_cast<size_t>(range)])].pid;
  };
  std::map<int32_t, size_t> calls;
  for (const trace::ApiCall& call : timeline_.api_calls) ++calls[pid_of(call.range)];
  std::map<int32_t, size_t> rows;
  for (size_t i = 0; calls.empty() && i < timeline_.ranges.size(); ++i) {
    const Lane& lane = timeline_.lanes[static_cast<size_t>(timeline_.ranges.lane[i])];
    if (lane.kind == Lane::Kind::kThread) ++rows[lane.pid];
  }
  const auto most = [](const std::map<int32_t, size_t>& counts) {
    const auto found = std::max_element(counts.begin(), counts.end(),
                                        [](const auto& a, const auto& b) { return a.second < b.second; });
    return found == counts.end() ? 0 : found->first;
  };
  const int32_t owner = most(calls.empty() ? rows : calls);
  for (Lane& lane : timeline_.lanes)
    if (lane.kind == Lane::Kind::kStream) lane.pid = owner;
  if (calls.size() < 2) return;

  std::vector<std::pair<int64_t, int32_t>> pids;  // correlation, process
  for (const trace::ApiCall& call : timeline_.api_calls)
    if (call.correlation != 0) pids.emplace_back(call.correlation, pid_of(call.range));
  std::sort(pids.begin(), pids.end());
  pids.erase(std::unique(pids.begin(), pids.end()), pids.end());
  std::vector<std::map<int32_t, size_t>> votes(timeline_.lanes.size());
  for (const trace::DeviceOp& op : timeline_.device_ops) {
    auto found = std::lower_bound(pids.begin(), pids.end(), std::pair(op.correlation, INT32_MIN));
    auto& of_lane = votes[static_cast<size_t>(timeline_.ranges.lane[static_cast<size_t>(op.range)])];
    for (; found != pids.end() && found->first == op.correlation; ++found) ++of_lane[found->second];
  }
  for (size_t i = 0; i < votes.size(); ++i)
    if (!votes[i].empty() && timeline_.lanes[i].kind == Lane::Kind::kStream) timeline_.lanes[i].pid = most(votes[i]);
}

// Lanes in the order in which the file wants them shown: by process, threads before streams.
void KinetoBuilder::name_and_sort_lanes() {
  std::vector<Lane>& lanes = timeline_.lanes;
  using Words = std::unordered_map<int32_t, std::string_view>;
  const auto by_id = [](const std::map<std::string, int32_t, std::less<>>& ids) {
    Words words;
    for (const auto& [word, id] : ids) words.emplace(id, word);
    return words;
  };
  const Words pid_words = by_id(pid_words_), tid_words = by_id(tid_words_);
  const auto word_of = [](const Words& words, int32_t id) {
    const auto found = words.find(id);
    return found == words.end() ? std::string_view{} : found->second;
  };
  std::vector<int64_t> sort_index(lanes.size(), 0);
  const auto describe = [&](const LaneMap& map) {
    for (const auto& [place, lane] : map) {
      if (const auto names = thread_names_.find(place); names != thread_names_.end()) {
        lanes[static_cast<size_t>(lane)].name = names->second.name;
        sort_index[static_cast<size_t>(lane)] = names->second.sort_index;
      }
      trace::StringId& name = lanes[static_cast<size_t>(lane)].name;
      if (name == 0) name = timeline_.strings.intern(word_of(tid_words, place.tid));
    }
  };
  describe(thread_lanes_);
  describe(stream_lanes_);

  std::set<int32_t> pids;
  for (const Lane& lane : lanes) pids.insert(lane.pid);
  for (const int32_t pid : timeline_.counters.pid) pids.insert(pid);
  const auto process_sort_index = [this](int32_t pid) {
    const auto names = process_names_.find(pid);
    return names == process_names_.end() ? int64_t{0} : names->second.sort_index;
  };
  for (const int32_t pid : pids) {
    const auto names = process_names_.find(pid);
    trace::StringId name = names == process_names_.end() ? 0 : names->second.name;
    if (name == 0) name = timeline_.strings.intern(word_of(pid_words, pid));
    timeline_.processes.push_back({pid, name});
  }
  std::stable_sort(timeline_.processes.begin(), timeline_.processes.end(),
                   [&](const auto& a, const auto& b) { return process_sort_index(a.pid) < process_sort_index(b.pid); });

  std::vector<int32_t> order(lanes.size()), position(lanes.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](int32_t x, int32_t y) {
    const auto key = [&](int32_t index) {
      const Lane& lane = lanes[static_cast<size_t>(index)];
      return std::tuple(process_sort_index(lane.pid), lane.pid, lane.kind, lane.device,
                        sort_index[static_cast<size_t>(index)], lane.tid);
    };
    return key(x) < key(y);
  });
  std::vector<Lane> sorted;
  sorted.reserve(lanes.size());
  for (size_t i = 0; i < order.size(); ++i) {
    sorted.push_back(lanes[static_cast<size_t>(order[i])]);
    position[static_cast<size_t>(order[i])] = static_cast<int32_t>(i);
  }
  lanes.swap(sorted);
  const auto follow = [&position](std::vector<int32_t>& column) {
    for (int32_t& lane : column)
      if (lane != kNone) lane = position[static_cast<size_t>(lane)];
  };
  follow(timeline_.ranges.lane);
  follow(timeline_.marks.lane);
  follow(timeline_.flows.from_lane);
  follow(timeline_.flows.to_lane);
}

}  // namespace strobe::importers
