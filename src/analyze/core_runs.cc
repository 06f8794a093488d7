#include "analyze/core_runs.h"

#include <algorithm>
#include <charconv>
#include <unordered_map>

#include "base/tenant_words.h"

namespace strobe::analyze {

using trace::kNone;
using trace::StringId;
namespace words = tenant_words;

void read_core_runs(const trace::Timeline& timeline, TenantTrace& trace) {
  const auto said = timeline.facts.find(words::kCoreRuns);
  if (said != timeline.facts.end() && said->second != "on") {
    trace.core_runs_off = said->second;
    return;
  }
  if (timeline.core_runs.empty()) return;
  const auto time_of = [&timeline](const char* word) -> int64_t {
    const auto fact = timeline.facts.find(word);
    if (fact == timeline.facts.end()) return 0;
    int64_t time = 0;
    std::from_chars(fact->second.data(), fact->second.data() + fact->second.size(), time);
    return time;
  };
  trace.core_runs_from_ns = time_of(words::kCoreRunsFromNs);
  trace.core_runs_to_ns = time_of(words::kCoreRunsToNs);
  if (trace.core_runs_to_ns <= trace.core_runs_from_ns) return;
  for (const trace::Lane& lane : timeline.lanes)
    trace.lane_tids.push_back(lane.kind == trace::Lane::Kind::kThread ? lane.tid : kNone);
  std::unordered_map<StringId, int32_t> programs;
  const int64_t recorder = timeline.strings.find(words::kRecorder);
  std::unordered_map<StringId, int32_t> tenants;
  for (size_t i = 0; i < trace.tenants.size(); ++i)
    if (const int64_t id = timeline.strings.find(trace.tenants[i].name); id != kNone)
      tenants[static_cast<StringId>(id)] = static_cast<int32_t>(i);
  for (const trace::CoreRun& run : timeline.core_runs) {
    if (run.end_ns <= run.start_ns) continue;
    const auto [program, is_new] = programs.try_emplace(run.name, static_cast<int32_t>(trace.programs.size()));
    if (is_new) trace.programs.emplace_back(timeline.strings[run.name]);
    const auto tenant = tenants.find(run.holder);
    trace.core_runs.push_back({run.start_ns, run.end_ns, run.core, run.tid,
                               tenant == tenants.end() ? kNone : tenant->second,
                               run.holder != 0 && int64_t{run.holder} == recorder, run.preempted, program->second});
  }
}

CoreRunIndex::CoreRunIndex(const TenantTrace& trace) : trace_(trace) {
  const auto& runs = trace.core_runs;
  for (size_t i = 0; i < runs.size(); ++i) {
    const auto row = static_cast<int64_t>(i);
    if (cores_.empty() || cores_.back().first != runs[i].core) cores_.push_back({runs[i].core, {row, row}});
    cores_.back().second.second = row + 1;
    by_thread_.push_back(static_cast<int32_t>(i));
  }
  std::sort(by_thread_.begin(), by_thread_.end(), [&runs](int32_t a, int32_t b) {
    const TenantCoreRun &left = runs[static_cast<size_t>(a)], &right = runs[static_cast<size_t>(b)];
    return left.tid != right.tid ? left.tid < right.tid : left.start_ns < right.start_ns;
  });
}

bool CoreRunIndex::covers(int64_t from_ns, int64_t to_ns) const {
  return !cores_.empty() && from_ns >= trace_.core_runs_from_ns && to_ns <= trace_.core_runs_to_ns;
}

std::vector<Interval> CoreRunIndex::waits(int32_t tid, const std::vector<Interval>& within, double waited_ns) const {
  struct Gap {
    int64_t from, to;
    bool preempted;
  };
  std::vector<Gap> gaps;
  const auto& runs = trace_.core_runs;
  double certain = 0, asleep = 0;
  for (const Interval& interval : within) {
    const int64_t from = interval.first, to = interval.second;
    auto at = std::partition_point(by_thread_.begin(), by_thread_.end(), [&](int32_t row) {
      const TenantCoreRun& run = runs[static_cast<size_t>(row)];
      return run.tid != tid ? run.tid < tid : run.end_ns <= from;
    });
    int64_t last = from;
    // The run before tells whether the thread waits or sleeps at `from`.
    bool preempted = at != by_thread_.begin() && runs[static_cast<size_t>(*(at - 1))].tid == tid &&
                     runs[static_cast<size_t>(*(at - 1))].preempted;
    const auto add = [&](int64_t until) {
      if (until <= last) return;
      gaps.push_back({last, until, preempted});
      (preempted ? certain : asleep) += static_cast<double>(until - last);
    };
    for (; at != by_thread_.end() && runs[static_cast<size_t>(*at)].tid == tid; ++at) {
      const TenantCoreRun& run = runs[static_cast<size_t>(*at)];
      if (run.start_ns >= to) break;
      add(std::min(run.start_ns, to));
      last = std::max(last, run.end_ns);
      preempted = run.preempted;
    }
    add(to);
  }
  const double late = std::max(0.0, waited_ns - certain), share = asleep > 0 ? std::min(1.0, late / asleep) : 0;
  std::vector<Interval> found;
  for (const Gap& gap : gaps) {
    const auto length = static_cast<double>(gap.to - gap.from);
    const int64_t from = gap.preempted ? gap.from : gap.to - static_cast<int64_t>(length * share);
    if (from < gap.to) found.emplace_back(from, gap.to);
  }
  return found;
}

std::vector<CoreWait> CoreRunIndex::split(int32_t tid, const std::vector<Interval>& within, double waited_ns,
                                          int32_t resource) const {
  const std::vector<int32_t>& allowed = trace_.resources[static_cast<size_t>(resource)].cores;
  const auto& runs = trace_.core_runs;
  std::vector<CoreWait> parts;
  double sum = 0;
  const auto give = [&](const CoreWait& who, double ns, bool beside_idle) {
    sum += ns;
    auto part = std::find_if(parts.begin(), parts.end(), [&who](const CoreWait& one) {
      return one.tenant == who.tenant && one.is_recorder == who.is_recorder && one.is_idle == who.is_idle &&
             one.program == who.program;
    });
    if (part == parts.end()) part = parts.insert(part, who);
    part->ns += ns;
    if (beside_idle) part->beside_idle_ns += ns;
  };
  const size_t cores = allowed.empty() ? cores_.size() : allowed.size();
  std::vector<std::pair<int64_t, int32_t>> events;  // time, row: begins; ~row: ends
  std::vector<int32_t> active;
  for (const auto& [from, to] : waits(tid, within, waited_ns)) {
    events.clear();
    active.clear();
    for (const auto& [core, rows] : cores_) {
      if (!allowed.empty() && std::find(allowed.begin(), allowed.end(), core) == allowed.end()) continue;
      auto at = std::partition_point(runs.begin() + rows.first, runs.begin() + rows.second,
                                     [from = from](const TenantCoreRun& run) { return run.end_ns <= from; });
      for (; at != runs.begin() + rows.second && at->start_ns < to; ++at) {
        const auto row = static_cast<int32_t>(at - runs.begin());
        if (at->tid == tid) continue;  // stamps of two cores may overlap by some ns
        events.emplace_back(std::max(from, at->start_ns), row);
        events.emplace_back(std::min(to, at->end_ns), ~row);
      }
    }
    std::sort(events.begin(), events.end());
    int64_t last = from;
    const auto pass = [&](int64_t until) {
      const auto length = static_cast<double>(until - last);
      last = until;
      if (length <= 0) return;
      if (active.empty()) give({.is_idle = true}, length, false);
      for (const int32_t row : active) {
        const TenantCoreRun& run = runs[static_cast<size_t>(row)];
        give({.tenant = run.tenant, .is_recorder = run.is_recorder, .program = run.program},
             length / static_cast<double>(active.size()), active.size() < cores);
      }
    };
    for (const auto& [time, row] : events) {
      pass(time);
      if (row >= 0)
        active.push_back(row);
      else
        std::erase(active, ~row);
    }
    pass(to);
  }
  for (CoreWait& part : parts)
    for (double* ns : {&part.ns, &part.beside_idle_ns}) *ns *= sum > 0 ? waited_ns / sum : 0;
  return parts;
}

}  // namespace strobe::analyze
