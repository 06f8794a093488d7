#include "analyze/forecast.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <random>

#include "analyze/cells.h"
#include "base/statistics.h"

namespace strobe::analyze {

using trace::kNone;
using trace::Timeline;

namespace {

constexpr double kMs = 1e6;
constexpr size_t kMostForSets = 12;

// One tenant's frames, to be put at any phase.
struct Solo {
  std::vector<ReplayFrame> frames;
  double period_ns = 0, span_ns = 0;
};

class Forecaster {
 public:
  explicit Forecaster(const ForecastOptions& options) : options_(options) {}

  Result<void> add(const Timeline& timeline);
  Result<Forecast> run();

 private:
  void merge(const ReplayModel& model, const TenantTrace& trace, const Timeline& timeline);
  void split_frames();
  void place(ReplayModel& model, uint64_t set, size_t draw) const;
  std::vector<ForecastFigures> figures(uint64_t set, Interference interference, size_t draws) const;
  void find_largest();

  const ForecastOptions& options_;
  ReplayModel merged_;
  std::vector<Solo> solos_;
  Forecast answer_;
  bool has_policy_ = false;
  uint64_t unmeasured_ = 0;
};

int64_t memory_of(const Timeline& timeline, const TenantTrace& trace, size_t tenant) {
  const auto& facts = trace.tenants[tenant].facts;
  if (const auto fact = facts.find("memory_bytes"); fact != facts.end()) {
    const double bytes = std::strtod(fact->second.c_str(), nullptr);
    constexpr double kMost = 1e18;
    if (bytes > 0) return static_cast<int64_t>(std::min(bytes, kMost));
  }
  // A trace of one tenant: the memory of its process.
  const auto pid = facts.find("pid");
  const int64_t counter = timeline.strings.find("rss_bytes");
  double most = -1;
  for (size_t i = 0; i < timeline.counters.size(); ++i)
    if (timeline.counters.name[i] == counter &&
        (trace.tenants.size() == 1 || (pid != facts.end() && std::to_string(timeline.counters.pid[i]) == pid->second)))
      most = std::max(most, timeline.counters.value[i]);
  return most > 0 && most < 1e18 ? static_cast<int64_t>(most) : -1;
}

Result<void> Forecaster::add(const Timeline& timeline) {
  STROBE_ASSIGN(TenantTrace trace, tenant_trace(timeline));
  if (options_.calibration) apply_calibration(trace, *options_.calibration);
  if (!has_policy_) {
    answer_.policy = options_.policy.value_or(trace.policy);
    has_policy_ = true;
  }
  const BlameAnalysis analysis = blame(std::move(trace));
  unmeasured_ += analysis.unmeasured_pairs;
  if (!analysis.gates.because())
    answer_.notes.push_back(analysis.trace.tenants.front().name + ": " + analysis.gates.reasons().front());
  merge(replay_model(analysis), analysis.trace, timeline);
  return {};
}

// Resources, classes and slow-downs of equal names are the same ones.
void Forecaster::merge(const ReplayModel& model, const TenantTrace& trace, const Timeline& timeline) {
  std::vector<int32_t> resource_of, class_of;
  for (const TenantResource& resource : model.resources) {
    const auto same = std::find_if(merged_.resources.begin(), merged_.resources.end(),
                                   [&resource](const TenantResource& other) { return other.name == resource.name; });
    resource_of.push_back(static_cast<int32_t>(same - merged_.resources.begin()));
    if (same == merged_.resources.end()) merged_.resources.push_back(resource);
  }
  for (const std::string& name : model.classes) {
    const auto same = std::find(merged_.classes.begin(), merged_.classes.end(), name);
    class_of.push_back(static_cast<int32_t>(same - merged_.classes.begin()));
    if (same != merged_.classes.end()) continue;
    const size_t before = merged_.classes.size(), after = before + 1;
    std::vector<double> grown(after * after, std::numeric_limits<double>::quiet_NaN());
    for (size_t i = 0; i < before; ++i)
      for (size_t k = 0; k < before; ++k) grown[i * after + k] = merged_.slowdown[i * before + k];
    merged_.slowdown = std::move(grown);
    merged_.classes.push_back(name);
  }
  for (size_t i = 0; i < model.classes.size(); ++i)
    for (size_t k = 0; k < model.classes.size(); ++k) {
      double& known =
          merged_
              .slowdown[static_cast<size_t>(class_of[i]) * merged_.classes.size() + static_cast<size_t>(class_of[k])];
      if (std::isnan(known)) known = model.slowdown[i * model.classes.size() + k];
    }
  merged_.saturation = std::max(merged_.saturation, model.saturation);
  merged_.cores_share_memory |= model.cores_share_memory;

  const auto tenants = static_cast<int32_t>(merged_.tenants.size()), pools = static_cast<int32_t>(merged_.pools.size());
  const auto works = static_cast<int32_t>(merged_.works.size()), stages = static_cast<int32_t>(merged_.stages.size());
  const auto edges = static_cast<int32_t>(merged_.edges.size()),
             operations = static_cast<int32_t>(merged_.operations.size());
  for (size_t i = 0; i < model.tenants.size(); ++i) {
    ReplayTenant tenant = model.tenants[i];
    const std::string name = tenant.name;
    const auto taken = [this, &tenant] {
      return std::any_of(merged_.tenants.begin(), merged_.tenants.end(),
                         [&tenant](const ReplayTenant& other) { return other.name == tenant.name; });
    };
    for (int number = 2; taken(); ++number) tenant.name = name + "#" + std::to_string(number);
    if (tenant.cpu != kNone) tenant.cpu = resource_of[static_cast<size_t>(tenant.cpu)];
    answer_.tenants.push_back(tenant.name);
    answer_.memory_bytes.push_back(memory_of(timeline, trace, i));
    merged_.tenants.push_back(std::move(tenant));
  }
  for (ReplayPool pool : model.pools) {
    pool.tenant += tenants;
    merged_.pools.push_back(pool);
  }
  for (ReplayWork work : model.works) {
    work.first_stage += stages;
    merged_.works.push_back(work);
  }
  for (ReplayStage stage : model.stages) {
    stage.pool += pools;
    stage.first_operation += operations;
    stage.first_edge += edges;
    merged_.stages.push_back(stage);
  }
  merged_.edges.insert(merged_.edges.end(), model.edges.begin(), model.edges.end());
  for (ReplayOperation operation : model.operations) {
    if (operation.resource != kNone) operation.resource = resource_of[static_cast<size_t>(operation.resource)];
    operation.kind = class_of[static_cast<size_t>(operation.kind)];
    merged_.operations.push_back(operation);
  }
  for (ReplayFrame frame : model.frames) {
    frame.tenant += tenants;
    frame.work += works;
    merged_.frames.push_back(frame);
  }
}

void Forecaster::split_frames() {
  solos_.resize(merged_.tenants.size());
  for (const ReplayFrame& frame : merged_.frames)
    if (frame.counts) solos_[static_cast<size_t>(frame.tenant)].frames.push_back(frame);
  for (Solo& solo : solos_) {
    std::stable_sort(solo.frames.begin(), solo.frames.end(),
                     [](const ReplayFrame& a, const ReplayFrame& b) { return a.stamp_ns < b.stamp_ns; });
    if (solo.frames.empty()) continue;
    const double first = solo.frames.front().stamp_ns;
    for (ReplayFrame& frame : solo.frames) frame.stamp_ns -= first;
    const double last = solo.frames.back().stamp_ns;
    solo.period_ns = solo.frames.size() > 1 ? last / static_cast<double>(solo.frames.size() - 1) : 1e9;
    solo.span_ns = last + solo.period_ns;
  }
}

// Each tenant begins somewhere in its recording, which goes on from its start when it ends: that draws the phase and
// what meets what. All run as long as the longest recording.
void Forecaster::place(ReplayModel& model, uint64_t set, size_t draw) const {
  model.frames.clear();
  double longest = 0;
  for (size_t i = 0; i < solos_.size(); ++i)
    if ((set >> i & 1U) != 0) longest = std::max(longest, solos_[i].span_ns);
  std::mt19937_64 random(options_.seed * 1'000'003 + draw);
  for (size_t i = 0; i < solos_.size(); ++i) {
    const double u = std::uniform_real_distribution<double>(0, 1)(random);
    const Solo& solo = solos_[i];
    model.tenants[i].is_there = (set >> i & 1U) != 0;
    if (!model.tenants[i].is_there || solo.frames.empty()) continue;
    const double begin = u * solo.span_ns;
    for (double round = 0; round * solo.span_ns - begin < longest; ++round)
      for (ReplayFrame frame : solo.frames) {
        frame.stamp_ns += round * solo.span_ns - begin;
        if (frame.stamp_ns < 0 || frame.stamp_ns >= longest) continue;
        model.frames.push_back(frame);
      }
  }
  std::stable_sort(model.frames.begin(), model.frames.end(),
                   [](const ReplayFrame& a, const ReplayFrame& b) { return a.stamp_ns < b.stamp_ns; });
}

std::vector<ForecastFigures> Forecaster::figures(uint64_t set, Interference interference, size_t draws) const {
  const size_t count = merged_.tenants.size();
  std::vector<std::vector<double>> p50(count), p99(count), miss(count);
  ReplayModel model = merged_;
  model.interference = interference;
  if (options_.calibration) model.run_queues = options_.calibration->run_queues;
  for (size_t draw = 0; draw < draws; ++draw) {
    place(model, set, draw);
    model.seed = options_.seed * 1'000'003 + draw;
    const ReplayResult result = replay(model);
    for (size_t i = 0; i < count; ++i) {
      if ((set >> i & 1U) == 0) continue;
      const LatencyFigures its = figures_of(model, result, static_cast<int32_t>(i));
      if (its.frames > 0) p50[i].push_back(its.p50_ms), p99[i].push_back(its.p99_ms);
      if (its.due > 0) miss[i].push_back(its.miss_rate);
    }
  }
  constexpr double kLow = 0.025, kHigh = 0.975;
  std::vector<ForecastFigures> made(count);
  for (size_t i = 0; i < count; ++i) {
    ForecastFigures& one = made[i];
    one.p50_ms = quantile(p50[i], 0.5), one.p50_low = quantile(p50[i], kLow), one.p50_high = quantile(p50[i], kHigh);
    one.p99_ms = quantile(p99[i], 0.5), one.p99_low = quantile(p99[i], kLow), one.p99_high = quantile(p99[i], kHigh);
    one.miss_rate = miss[i].empty() ? 1 : mean(miss[i]);
    one.miss_low = quantile(miss[i], kLow), one.miss_high = quantile(miss[i], kHigh);
  }
  return made;
}

void Forecaster::find_largest() {
  std::vector<uint64_t> sets;
  for (uint64_t set = 1; set < uint64_t{1} << merged_.tenants.size(); ++set) sets.push_back(set);
  std::stable_sort(sets.begin(), sets.end(),
                   [](uint64_t a, uint64_t b) { return std::popcount(a) > std::popcount(b); });
  constexpr size_t kDraws = 20;
  int largest = 0;
  double best_miss = 0;
  for (const uint64_t set : sets) {
    if (std::popcount(set) < largest) break;
    int64_t bytes = 0;
    for (size_t i = 0; i < merged_.tenants.size(); ++i)
      if ((set >> i & 1U) != 0) bytes += std::max<int64_t>(0, answer_.memory_bytes[i]);
    if (bytes > *options_.memory_bytes) continue;
    const std::vector<ForecastFigures> its = figures(set, Interference::kMatrix, std::min(options_.draws, kDraws));
    ForecastSet found;
    found.memory_bytes = bytes;
    for (size_t i = 0; i < its.size(); ++i) {
      if ((set >> i & 1U) == 0) continue;
      found.tenants.push_back(static_cast<int32_t>(i));
      found.miss_rate = std::max(found.miss_rate, its[i].miss_rate);
    }
    if (found.miss_rate > options_.most_misses) continue;
    if (largest == std::popcount(set) && found.miss_rate >= best_miss) continue;
    largest = std::popcount(set);
    best_miss = found.miss_rate;
    answer_.largest = std::move(found);
  }
}

Result<Forecast> Forecaster::run() {
  const size_t count = merged_.tenants.size();
  constexpr size_t kMostTenants = 60;
  if (count > kMostTenants) return usage_error("expected at most 60 tenants, there are " + std::to_string(count));
  if ((options_.all_sets || options_.memory_bytes) && count > kMostForSets)
    return usage_error("sets of more than " + std::to_string(kMostForSets) +
                       " tenants are too many to try; there are " + std::to_string(count));
  if (options_.policy) use_policy(merged_, *options_.policy);
  split_frames();
  const uint64_t all = (uint64_t{1} << count) - 1;
  std::vector<uint64_t> sets{all};
  if (options_.all_sets)
    for (uint64_t set = all - 1; set > 0; --set)
      if (std::popcount(set) > 1) sets.push_back(set);
  for (const uint64_t set : sets) {
    const std::vector<ForecastFigures> with = figures(set, Interference::kMatrix, options_.draws),
                                       equal = figures(set, Interference::kEqualShare, options_.draws),
                                       none = figures(set, Interference::kNone, options_.draws);
    std::vector<int32_t> members;
    for (size_t i = 0; i < count; ++i)
      if ((set >> i & 1U) != 0) members.push_back(static_cast<int32_t>(i));
    for (const int32_t tenant : members) {
      const auto i = static_cast<size_t>(tenant);
      answer_.rows.push_back({members, tenant, with[i], equal[i], none[i]});
    }
  }
  if (options_.memory_bytes) {
    for (size_t i = 0; i < count; ++i)
      if (answer_.memory_bytes[i] < 0)
        answer_.notes.push_back(answer_.tenants[i] + ": its trace does not tell its memory, taken as none");
    find_largest();
  }
  bool is_shared = false, is_measured = true;
  for (const TenantResource& resource : merged_.resources) is_shared |= resource.kind == ResourceKind::kShared;
  for (const ReplayOperation& operation : merged_.operations)
    if (operation.resource != kNone &&
        merged_.resources[static_cast<size_t>(operation.resource)].kind == ResourceKind::kShared)
      is_measured &= !std::isnan(merged_.slowdown[static_cast<size_t>(operation.kind) * (merged_.classes.size() + 1)]);
  if (is_shared && !is_measured)
    answer_.notes.emplace_back(
        "how much operations slow each other was never measured: taken as not at all (--calibration FILE)");
  return std::move(answer_);
}

}  // namespace

Table Forecast::table() const {
  Table made("Forecast under " + std::string(serve_policy_name(policy)),
             {{"set", "who runs together", 3, true},
              {"tenant", "whose frames"},
              {"p50_ms", "median of the draws"},
              {"p50_low", "2.5 % of the draws"},
              {"p50_high", "97.5 %"},
              {"p99_ms", "of the latency"},
              {"p99_low", "2.5 % of the draws"},
              {"p99_high", "97.5 %"},
              {"miss_rate", "late, dropped or lost frames"},
              {"equal_share_p50_ms", "baseline: resources split equally"},
              {"equal_share_p99_ms", "the same"},
              {"no_interference_p50_ms", "baseline: nobody in anybody's way"},
              {"no_interference_p99_ms", "the same"}});
  const auto figure = [](double value) { return cell_if(std::isfinite(value), value); };
  for (const ForecastRow& row : rows) {
    std::string set;
    for (const int32_t tenant : row.set) set += (set.empty() ? "" : "+") + tenants[static_cast<size_t>(tenant)];
    const ForecastFigures& its = row.forecast;
    made.add_row({set, tenants[static_cast<size_t>(row.tenant)], figure(its.p50_ms), figure(its.p50_low),
                  figure(its.p50_high), figure(its.p99_ms), figure(its.p99_low), figure(its.p99_high),
                  figure(its.miss_rate), figure(row.equal_share.p50_ms), figure(row.equal_share.p99_ms),
                  figure(row.no_interference.p50_ms), figure(row.no_interference.p99_ms)});
  }
  made.notes = notes;
  return made;
}

Result<Forecast> forecast(const std::vector<const Timeline*>& solo, const ForecastOptions& options) {
  if (solo.empty()) return usage_error("expected at least one trace");
  if (options.draws < 1 || options.draws > 100'000) return usage_error("--draws: expected 1 to 100000");
  Forecaster forecaster(options);
  for (size_t i = 0; i < solo.size(); ++i)
    if (auto added = forecaster.add(*solo[i]); !added)
      return std::move(added).error().at("trace " + std::to_string(i + 1));
  return forecaster.run();
}

}  // namespace strobe::analyze
