#include "simulate/truth.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

#include "base/statistics.h"

namespace strobe::simulate {
namespace {

void put(std::vector<Blame>& cells, int32_t by, int32_t resource, double ns) {
  for (Blame& cell : cells)
    if (cell.by == by && cell.resource == resource) {
      cell.ns += ns;
      return;
    }
  cells.push_back({by, resource, ns});
}

double sum(const std::vector<Blame>& cells) {
  return std::accumulate(cells.begin(), cells.end(), 0.0,
                         [](double total, const Blame& cell) { return total + cell.ns; });
}

double longest_path(const Scenario& scenario, const Log& log, const FrameLog& frame) {
  const Tenant& tenant = scenario.tenants[static_cast<size_t>(frame.tenant)];
  std::vector<double> ends(tenant.stages.size(), 0);
  double longest = 0;
  for (size_t i = 0; i < tenant.stages.size(); ++i) {
    for (const int32_t before : tenant.stages[i].after) ends[i] = std::max(ends[i], ends[static_cast<size_t>(before)]);
    ends[i] += log.stages[static_cast<size_t>(frame.stages[i])].intrinsic_ns;
    longest = std::max(longest, ends[i]);
  }
  return longest;
}

}  // namespace

std::vector<FrameTruth> frame_truths(const Scenario& scenario, const Log& log) {
  std::vector<FrameTruth> truths(log.frames.size());
  std::vector<int32_t> order;
  for (size_t i = 0; i < log.frames.size(); ++i)
    if (log.frames[i].outcome == FrameLog::Outcome::kFinished) order.push_back(static_cast<int32_t>(i));
  const auto first_start = [&log](int32_t frame) {
    return log.stages[static_cast<size_t>(log.frames[static_cast<size_t>(frame)].stages.front())].start_ns;
  };
  std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) { return first_start(a) < first_start(b); });
  for (const int32_t number : order) {
    const FrameLog& frame = log.frames[static_cast<size_t>(number)];
    FrameTruth& truth = truths[static_cast<size_t>(number)];
    const double comm = frame.arrival_ns - frame.stamp_ns;
    truth.latency_ns = frame.done_ns - frame.stamp_ns;
    truth.intrinsic_longest_ns = comm + longest_path(scenario, log, frame);
    truth.intrinsic_path_ns = comm;
    const int32_t queue = thread_queue_of(scenario, frame.tenant);
    for (int32_t at = frame.last; at >= 0; at = log.stages[static_cast<size_t>(at)].cause) {
      const StageLog& stage = log.stages[static_cast<size_t>(at)];
      truth.intrinsic_path_ns += stage.intrinsic_ns;
      for (const Blame& cell : stage.blame) {
        put(truth.direct, cell.by, cell.resource, cell.ns);
        put(truth.with_backlog, cell.by, cell.resource, cell.ns);
      }
      for (const Backlog& wait : stage.backlog) {
        put(truth.direct, frame.tenant, queue, wait.ns);
        const std::vector<Blame>& earlier = truths[static_cast<size_t>(wait.frame)].with_backlog;
        const double its = sum(earlier), passed = std::min(wait.ns, its);
        if (passed < wait.ns) put(truth.with_backlog, frame.tenant, queue, wait.ns - passed);
        if (passed <= 0 || wait.frame == number) continue;
        const std::vector<Blame> shares = earlier;
        for (const Blame& cell : shares) put(truth.with_backlog, cell.by, cell.resource, cell.ns / its * passed);
      }
    }
  }
  return truths;
}

BlameMatrix sum_of(const Log& log, const std::vector<FrameTruth>& truths, bool with_backlog) {
  BlameMatrix matrix;
  for (size_t i = 0; i < truths.size(); ++i)
    for (const Blame& cell : with_backlog ? truths[i].with_backlog : truths[i].direct)
      matrix[{log.frames[i].tenant, cell.by, cell.resource}] += cell.ns;
  return matrix;
}

std::vector<double> latencies(const Log& log, int32_t tenant) {
  std::vector<std::pair<double, double>> found;
  for (const FrameLog& frame : log.frames)
    if (frame.tenant == tenant && frame.outcome == FrameLog::Outcome::kFinished)
      found.emplace_back(frame.stamp_ns, frame.done_ns - frame.stamp_ns);
  std::sort(found.begin(), found.end());
  std::vector<double> values;
  for (const auto& [stamp, latency] : found) values.push_back(latency);
  return values;
}

Scenario only(const Scenario& scenario, const std::vector<bool>& present) {
  Scenario changed = scenario;
  for (size_t i = 0; i < changed.tenants.size(); ++i)
    if (!present[i]) {
      changed.tenants[i].arrivals.kind = Arrivals::Kind::kTrace;
      changed.tenants[i].arrivals.stamps_ns.clear();
    }
  return changed;
}

std::vector<std::vector<double>> shapley_by_simulation(const Scenario& scenario) {
  const size_t count = scenario.tenants.size();
  // Mean latency of each tenant for each set of those who are there.
  std::vector<std::vector<double>> means(size_t{1} << count, std::vector<double>(count, 0));
  for (size_t set = 1; set < means.size(); ++set) {
    std::vector<bool> present(count);
    for (size_t i = 0; i < count; ++i) present[i] = (set >> i & 1U) != 0;
    const Log log = simulate(only(scenario, present));
    for (size_t i = 0; i < count; ++i)
      if (present[i]) means[set][i] = mean(latencies(log, static_cast<int32_t>(i)));
  }
  std::vector<double> factorial(count + 1, 1);
  for (size_t i = 1; i <= count; ++i) factorial[i] = factorial[i - 1] * static_cast<double>(i);
  std::vector<std::vector<double>> values(count, std::vector<double>(count, 0));
  for (size_t i = 0; i < count; ++i)
    for (size_t j = 0; j < count; ++j) {
      if (i == j) continue;
      for (size_t set = 0; set < means.size(); ++set) {
        if ((set >> i & 1U) == 0 || (set >> j & 1U) != 0) continue;
        const auto others = static_cast<size_t>(std::popcount(set)) - 1;  // players without i, who always plays
        const double weight = factorial[others] * factorial[count - 2 - others] / factorial[count - 1];
        values[i][j] += weight * (means[set | size_t{1} << j][i] - means[set][i]);
      }
    }
  return values;
}

namespace {

std::string holder_name(const Scenario& scenario, int32_t by, int32_t tenant) {
  if (by == tenant) return "self";
  if (by == system_of(scenario)) return "system";
  if (by == recorder_of(scenario)) return "recorder";
  return scenario.tenants[static_cast<size_t>(by)].name;
}

const char* outcome_name(FrameLog::Outcome outcome) {
  switch (outcome) {
    case FrameLog::Outcome::kFinished:
      return "finished";
    case FrameLog::Outcome::kDroppedOldest:
    case FrameLog::Outcome::kDroppedNewest:
      return "dropped";
    case FrameLog::Outcome::kLost:
      return "lost";
  }
  return "lost";
}

int64_t whole(double ns) {
  return std::llround(ns);
}

nlohmann::ordered_json tenants_json(const Scenario& scenario, const Log& log) {
  auto rows = nlohmann::ordered_json::array();
  for (size_t i = 0; i < scenario.tenants.size(); ++i) {
    const Tenant& tenant = scenario.tenants[i];
    size_t due = 0, missed = 0;
    for (const FrameLog& frame : log.frames) {
      if (frame.tenant != static_cast<int32_t>(i)) continue;
      ++due;
      const bool met = frame.outcome == FrameLog::Outcome::kFinished &&
                       (tenant.deadline_ns <= 0 || frame.done_ns - frame.stamp_ns <= tenant.deadline_ns);
      missed += met ? 0 : 1;
    }
    std::vector<double> values = latencies(log, static_cast<int32_t>(i));
    std::sort(values.begin(), values.end());
    nlohmann::ordered_json row{{"tenant", tenant.name}, {"frames", due}, {"finished", values.size()}};
    constexpr double kMs = 1e6;
    if (!values.empty()) {
      row["mean_ms"] = mean(values) / kMs;
      row["p50_ms"] = quantile_sorted(values, 0.5) / kMs;
      row["p99_ms"] = quantile_sorted(values, 0.99) / kMs;
    }
    row["miss_rate"] = due > 0 ? static_cast<double>(missed) / static_cast<double>(due) : 0.0;
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace

std::string truth_json(const Scenario& scenario, const Log& log) {
  const std::vector<std::string> names = resource_names(scenario);
  const std::vector<FrameTruth> truths = frame_truths(scenario, log);
  BlameMatrix direct = sum_of(log, truths, false);
  const BlameMatrix handed_on = sum_of(log, truths, true);
  for (const auto& [key, ns] : handed_on) direct.try_emplace(key, 0.0);
  nlohmann::ordered_json json;
  json["tenants"] = tenants_json(scenario, log);
  auto cells = nlohmann::ordered_json::array();
  for (const auto& [key, ns] : direct) {
    const auto& [tenant, by, resource] = key;
    const auto with = handed_on.find(key);
    cells.push_back({{"tenant", scenario.tenants[static_cast<size_t>(tenant)].name},
                     {"by", holder_name(scenario, by, tenant)},
                     {"resource", names[static_cast<size_t>(resource)]},
                     {"ns", whole(ns)},
                     {"with_backlog_ns", with == handed_on.end() ? 0 : whole(with->second)}});
  }
  json["cells"] = std::move(cells);
  double excess = 0, switching = 0;
  for (const FrameTruth& truth : truths) {
    excess += truth.latency_ns - truth.intrinsic_longest_ns;
    switching += truth.intrinsic_longest_ns - truth.intrinsic_path_ns;
  }
  json["excess_ns"] = whole(excess);
  json["switching_ns"] = whole(switching);
  auto& frames = json["frames"];
  for (const FrameLog& frame : log.frames) {
    frames["tenant"].push_back(frame.tenant);
    frames["id"].push_back(frame.id);
    frames["stamp_ns"].push_back(whole(frame.stamp_ns));
    frames["arrival_ns"].push_back(whole(frame.arrival_ns));
    frames["done_ns"].push_back(whole(frame.done_ns));
    frames["outcome"].push_back(outcome_name(frame.outcome));
  }
  // Who held which resource from when to when; on shared ones and cores, who used it.
  auto& holders = json["holders"];
  for (const OperationLog& operation : log.operations) {
    if (operation.law < 0) continue;
    const FrameLog& frame = log.frames[static_cast<size_t>(log.stages[static_cast<size_t>(operation.stage)].frame)];
    holders["by"].push_back(scenario.tenants[static_cast<size_t>(frame.tenant)].name);
    holders["frame"].push_back(frame.id);
    holders["resource"].push_back(names[static_cast<size_t>(operation.resource)]);
    holders["start_ns"].push_back(whole(operation.start_ns));
    holders["end_ns"].push_back(whole(operation.end_ns));
    holders["intrinsic_ns"].push_back(whole(operation.intrinsic_ns));
  }
  for (const OtherLog& other : log.others) {
    holders["by"].push_back(holder_name(scenario, other.by, -1));
    holders["frame"].push_back(-1);
    holders["resource"].push_back(names[static_cast<size_t>(other.resource)]);
    holders["start_ns"].push_back(whole(other.start_ns));
    holders["end_ns"].push_back(whole(other.end_ns));
    holders["intrinsic_ns"].push_back(whole(other.end_ns - other.start_ns));
  }
  return json.dump() + "\n";
}

}  // namespace strobe::simulate
