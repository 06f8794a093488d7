#include "analyze/what_if_device.h"

#include <algorithm>
#include <limits>
#include <regex>
#include <span>

#include "analyze/critical_path.h"
#include "analyze/dependency_graph.h"
#include "analyze/what_if_tables.h"

namespace strobe::analyze {

using trace::kNone;
using trace::Timeline;

namespace {

// A unit of work: an instance of the range that was asked for, or the whole trace.
struct Unit {
  int32_t first, last;  // operations
};

class Replay {
 public:
  explicit Replay(const Timeline& timeline) : timeline_(timeline), graph_(timeline) {
    services_.reserve(graph_.operations().size());
    for (const Operation& operation : graph_.operations()) services_.push_back(operation.end_ns - operation.start_ns);
  }

  const DependencyGraph& graph() const { return graph_; }
  const LargeVector<int64_t>& services() const { return services_; }

  Result<void> find_units(const std::string& range) {
    if (graph_.operations().empty()) return not_found("the trace holds no operation to replay");
    if (range.empty()) {
      const auto all = std::numeric_limits<int64_t>::max();
      units_.push_back({0, graph_.last_before(graph_.operations().front().start_ns, all)});
      return {};
    }
    const std::vector<int32_t> candidates = ranges_named(timeline_, range);
    STROBE_TRY(choose_instance(timeline_, candidates, {.range = range}));
    for (const int32_t candidate : candidates) {
      const auto at = static_cast<size_t>(candidate);
      const int32_t lane = timeline_.ranges.lane[at];
      const int32_t first = graph_.first_of_lane(lane, timeline_.ranges.start_ns[at]);
      const int32_t last = graph_.last_of_lane(lane, timeline_.ranges.start_ns[at], timeline_.ranges.end_ns[at]);
      if (first != kNone && last != kNone && first <= last) units_.push_back({first, last});
    }
    if (units_.empty()) return not_found("no operation lies in a range '" + range + "'");
    return {};
  }

  bool has_sync() const { return graph_.has(EdgeType::kSync); }

  // Operations that a selector means.
  Result<LargeVector<uint8_t>> selected(const Selector& what) const {
    const trace::Ranges& ranges = timeline_.ranges;
    LargeVector<uint8_t> range_selected(ranges.size(), 0);
    switch (what.kind) {
      case Selector::Kind::kStage:
        return usage_error(what.text() + ": only the trace of a pipeline's run has stages");
      case Selector::Kind::kLayer:
        return usage_error(what.text() + ": only the trace of a pipeline's run has layers; name a kernel or a range");
      case Selector::Kind::kKernel: {
        std::vector<int8_t> matches(timeline_.strings.size(), -1);
        try {
          const std::regex pattern(what.name);
          for (size_t i = 0; i < ranges.size(); ++i) {
            if (!is_device(ranges.kind[i])) continue;
            int8_t& match = matches[ranges.name[i]];
            if (match < 0) {
              const std::string_view name = timeline_.strings[ranges.name[i]];
              match = std::regex_search(name.begin(), name.end(), pattern) ? 1 : 0;
            }
            range_selected[i] = match > 0 ? 1 : 0;
          }
        } catch (const std::regex_error& fault) {
          return usage_error(what.text() + " is no regular expression: " + fault.what());
        }
        break;
      }
      case Selector::Kind::kRange: {
        const int64_t name = timeline_.strings.find(what.name);
        for (size_t i = 0; i < ranges.size(); ++i) {
          const int32_t parent = ranges.parent[i];
          range_selected[i] =
              ranges.name[i] == name || (parent != kNone && range_selected[static_cast<size_t>(parent)]);
        }
        break;
      }
      case Selector::Kind::kTenant:
        for (size_t i = 0; i < ranges.size(); ++i) {
          const int32_t pid = timeline_.lanes[static_cast<size_t>(ranges.lane[i])].pid;
          bool named = std::to_string(pid) == what.name;
          for (const trace::Process& process : timeline_.processes)
            named |= process.pid == pid && timeline_.strings[process.name] == what.name;
          range_selected[i] = named ? 1 : 0;
        }
        break;
    }
    LargeVector<uint8_t> operations(services_.size(), 0);
    bool any = false;
    for (size_t i = 0; i < operations.size(); ++i) {
      operations[i] = range_selected[static_cast<size_t>(graph_.operations()[i].range)];
      any |= operations[i] != 0;
    }
    if (!any) return not_found(what.text() + " selects nothing in the trace");
    return operations;
  }

  struct Outcome {
    std::vector<double> latency_ns, finished_ns;
    double duration_ns = 0;
    double throughput() const { return static_cast<double>(latency_ns.size()) / duration_ns * 1e9; }
  };
  LargeVector<int64_t> ends(std::span<const int64_t> services) const {
    return replayed_ends(graph_, 0, static_cast<int32_t>(services.size()) - 1, services);
  }
  // Without a change: waits without a recorded reason are kept, so that a replay is the recording itself.
  LargeVector<int64_t> recorded_ends() const {
    LargeVector<int64_t> ends;
    ends.reserve(services_.size());
    for (const Operation& operation : graph_.operations()) ends.push_back(operation.end_ns);
    return ends;
  }
  Outcome outcome(std::span<const int64_t> services, std::span<const int64_t> ends) const {
    Outcome outcome;
    int64_t first_start = std::numeric_limits<int64_t>::max(), last_end = std::numeric_limits<int64_t>::min();
    for (const Unit& unit : units_) {
      const int64_t start = ends[static_cast<size_t>(unit.first)] - services[static_cast<size_t>(unit.first)];
      const int64_t end = ends[static_cast<size_t>(unit.last)];
      outcome.latency_ns.push_back(static_cast<double>(end - start));
      outcome.finished_ns.push_back(static_cast<double>(end));
      first_start = std::min(first_start, start);
      last_end = std::max(last_end, end);
    }
    outcome.duration_ns = static_cast<double>(std::max<int64_t>(1, last_end - first_start));
    return outcome;
  }

  // Time on the path that leads to the end of the last unit, by name: back to the predecessor that ended last.
  std::map<std::string, double> path(std::span<const int64_t> services, std::span<const int64_t> ends) const {
    std::vector<int64_t> time_of_name(timeline_.strings.size(), 0);
    LargeVector<uint8_t> is_on_path(timeline_.strings.size(), 0);
    for (int32_t at = units_.back().last; at != kNone && at >= units_.front().first;) {
      const trace::StringId name = name_of(static_cast<size_t>(at));
      time_of_name[name] += services[static_cast<size_t>(at)];
      is_on_path[name] = 1;
      int32_t before = kNone;
      for (const Edge& edge : graph_.into(at))
        if (before == kNone || ends[static_cast<size_t>(edge.from)] > ends[static_cast<size_t>(before)])
          before = edge.from;
      at = before;
    }
    std::map<std::string, double> times;
    for (trace::StringId id = 0; id < is_on_path.size(); ++id)
      if (is_on_path[id]) times[std::string(timeline_.strings[id])] = static_cast<double>(time_of_name[id]);
    return times;
  }

  // The names that take most time themselves, for a sweep.
  std::vector<std::pair<trace::StringId, int64_t>> longest_names(size_t most) const {
    std::vector<int64_t> times(timeline_.strings.size(), 0);
    for (size_t i = 0; i < services_.size(); ++i) times[name_of(i)] += services_[i];
    std::vector<std::pair<trace::StringId, int64_t>> names;
    for (trace::StringId id = 0; id < times.size(); ++id)
      if (times[id] > 0) names.emplace_back(id, times[id]);
    std::stable_sort(names.begin(), names.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
    if (names.size() > most) names.resize(most);
    return names;
  }
  trace::StringId name_of(size_t operation) const {
    return timeline_.ranges.name[static_cast<size_t>(graph_.operations()[operation].range)];
  }

 private:
  const Timeline& timeline_;
  DependencyGraph graph_;
  LargeVector<int64_t> services_;
  std::vector<Unit> units_;
};

int64_t scaled(int64_t service, double factor) {
  return static_cast<int64_t>(static_cast<double>(service) * factor + 0.5);
}

}  // namespace

Result<WhatIf> device_what_if(const Timeline& timeline, const WhatIfOptions& options) {
  Replay replay(timeline);
  STROBE_TRY(replay.find_units(options.range));
  LargeVector<int64_t> services = replay.services();
  std::vector<Scale> scales = options.scales;
  for (const Selector& what : options.removed) scales.push_back({what, 0});
  for (const Scale& scale : scales) {
    STROBE_ASSIGN(const LargeVector<uint8_t> selected, replay.selected(scale.what));
    for (size_t i = 0; i < services.size(); ++i)
      if (selected[i]) services[i] = scaled(services[i], scale.factor);
  }
  const LargeVector<int64_t> ends_before = replay.recorded_ends(), ends_after = replay.ends(services);
  const Replay::Outcome before = replay.outcome(replay.services(), ends_before),
                        after = replay.outcome(services, ends_after);
  const Series unchanged{before.latency_ns, before.finished_ns, before.duration_ns};
  WhatIf answer = compare(unchanged, unchanged, {after.latency_ns, after.finished_ns, after.duration_ns}, options.seed);
  answer.answer.notes.push_back(
      "waits for which the trace has no reason are kept, so the replay without a change is exact and says nothing "
      "about "
      "the prediction");
  if (!timeline.device_ops.empty() && !replay.has_sync())
    answer.answer.notes.push_back(
        "no recorded call waits for the device, so that threads do not feel in the replay how long its work takes");
  answer.path = path_table(replay.path(replay.services(), ends_before), replay.path(services, ends_after));
  if (!options.sweep) return answer;

  int64_t whole = 0;
  for (const int64_t service : services) whole += service;
  std::vector<SweepItem> items;
  constexpr size_t kMostItems = 15;
  for (const auto& [name, time] : replay.longest_names(kMostItems)) {
    SweepItem item{.name = std::string(timeline.strings[name]),
                   .time_share = static_cast<double>(time) / static_cast<double>(std::max<int64_t>(1, whole)),
                   .p50_ns = {},
                   .throughput = {}};
    for (const double factor : kSweepFactors) {
      LargeVector<int64_t> faster = services;
      for (size_t i = 0; i < faster.size(); ++i)
        if (replay.name_of(i) == name) faster[i] = scaled(faster[i], factor);
      const Replay::Outcome outcome = replay.outcome(faster, replay.ends(faster));
      item.p50_ns.push_back(median(outcome.latency_ns));
      item.throughput.push_back(outcome.throughput());
    }
    items.push_back(std::move(item));
  }
  answer.sweep = sweep_table(std::move(items), median(after.latency_ns), after.throughput());
  return answer;
}

}  // namespace strobe::analyze
