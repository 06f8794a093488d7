#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>

#include "analyze/tenant_replay.h"
#include "base/statistics.h"

namespace strobe::analyze {

using trace::kNone;

namespace {

class Modeller {
 public:
  explicit Modeller(const BlameAnalysis& analysis) : analysis_(analysis), trace_(analysis.trace) {}

  ReplayModel make() {
    for (const TenantInfo& tenant : trace_.tenants)
      model_.tenants.push_back(
          {tenant.name, tenant.priority, tenant.batch, tenant.queue_depth, tenant.drop, tenant.cpu, true});
    model_.resources = trace_.resources;
    // Nobody is served by memory: it is no device, and was added last.
    if (trace_.memory != kNone) model_.resources.resize(static_cast<size_t>(trace_.memory));
    model_.classes = trace_.classes;
    model_.slowdown = trace_.slowdown;
    model_.saturation = trace_.saturation;
    model_.cores_share_memory = trace_.memory != kNone;
    make_pools();
    make_works();
    return std::move(model_);
  }

 private:
  void make_pools();
  std::optional<double> wake_up(const TenantFrame& frame) const;
  void find_wake_ups();
  void make_works();
  int32_t make_work(const TenantFrame& frame);
  void make_operations(const TenantStage& stage, ReplayStage& made);

  const BlameAnalysis& analysis_;
  const TenantTrace& trace_;
  ReplayModel model_;
  std::map<int32_t, int32_t> pool_of_lane_;
  std::vector<double> usual_wake_up_;  // by tenant, ns
};

// Stages of one name run on the threads of one pool, and threads belong to the same one where a stage runs on both.
void Modeller::make_pools() {
  std::map<int32_t, int32_t> leader;  // of lanes
  const auto find = [&leader](int32_t lane) {
    leader.try_emplace(lane, lane);
    while (leader[lane] != lane) lane = leader[lane];
    return lane;
  };
  std::map<std::pair<int32_t, trace::StringId>, int32_t> lane_of;  // tenant and name
  for (const TenantStage& stage : trace_.stages) {
    const auto [known, is_new] = lane_of.try_emplace({stage.tenant, stage.name}, stage.lane);
    if (is_new || known->second != stage.lane) leader[find(stage.lane)] = find(known->second);
  }
  std::map<int32_t, int32_t> pool_of_leader;
  for (const TenantStage& stage : trace_.stages) {
    const int32_t first = find(stage.lane);
    const auto [pool, is_new] = pool_of_leader.try_emplace(first, static_cast<int32_t>(model_.pools.size()));
    if (is_new) model_.pools.push_back({stage.tenant, 0, true});
    if (pool_of_lane_.try_emplace(stage.lane, pool->second).second)
      ++model_.pools[static_cast<size_t>(pool->second)].workers;
  }
  std::vector<int64_t> same(model_.pools.size(), 0), other(model_.pools.size(), 0);
  for (const TenantStage& stage : trace_.stages)
    for (int32_t k = stage.first_edge; k < stage.first_edge + stage.edge_count; ++k) {
      const TenantStage& before = trace_.stages[static_cast<size_t>(trace_.edges[static_cast<size_t>(k)])];
      const auto pool = static_cast<size_t>(pool_of_lane_[stage.lane]);
      if (pool_of_lane_[before.lane] == static_cast<int32_t>(pool)) ++(before.lane == stage.lane ? same : other)[pool];
    }
  for (size_t i = 0; i < model_.pools.size(); ++i) model_.pools[i].keeps = same[i] >= other[i];
}

// What lies between the operations is work of the thread itself, on its run queue; less than noise belongs to what it
// stands beside.
void Modeller::make_operations(const TenantStage& stage, ReplayStage& made) {
  made.first_operation = static_cast<int32_t>(model_.operations.size());
  const int32_t cpu = trace_.tenants[static_cast<size_t>(stage.tenant)].cpu;
  const auto band = static_cast<int64_t>(std::ceil(2 * trace_.dead_band_ns()));
  int64_t of_operations = 0;
  for (int32_t i = stage.first_operation; i < stage.first_operation + stage.operation_count; ++i)
    of_operations += trace_.operations[static_cast<size_t>(i)].runnable_ns;
  const auto number = static_cast<size_t>(&stage - trace_.stages.data());
  double waited_outside =
      static_cast<double>(std::max<int64_t>(0, stage.runnable_ns - of_operations)) - analysis_.stage_foreign_ns[number];
  // Delays that nobody of the trace made stay as they were.
  const auto add_delay = [&](double ns) {
    if (ns > static_cast<double>(band)) model_.operations.push_back({kNone, 0, 0, ns, 0.0});
  };
  add_delay(analysis_.stage_idle_ns[number]);
  double small = 0;  // gaps that are added to the next operation
  const auto add_gap = [&](int64_t from, int64_t to, bool is_held) {
    if (to <= from) return;
    double gap = static_cast<double>(to - from);
    const double waited = std::clamp(waited_outside, 0.0, gap);
    waited_outside -= waited;
    gap -= waited;
    if (to - from <= band || is_held)
      small += gap;
    else if (gap > 0)
      model_.operations.push_back({cpu, 0, 0, gap, cpu == kNone ? 0.0 : 1.0});
  };
  int64_t at = stage.start_ns;
  for (int32_t i = stage.first_operation; i < stage.first_operation + stage.operation_count; ++i) {
    const TenantOperation& operation = trace_.operations[static_cast<size_t>(i)];
    made.pushes |= operation.is_push;
    const bool is_held = i > stage.first_operation && trace_.keeps_server(i - 1, i);
    add_gap(at, operation.ready_ns, is_held);
    const bool is_outer = i + 1 < stage.first_operation + stage.operation_count &&
                          trace_.operations[static_cast<size_t>(i) + 1].inside == i;
    at = is_outer ? operation.start_ns : operation.end_ns;
    if (operation.is_push || is_outer) continue;
    ReplayOperation one;
    one.resource = operation.resource;
    one.kind = operation.kind;
    one.name = operation.name;
    // Between two turns on a server that was kept nobody else could have had it.
    if (is_held)
      small += static_cast<double>(operation.start_ns - operation.ready_ns);
    else
      add_delay(analysis_.nobody_ns[static_cast<size_t>(i)]);
    one.service_ns =
        analysis_.intrinsic_ns[static_cast<size_t>(i)] + analysis_.foreign_cpu_ns[static_cast<size_t>(i)] + small;
    const int64_t wait = operation.start_ns - operation.ready_ns;
    if (!is_held && static_cast<double>(wait) < trace_.dead_band_ns()) one.service_ns += static_cast<double>(wait);
    small = 0;
    const bool on_cores =
        one.resource != kNone && trace_.resources[static_cast<size_t>(one.resource)].kind == ResourceKind::kCores;
    const double ran = static_cast<double>(operation.end_ns - operation.start_ns - operation.runnable_ns);
    constexpr double kMostCores = 4096;
    if (operation.cpu_ns > 0 && ran > 0) one.cores = std::min(kMostCores, static_cast<double>(operation.cpu_ns) / ran);
    if (on_cores && operation.cpu_ns < 0) one.cores = 1;
    if (!on_cores && cpu == kNone) one.cores = 0;
    one.service_ns = std::max(0.0, one.service_ns);
    if (operation.slice > 0 && static_cast<int32_t>(model_.operations.size()) > made.first_operation &&
        model_.operations.back().name == one.name && model_.operations.back().resource == one.resource)
      model_.operations.back().service_ns += one.service_ns;
    else
      model_.operations.push_back(one);
  }
  add_gap(at, stage.end_ns, false);
  if (small > 0 && static_cast<int32_t>(model_.operations.size()) > made.first_operation)
    model_.operations.back().service_ns += small;
  made.operation_count = static_cast<int32_t>(model_.operations.size()) - made.first_operation;
}

int32_t Modeller::make_work(const TenantFrame& frame) {
  ReplayWork work;
  work.first_stage = static_cast<int32_t>(model_.stages.size());
  for (int32_t i = frame.first_stage; i < frame.first_stage + frame.stage_count; ++i) {
    const TenantStage& stage = trace_.stages[static_cast<size_t>(i)];
    ReplayStage made;
    made.name = stage.name;
    made.pool = pool_of_lane_[stage.lane];
    made.served_ns = trace_.operations[static_cast<size_t>(stage.first_operation)].start_ns;
    made.first_edge = static_cast<int32_t>(model_.edges.size());
    for (int32_t k = stage.first_edge; k < stage.first_edge + stage.edge_count; ++k)
      model_.edges.push_back(trace_.edges[static_cast<size_t>(k)] - frame.first_stage);
    made.edge_count = static_cast<int32_t>(model_.edges.size()) - made.first_edge;
    make_operations(stage, made);
    model_.stages.push_back(made);
  }
  work.stage_count = frame.stage_count;
  model_.works.push_back(work);
  return static_cast<int32_t>(model_.works.size() - 1);
}

// From a frame's arrival until its idle thread was at work on it; nothing where the thread was busy.
std::optional<double> Modeller::wake_up(const TenantFrame& frame) const {
  if (!frame.finished() || frame.stage_count == 0) return std::nullopt;
  const TenantStage& first = trace_.stages[static_cast<size_t>(frame.first_stage)];
  if (first.before_on_lane != kNone &&
      trace_.stages[static_cast<size_t>(first.before_on_lane)].end_ns > frame.arrival_ns)
    return std::nullopt;
  return static_cast<double>(std::max<int64_t>(0, first.start_ns - frame.arrival_ns));
}

// Threads do not wake up at once: that belongs to a frame as its way to the tenant does, and decides who of two that
// come together is first. What is far beyond the usual was waiting for a core.
void Modeller::find_wake_ups() {
  std::vector<std::vector<double>> seen(trace_.tenants.size());
  for (const TenantFrame& frame : trace_.frames)
    if (const auto lag = wake_up(frame)) seen[static_cast<size_t>(frame.tenant)].push_back(*lag);
  for (auto& lags : seen) usual_wake_up_.push_back(lags.empty() ? 0 : quantile(std::move(lags), 0.5));
}

void Modeller::make_works() {
  find_wake_ups();
  std::vector<int32_t> last(trace_.tenants.size(), kNone);
  std::vector<std::vector<size_t>> early(trace_.tenants.size());  // frames before the first that has work
  for (const TenantFrame& frame : trace_.frames) {
    const auto tenant = static_cast<size_t>(frame.tenant);
    if (frame.outcome == FrameOutcome::kFailed) continue;
    if (frame.finished() && frame.stage_count > 0) {
      last[tenant] = make_work(frame);
      for (const size_t waiting : early[tenant]) model_.frames[waiting].work = last[tenant];
      early[tenant].clear();
    }
    constexpr double kUnusual = 4;
    const double lag = std::min(wake_up(frame).value_or(0), kUnusual * usual_wake_up_[tenant]);
    if (last[tenant] == kNone) early[tenant].push_back(model_.frames.size());
    model_.frames.push_back({frame.tenant, last[tenant], static_cast<double>(frame.stamp_ns),
                             static_cast<double>(frame.arrival_ns - frame.stamp_ns) + lag,
                             static_cast<double>(frame.deadline_ns), frame.counts});
  }
  std::erase_if(model_.frames, [](const ReplayFrame& frame) { return frame.work == kNone; });
}

}  // namespace

ReplayModel replay_model(const BlameAnalysis& analysis) {
  return Modeller(analysis).make();
}

std::optional<double> hand_over_stays(const TenantTrace& trace) {
  constexpr int64_t kSoon = 1'000'000, kWaited = 300'000;  // ns
  constexpr int kFew = 20;
  std::vector<std::vector<const TenantOperation*>> served(trace.resources.size());  // by their starts
  for (const TenantOperation& operation : trace.operations)
    if (operation.resource != kNone && operation.stage != kNone &&
        trace.resources[static_cast<size_t>(operation.resource)].kind == ResourceKind::kExclusive)
      served[static_cast<size_t>(operation.resource)].push_back(&operation);
  int all = 0, stay = 0;
  for (auto& of : served) {
    std::sort(of.begin(), of.end(), [](const auto* a, const auto* b) { return a->start_ns < b->start_ns; });
    for (size_t i = 0; i + 1 < of.size(); ++i) {
      const TenantOperation &before = *of[i], &next = *of[i + 1];
      const bool is_handed_over = next.tenant != before.tenant && next.ready_ns < before.end_ns &&
                                  next.start_ns >= before.end_ns && next.start_ns < before.end_ns + kSoon;
      if (!is_handed_over) continue;
      const TenantStage& stage = trace.stages[static_cast<size_t>(before.stage)];
      const auto last = trace.operations.begin() + stage.first_operation + stage.operation_count - 1;
      if (stage.cpu_ns < 0 || last->start_ns > before.start_ns) continue;
      // What its thread waited for a core outside its operations: nearly always after the last one.
      const int64_t waited =
          std::accumulate(last + 1 - stage.operation_count, last + 1, stage.runnable_ns,
                          [](int64_t left, const TenantOperation& own) { return left - own.runnable_ns; });
      ++all;
      stay += waited > kWaited ? 1 : 0;
    }
  }
  return all < kFew ? std::nullopt : std::optional(static_cast<double>(stay) / all);
}

std::vector<double> finished_latencies(const ReplayModel& model, const ReplayResult& result, int32_t tenant) {
  std::vector<double> values;
  for (size_t i = 0; i < model.frames.size(); ++i)
    if (model.frames[i].counts && (tenant == kNone || model.frames[i].tenant == tenant) &&
        std::isfinite(result.latency_ns[i]))
      values.push_back(result.latency_ns[i]);
  return values;
}

}  // namespace strobe::analyze
