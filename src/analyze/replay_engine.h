// The engine of replays (tenant_replay.h): who does what when. tenant_replay.cc has the way of the frames through
// stages, threads and servers, replay_rates.cc how fast whoever runs gets on beside the others.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <limits>
#include <queue>
#include <random>
#include <vector>

#include "analyze/run_queues.h"
#include "analyze/tenant_replay.h"
#include "base/statistics.h"

namespace strobe::analyze::replay_engine {

using trace::kNone;

inline constexpr double kNever = std::numeric_limits<double>::infinity();

struct Event {
  double time;
  uint64_t order;  // of equal times: first come, first served
  int32_t worker;  // kNone: what follows happens
  uint32_t version;
  int32_t frame = kNone;  // arrives at last
  int32_t cores = kNone;  // are looked at for idle ones; with a core, whether the turn there is over
  int32_t core = kNone;
  bool operator>(const Event& other) const { return time != other.time ? time > other.time : order > other.order; }
};

enum class Doing : uint8_t { kNothing, kWaits, kSwitches, kRuns, kPushes };

// A thread.
struct Worker {
  int32_t pool = 0, tenant = 0;
  Doing doing = Doing::kNothing;
  int32_t frame = kNone, stage = kNone;  // stage: within the work
  int32_t operation = 0;                 // within the stage
  int32_t server = kNone, held = kNone;  // of which resource
  uint32_t version = 0;
  uint64_t asked = 0;
  bool gave_way = false;
  double left_ns = 0, rate = 1, since = 0, slice_left = kNever;
  double of_resource = 1, of_cores = 1, of_memory = 1;  // factors of its rate
  double left_cores_ns = -kNever;                       // when it was on a core last
  double asked_ns = -kNever;                            // for a server
  Joining waker;                                        // who wakes it up, when it joins the cores next
  std::vector<int32_t> to_hand_over;
  int32_t goes_on_with = kNone;
};

struct Server {
  int32_t worker = kNone, last_tenant = kNone;
  int32_t released_by = kNone;  // a worker, at:
  double released_ns = -kNever;
};

struct Waiting {
  int32_t frame, stage;
};

struct Pool {
  std::vector<int32_t> idle;
  std::deque<Waiting> queue;
  std::deque<int32_t> pushers;
};

class Engine {
 public:
  explicit Engine(const ReplayModel& model)
      : model_(model),
        pools_(model.pools.size()),
        servers_(model.resources.size()),
        waiting_(model.resources.size()),
        running_(model.resources.size()),
        on_cores_(model.resources.size()),
        missing_(model.frames.size()),
        random_(model.seed) {
    for (size_t i = 0; i < pools_.size(); ++i)
      for (int32_t k = 0; k < model.pools[i].workers; ++k) {
        pools_[i].idle.push_back(static_cast<int32_t>(workers_.size()));
        Worker worker;
        worker.pool = static_cast<int32_t>(i);
        worker.tenant = model.pools[i].tenant;
        workers_.push_back(std::move(worker));
      }
    for (size_t i = 0; i < servers_.size(); ++i)
      if (model.resources[i].kind == ResourceKind::kExclusive)
        servers_[i].resize(static_cast<size_t>(std::clamp(model.resources[i].capacity, 1.0, 1e4)));
    for (const TenantResource& resource : model.resources)
      run_queues_.emplace_back(static_cast<size_t>(std::clamp(resource.capacity, 1.0, 4096.0)),
                               model.run_queues.balance_ns.empty(),
                               model.run_queues.turn_ns.empty() ? 0 : model.run_queues.turn_ns.back());
    for (const RunQueues& queues : run_queues_) turn_looks_.emplace_back(queues.cores(), -kNever);
    is_uneven_.assign(model.resources.size(), false);
    for (const ReplayTenant& tenant : model.tenants)
      source_core_.push_back(
          tenant.cpu == kNone ? 0
                              : static_cast<int32_t>(random_() % run_queues_[static_cast<size_t>(tenant.cpu)].cores()));
    result_.done_ns.assign(model.frames.size(), kNever);
    result_.latency_ns.assign(model.frames.size(), kNever);
    result_.busy_ns.assign(model.resources.size(), 0);
  }

  ReplayResult run();

 private:
  bool source_waits(int32_t frame);
  void arrive(int32_t frame);
  void take(int32_t worker, Waiting what);
  void go_on(int32_t worker);
  void run_operation(int32_t worker);
  void finish_operation(int32_t worker);
  bool keeps_server(Worker& worker);
  void finish_stage(int32_t worker);
  bool hand_over(int32_t worker);
  void release(int32_t worker);
  void serve(int32_t resource);
  int32_t next_of(int32_t resource, int32_t last_tenant);
  void join(int32_t worker);
  void leave(int32_t worker);
  void retime(int32_t worker);
  void refresh_running(int32_t resource);
  void refresh_cores(int32_t resource);
  void refresh_memory();
  void watch_balance(int32_t resource);
  void watch_turns(int32_t resource);
  void end_turn(const Event& event);
  Joining woken_by(int32_t waker, int32_t worker);
  void give_back(int32_t worker);
  void balance(const Event& event);
  double drawn(const std::vector<double>& quantiles) {
    return quantiles.empty() ? 0 : quantile_sorted(quantiles, std::uniform_real_distribution<double>(0, 1)(random_));
  }
  bool is_drawn(double share) { return share > 0 && std::uniform_real_distribution<double>(0, 1)(random_) < share; }
  void advance(Worker& worker) {
    worker.left_ns -= (now_ - worker.since) * worker.rate;
    worker.slice_left -= now_ - worker.since;
    worker.since = now_;
  }
  void schedule(double time, int32_t worker) {
    events_.push({time, ++order_, worker, worker == kNone ? 0 : workers_[static_cast<size_t>(worker)].version});
  }
  const ReplayWork& work_of(int32_t frame) const {
    return model_.works[static_cast<size_t>(model_.frames[static_cast<size_t>(frame)].work)];
  }
  const ReplayStage& stage_of(int32_t frame, int32_t stage) const {
    return model_.stages[static_cast<size_t>(work_of(frame).first_stage + stage)];
  }
  const ReplayOperation& operation_of(const Worker& worker) const {
    const ReplayStage& stage = stage_of(worker.frame, worker.stage);
    return model_.operations[static_cast<size_t>(stage.first_operation + worker.operation)];
  }
  bool is_exclusive(int32_t resource) const {
    return resource != kNone && !servers_[static_cast<size_t>(resource)].empty() &&
           model_.interference == Interference::kMatrix;
  }
  // The baselines know only how many cores there are.
  bool has_run_queues(int32_t resource) const {
    return model_.interference == Interference::kMatrix && model_.resources[static_cast<size_t>(resource)].queue_a_core;
  }
  // The run queue that an operation uses.
  int32_t cores_of(const Worker& worker) const {
    const ReplayOperation& operation = operation_of(worker);
    if (operation.cores <= 0) return kNone;
    if (operation.resource != kNone &&
        model_.resources[static_cast<size_t>(operation.resource)].kind == ResourceKind::kCores)
      return operation.resource;
    return model_.tenants[static_cast<size_t>(worker.tenant)].cpu;
  }

  const ReplayModel& model_;
  std::vector<Pool> pools_;
  std::vector<Worker> workers_;
  std::vector<std::vector<Server>> servers_;
  std::vector<std::vector<int32_t>> waiting_, running_, on_cores_;  // workers, by resource
  std::vector<RunQueues> run_queues_;                               // by resource
  std::vector<std::vector<int32_t>> missing_;                       // by frame under way: causes left of each stage
  std::vector<int32_t> touched_;  // resources whose servers are to be given, at this instant
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  std::vector<int32_t> arrivals_;
  std::mt19937_64 random_;
  std::vector<int32_t> source_core_;             // by tenant: on which its frames come
  std::vector<bool> is_uneven_;                  // by resource: an idle core will look for work
  std::vector<std::vector<double>> turn_looks_;  // by resource and core: when its turn is looked at
  uint64_t order_ = 0, asked_ = 0;
  double now_ = 0;
  ReplayResult result_;
};

}  // namespace strobe::analyze::replay_engine
