#include "analyze/deadlines.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "analyze/cells.h"
#include "analyze/tenant_tables.h"
#include "base/statistics.h"

namespace strobe::analyze {

using trace::Timeline;

namespace {

// Why a frame takes longer than a typical one.
enum Reason : size_t { kOwnWork, kOthers, kBacklog, kArrival, kSystem, kNobody, kReasons };
constexpr std::array<const char*, kReasons> kReasonNames = {"own work",     "other tenants", "backlog",
                                                            "late arrival", "system",        "unknown"};
using Parts = std::array<double, kReasons>;  // ms

struct FrameReasons {
  Parts parts{};
  std::map<std::pair<int32_t, int32_t>, double> others;  // by (tenant, resource), ms
};

double ms(double ns) {
  return ns / 1e6;
}

class Deadlines {
 public:
  Deadlines(const Timeline& timeline, BlameAnalysis analysis, const DeadlineOptions& options)
      : timeline_(timeline), analysis_(std::move(analysis)), trace_(analysis_.trace), options_(options) {}

  Result<DeadlineAnswer> answer() {
    make_tables();
    bool any = false;
    for (size_t t = 0; t < trace_.tenants.size(); ++t) any = one_tenant(t) || any;
    if (!any) return usage_error("no tenant of this trace has a deadline: say one with --deadline-ms");
    const auto weak = analysis_.gates.reasons();
    if (!analysis_.gates.because() && answer_.late.row_count() > 0) {
      std::string all;
      for (const std::string& reason : weak) all += (all.empty() ? "" : "; ") + reason;
      answer_.reasons.notes.push_back(
          "these reasons go with the misses, the trace does not prove that they made them: " + all);
    }
    return std::move(answer_);
  }

 private:
  void make_tables() {
    answer_.tenants =
        Table("Deadlines", {{"tenant", "", 0},
                            {"deadline_ms", "from the stamp", 2},
                            {"frames", "due", 0},
                            {"met", "", 0},
                            {"late", "", 0},
                            {"dropped", "", 0},
                            {"overwritten", "", 0},
                            {"failed", "", 0},
                            {"lost", "", 0},
                            {"not_sent", "", 0},
                            {"miss_share", "of all frames due", 4},
                            {"tardiness_mean_ms", "of late frames, beyond the deadline", 3},
                            {"tardiness_p99_ms", "", 3},
                            {"tardiness_max_ms", "", 3},
                            {"longest_run", "misses in a row", 0},
                            {"most_in_window", fmt::format("misses in any {} frames in a row", options_.window), 0},
                            {"recovery_frames", "median, from a run's last miss to usual latency", 1}});
    std::vector<Column> late = {{"tenant", "", 0},
                                {"frame", "", 0},
                                {"token", "of the input", 0},
                                {"latency_ms", "", 3},
                                {"over_ms", "beyond the deadline", 3}};
    for (const char* name : {"own_work_ms", "others_ms", "backlog_ms", "arrival_ms", "system_ms", "unknown_ms"})
      late.push_back({name, "more than a typical frame has", 3});
    for (const char* name : {"by", "resource", "verdict", "necessary", "sufficient"}) late.push_back({name, "", 0});
    answer_.late = Table("Late frames", late);
    answer_.reasons = Table("Why frames were late", {{"tenant", "", 0},
                                                     {"verdict", "the largest reason", 0},
                                                     {"by", "", 0},
                                                     {"resource", "", 0},
                                                     {"frames", "", 0},
                                                     {"share", "of the tenant's late frames", 3}});
    answer_.budget =
        Table("Time for each stage", {{"tenant", "", 0},
                                      {"stage", "", 0},
                                      {"need_ms", "quantile 1 - miss share / stages", 3},
                                      {"budget_ms", "local deadline; they sum to the deadline", 3},
                                      {"use", "need / budget", 3},
                                      {"broken_first", "late frames in which it was the first to overrun", 0}});
  }

  int64_t deadline_of(const TenantFrame& frame) const {
    return options_.deadline_ms ? static_cast<int64_t>(*options_.deadline_ms * 1e6) : frame.deadline_ns;
  }

  // Whether the tenant has a deadline.
  bool one_tenant(size_t tenant) {
    std::vector<size_t> frames;
    for (size_t i = 0; i < trace_.frames.size(); ++i)
      if (trace_.frames[i].counts && static_cast<size_t>(trace_.frames[i].tenant) == tenant &&
          deadline_of(trace_.frames[i]) > 0)
        frames.push_back(i);
    if (frames.empty()) return false;
    std::stable_sort(frames.begin(), frames.end(),
                     [&](size_t a, size_t b) { return trace_.frames[a].stamp_ns < trace_.frames[b].stamp_ns; });
    std::vector<size_t> finished;
    std::vector<double> latency;
    for (const size_t i : frames)
      if (trace_.frames[i].finished()) {
        finished.push_back(i);
        latency.push_back(ms(static_cast<double>(trace_.frames[i].latency_ns())));
      }
    add_rates(tenant, frames, latency);
    if (!finished.empty()) {
      add_late(tenant, finished, latency);
      add_budget(tenant, finished);
    }
    return true;
  }

  bool is_missed(size_t frame) const {
    const TenantFrame& one = trace_.frames[frame];
    return !one.finished() || one.latency_ns() > deadline_of(one);
  }

  void add_rates(size_t tenant, const std::vector<size_t>& frames, const std::vector<double>& latency) {
    int64_t counts[5] = {}, late = 0, run = 0, longest = 0;
    size_t most_in_window = 0;
    std::vector<double> tardiness;
    std::vector<bool> missed;
    for (const size_t i : frames) {
      const TenantFrame& frame = trace_.frames[i];
      ++counts[static_cast<size_t>(frame.outcome)];
      missed.push_back(is_missed(i));
      run = missed.back() ? run + 1 : 0;
      longest = std::max(longest, run);
      if (frame.finished() && missed.back()) {
        ++late;
        tardiness.push_back(ms(static_cast<double>(frame.latency_ns() - deadline_of(frame))));
      }
    }
    size_t in_window = 0;
    for (size_t i = 0; i < missed.size(); ++i) {
      in_window += missed[i] ? 1 : 0;
      if (i >= options_.window) in_window -= missed[i - options_.window] ? 1 : 0;
      most_in_window = std::max(most_in_window, in_window);
    }
    const auto count = [&](FrameOutcome outcome) { return counts[static_cast<size_t>(outcome)]; };
    const auto not_sent = static_cast<int64_t>(trace_.tenants[tenant].not_sent);
    const auto due = static_cast<int64_t>(frames.size()) + not_sent;
    const int64_t met = count(FrameOutcome::kFinished) - late;
    const bool any_late = !tardiness.empty();
    const double mean_tardiness = any_late ? mean(tardiness) : 0;
    std::sort(tardiness.begin(), tardiness.end());
    answer_.tenants.add_row(
        {trace_.tenants[tenant].name, ms(static_cast<double>(deadline_of(trace_.frames[frames.front()]))), due, met,
         late, count(FrameOutcome::kDropped), count(FrameOutcome::kOverwritten), count(FrameOutcome::kFailed),
         count(FrameOutcome::kLost), not_sent, static_cast<double>(due - met) / static_cast<double>(due),
         cell_if(any_late, mean_tardiness), cell_if(any_late, any_late ? quantile_sorted(tardiness, 0.99) : 0),
         cell_if(any_late, any_late ? tardiness.back() : 0), longest, static_cast<int64_t>(most_in_window),
         recovery(frames, missed, latency)});
  }

  // Frames from the last miss of a run until one is as fast as the median frame and its usual spread.
  Cell recovery(const std::vector<size_t>& frames, const std::vector<bool>& missed,
                const std::vector<double>& latency) const {
    if (latency.empty()) return {};
    const double p50 = quantile(latency, 0.5), p99 = quantile(latency, 0.99);
    std::vector<double> lengths;
    for (size_t i = 0; i + 1 < frames.size(); ++i) {
      if (!missed[i] || missed[i + 1]) continue;
      for (size_t j = i + 1; j < frames.size() && !missed[j]; ++j)
        if (ms(static_cast<double>(trace_.frames[frames[j]].latency_ns())) <= p50 + (p99 - p50) / 2) {
          lengths.push_back(static_cast<double>(j - i));
          break;
        }
    }
    return cell_if(!lengths.empty(), lengths.empty() ? 0 : quantile(lengths, 0.5));
  }

  FrameReasons parts_of(size_t frame) const {
    const FrameBlame& blame = analysis_.frames[frame];
    const TenantFrame& one = trace_.frames[frame];
    const auto tenants = static_cast<int32_t>(trace_.tenants.size());
    FrameReasons all;
    const double arrival = static_cast<double>(one.arrival_ns - one.stamp_ns);
    double rest = static_cast<double>(one.latency_ns()) - blame.intrinsic_path_ns;
    for (const BlameCell& cell : blame.with_backlog) {
      if (cell.by == one.tenant) {
        all.parts[kBacklog] += ms(cell.ns);
      } else if (cell.by < tenants) {
        all.parts[kOthers] += ms(cell.ns);
        all.others[{cell.by, cell.resource}] += ms(cell.ns);
      } else if (cell.by == blamed(trace_, Blamed::kSystem) || cell.by == blamed(trace_, Blamed::kRecorder)) {
        all.parts[kSystem] += ms(cell.ns);
      } else {
        continue;  // is what is left in the end
      }
      rest -= cell.ns;
    }
    all.parts[kOwnWork] = ms(blame.intrinsic_path_ns - arrival);  // blame has the way to the tenant among its services
    all.parts[kArrival] = ms(arrival);
    all.parts[kNobody] = ms(rest);
    return all;
  }

  void add_late(size_t tenant, const std::vector<size_t>& finished, const std::vector<double>& latency) {
    std::vector<size_t> order(finished.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return latency[a] < latency[b]; });
    const size_t low = order.size() * 45 / 100, high = std::max(low + 1, (order.size() * 55 + 99) / 100);
    FrameReasons typical;
    for (size_t i = low; i < high; ++i) {
      const FrameReasons one = parts_of(finished[order[i]]);
      for (size_t r = 0; r < kReasons; ++r) typical.parts[r] += one.parts[r] / static_cast<double>(high - low);
      for (const auto& [who, value] : one.others) typical.others[who] += value / static_cast<double>(high - low);
    }
    const double p50 = quantile(latency, 0.5);
    std::map<std::array<std::string, 3>, int64_t> verdicts;
    int64_t late = 0;
    for (size_t i = 0; i < finished.size(); ++i) {
      const TenantFrame& frame = trace_.frames[finished[i]];
      const double deadline = ms(static_cast<double>(deadline_of(frame)));
      if (latency[i] <= deadline) continue;
      ++late;
      const FrameReasons one = parts_of(finished[i]);
      Parts more{};
      size_t largest = 0;
      for (size_t r = 0; r < kReasons; ++r) {
        more[r] = one.parts[r] - typical.parts[r];
        if (more[r] > more[largest]) largest = r;
      }
      std::pair<int32_t, int32_t> who{trace::kNone, trace::kNone};
      double most = 0;
      for (const auto& [other, value] : one.others) {
        const auto usual = typical.others.find(other);
        const double extra = value - (usual == typical.others.end() ? 0 : usual->second);
        if (extra > most) {
          most = extra;
          who = other;
        }
      }
      std::string necessary;
      for (size_t r = 0; r < kReasons; ++r)
        if (more[r] > 0 && latency[i] - more[r] <= deadline)
          necessary += (necessary.empty() ? "" : ", ") + std::string(kReasonNames[r]);
      const std::string by =
          largest == kOthers && who.first >= 0 ? trace_.tenants[static_cast<size_t>(who.first)].name : "";
      const std::string on = by.empty() ? "" : blamed_resource_name(trace_, who.second);
      const std::string other = who.first >= 0 ? trace_.tenants[static_cast<size_t>(who.first)].name : "";
      ++verdicts[{kReasonNames[largest], by, on}];
      std::vector<Cell> row = {trace_.tenants[tenant].name, frame.id, std::string(timeline_.strings[frame.token]),
                               latency[i], latency[i] - deadline};
      for (const double part : more) row.emplace_back(part);
      row.push_back(cell(other));
      row.push_back(cell(who.second >= 0 ? blamed_resource_name(trace_, who.second) : ""));
      row.emplace_back(kReasonNames[largest]);
      row.push_back(cell(necessary));
      row.emplace_back(p50 + more[largest] > deadline ? "yes" : "no");
      answer_.late.add_row(std::move(row));
    }
    std::vector<std::pair<int64_t, std::array<std::string, 3>>> ranked;
    for (const auto& [verdict, count] : verdicts) ranked.emplace_back(count, verdict);
    std::sort(ranked.rbegin(), ranked.rend());
    for (const auto& [count, verdict] : ranked)
      answer_.reasons.add_row({trace_.tenants[tenant].name, verdict[0], cell(verdict[1]), cell(verdict[2]), count,
                               static_cast<double>(count) / static_cast<double>(late)});
  }

  // By name, in the order in which the stages come; "comm" and "queue" are what lies before and between them.
  void add_budget(size_t tenant, const std::vector<size_t>& finished) {
    std::vector<std::string> names = {"comm", "queue"};
    std::vector<std::vector<double>> spent(2);
    const auto index_of = [&](std::string_view name) {
      const auto found = std::find(names.begin(), names.end(), name);
      if (found != names.end()) return static_cast<size_t>(found - names.begin());
      names.emplace_back(name);
      spent.emplace_back(spent[0].size(), 0.0);
      return names.size() - 1;
    };
    for (const size_t i : finished) {
      for (auto& stage : spent) stage.push_back(0);
      const TenantFrame& frame = trace_.frames[i];
      const FrameParts parts = frame_parts(trace_, timeline_, i);
      spent[0].back() = ms(static_cast<double>(parts.comm_ns));
      spent[1].back() = ms(static_cast<double>(parts.queue_ns));
      for (int32_t s = frame.first_stage; s < frame.first_stage + frame.stage_count; ++s) {
        const TenantStage& stage = trace_.stages[static_cast<size_t>(s)];
        const size_t index = index_of(timeline_.strings[stage.name]);
        if (spent[index].size() < spent[0].size()) spent[index].resize(spent[0].size());
        spent[index].back() += ms(static_cast<double>(stage.end_ns - stage.start_ns));
      }
    }
    const double deadline = ms(static_cast<double>(deadline_of(trace_.frames[finished.front()])));
    double missed = 0;
    for (const size_t i : finished) missed += is_missed(i) ? 1 : 0;
    const double q = 1 - missed / static_cast<double>(finished.size()) / static_cast<double>(names.size());
    std::vector<double> need;
    double sum = 0;
    for (const auto& stage : spent) {
      need.push_back(quantile(stage, q));
      sum += need.back();
    }
    std::vector<int64_t> broken(names.size());
    for (size_t f = 0; f < finished.size(); ++f) {
      if (!is_missed(finished[f])) continue;
      for (size_t k = 0; k < names.size(); ++k)
        if (spent[k][f] > deadline * need[k] / sum) {
          ++broken[k];
          break;
        }
    }
    for (size_t k = 0; k < names.size(); ++k) {
      const double budget = sum > 0 ? deadline * need[k] / sum : 0;
      answer_.budget.add_row({trace_.tenants[tenant].name, names[k], need[k], budget,
                              cell_if(budget > 0, budget > 0 ? need[k] / budget : 0), broken[k]});
    }
  }

  const Timeline& timeline_;
  BlameAnalysis analysis_;
  const TenantTrace& trace_;
  const DeadlineOptions& options_;
  DeadlineAnswer answer_;
};

}  // namespace

Result<DeadlineAnswer> deadlines(const Timeline& timeline, const DeadlineOptions& options) {
  STROBE_ASSIGN(TenantTrace trace, tenant_trace(timeline));
  return Deadlines(timeline, blame(std::move(trace)), options).answer();
}

}  // namespace strobe::analyze
