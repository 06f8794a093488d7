#include "analyze/tenant_replay.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <queue>
#include <random>
#include <utility>

#include "analyze/run_queues.h"
#include "base/statistics.h"

namespace strobe::analyze {

using trace::kNone;

namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

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

// Rates follow from who runs beside whom.
void Engine::retime(int32_t number) {
  Worker& worker = workers_[static_cast<size_t>(number)];
  const double rate = std::max(1e-9, worker.of_resource * worker.of_cores * worker.of_memory);
  advance(worker);
  worker.rate = rate;
  ++worker.version;
  schedule(now_ + std::max(0.0, std::min(worker.left_ns / rate, worker.slice_left)), number);
}

void Engine::refresh_running(int32_t resource) {
  const std::vector<int32_t>& running = running_[static_cast<size_t>(resource)];
  const size_t classes = model_.classes.size();
  for (const int32_t number : running) {
    Worker& worker = workers_[static_cast<size_t>(number)];
    double factor = 1;
    if (model_.interference == Interference::kEqualShare) {
      const double capacity = std::max(1.0, model_.resources[static_cast<size_t>(resource)].capacity);
      factor = std::min(1.0, capacity / static_cast<double>(running.size()));
    } else if (model_.interference == Interference::kMatrix) {
      double sum = 0;
      const auto row = static_cast<size_t>(operation_of(worker).kind) * classes;
      for (const int32_t other : running) {
        if (other == number) continue;
        const double a =
            model_.slowdown[row + static_cast<size_t>(operation_of(workers_[static_cast<size_t>(other)]).kind)];
        if (!std::isnan(a)) sum += a;
      }
      if (model_.saturation > 0) sum = std::min(sum, model_.saturation);
      factor = 1 / (1 + sum);
    }
    if (factor == worker.of_resource) continue;
    worker.of_resource = factor;
    retime(number);
  }
}

void Engine::refresh_cores(int32_t resource) {
  const std::vector<int32_t>& running = on_cores_[static_cast<size_t>(resource)];
  double wanted = 0;
  for (const int32_t number : running) wanted += operation_of(workers_[static_cast<size_t>(number)]).cores;
  const TenantResource& what = model_.resources[static_cast<size_t>(resource)];
  for (const int32_t number : running) {
    Worker& worker = workers_[static_cast<size_t>(number)];
    double factor = wanted > what.capacity ? what.capacity / wanted : 1;
    if (has_run_queues(resource)) factor = run_queues_[static_cast<size_t>(resource)].speed(number);
    if (model_.interference == Interference::kNone) factor = 1;
    if (worker.of_cores == factor) continue;
    worker.of_cores = factor;
    retime(number);
  }
  refresh_memory();
  watch_balance(resource);
  watch_turns(resource);
}

// Whoever runs on another core slows by the matrix, as much of the time as it runs.
void Engine::refresh_memory() {
  if (!model_.cores_share_memory || model_.interference != Interference::kMatrix) return;
  const size_t classes = model_.classes.size();
  for (size_t resource = 0; resource < on_cores_.size(); ++resource)
    for (const int32_t number : on_cores_[resource]) {
      Worker& worker = workers_[static_cast<size_t>(number)];
      const auto row = static_cast<size_t>(operation_of(worker).kind) * classes;
      double sum = 0;
      for (size_t elsewhere = 0; elsewhere < on_cores_.size(); ++elsewhere)
        for (const int32_t other : on_cores_[elsewhere]) {
          const RunQueues& queues = run_queues_[resource];
          const bool one_core =
              elsewhere == resource && (queues.cores() == 1 || (has_run_queues(static_cast<int32_t>(resource)) &&
                                                                queues.core_of(other) == queues.core_of(number)));
          if (other == number || one_core) continue;
          const Worker& neighbour = workers_[static_cast<size_t>(other)];
          const double a = model_.slowdown[row + static_cast<size_t>(operation_of(neighbour).kind)];
          if (!std::isnan(a)) sum += a * neighbour.of_cores;
        }
      if (model_.saturation > 0) sum = std::min(sum, model_.saturation);
      const double factor = 1 / (1 + sum);
      if (worker.of_memory == factor) continue;
      worker.of_memory = factor;
      retime(number);
    }
}

// A core that has become idle while another has two threads takes one of them, after a while.
void Engine::watch_balance(int32_t resource) {
  const auto number = static_cast<size_t>(resource);
  if (!has_run_queues(resource) || model_.run_queues.balance_ns.empty()) return;
  if (is_uneven_[number] || !run_queues_[number].is_uneven()) return;
  is_uneven_[number] = true;
  Event look{now_ + std::max(1.0, drawn(model_.run_queues.balance_ns)), ++order_, kNone, 0};
  look.cores = resource;
  events_.push(look);
}

void Engine::balance(const Event& event) {
  const auto number = static_cast<size_t>(event.cores);
  is_uneven_[number] = false;
  if (!run_queues_[number].is_uneven()) return;
  now_ = event.time;
  run_queues_[number].balance(now_);
  refresh_cores(event.cores);
}

// Who is first on a core that others wait for has a turn.
void Engine::watch_turns(int32_t resource) {
  constexpr double kShortest = 1e5;  // ns; no kernel changes threads as often, and a replay would not come to an end
  if (!has_run_queues(resource) || model_.run_queues.turn_ns.empty()) return;
  RunQueues& queues = run_queues_[static_cast<size_t>(resource)];
  for (size_t core = 0; core < queues.cores(); ++core) {
    if (!queues.has_turn(core)) continue;
    if (queues.turn_end(core) == RunQueues::kNoTurn)
      queues.set_turn_end(core, now_ + std::max(kShortest, drawn(model_.run_queues.turn_ns)));
    double& look = turn_looks_[static_cast<size_t>(resource)][core];
    if (look == queues.turn_end(core)) continue;
    look = queues.turn_end(core);
    Event end{std::max(now_, look), ++order_, kNone, 0};
    end.cores = resource;
    end.core = static_cast<int32_t>(core);
    events_.push(end);
  }
}

// Nothing where it is the end of a turn that went to somebody else since.
void Engine::end_turn(const Event& event) {
  RunQueues& queues = run_queues_[static_cast<size_t>(event.cores)];
  const auto core = static_cast<size_t>(event.core);
  double& look = turn_looks_[static_cast<size_t>(event.cores)][core];
  if (look <= event.time) look = -kNever;
  if (queues.turn_end(core) > event.time) return;
  const bool somebody_waits = queues.has_turn(core);
  queues.end_turn(core, std::max(now_, event.time));
  if (!somebody_waits) return;
  now_ = event.time;
  refresh_cores(event.cores);
}

// A worker that waited is woken up by one that hands something over to it.
Joining Engine::woken_by(int32_t waker, int32_t number) {
  if (waker == kNone || waker == number || model_.run_queues.turn_ns.empty()) return {};
  const auto cpu = [this](int32_t worker) {
    return model_.tenants[static_cast<size_t>(workers_[static_cast<size_t>(worker)].tenant)].cpu;
  };
  const int32_t cores = cpu(waker);
  if (cores == kNone || cores != cpu(number) || !has_run_queues(cores)) return {};
  const RunQueues& queues = run_queues_[static_cast<size_t>(cores)];
  const size_t core = queues.core_of(waker);
  if (core >= queues.cores()) return {};
  return {.waker = static_cast<int32_t>(core), .stays_with_waker = is_drawn(model_.run_queues.hand_over_stays)};
}

// A worker begins to run its operation.
void Engine::join(int32_t number) {
  Worker& worker = workers_[static_cast<size_t>(number)];
  const ReplayOperation& operation = operation_of(worker);
  worker.doing = Doing::kRuns;
  worker.since = now_;
  worker.rate = worker.of_resource = worker.of_cores = worker.of_memory = 1;
  worker.slice_left = kNever;
  if (worker.server != kNone && worker.held == operation.resource) {
    const TenantResource& what = model_.resources[static_cast<size_t>(worker.held)];
    if (what.quantum_ns > 0 && what.policy == ServePolicy::kRoundRobin)
      worker.slice_left = static_cast<double>(what.quantum_ns);
  }
  ++worker.version;
  schedule(now_ + std::min(worker.left_ns, worker.slice_left), number);
  const bool stretches = operation.resource != kNone && !is_exclusive(operation.resource) &&
                         (model_.resources[static_cast<size_t>(operation.resource)].kind == ResourceKind::kShared ||
                          (model_.interference == Interference::kEqualShare &&
                           model_.resources[static_cast<size_t>(operation.resource)].kind == ResourceKind::kExclusive));
  if (stretches) {
    running_[static_cast<size_t>(operation.resource)].push_back(number);
    if (running_[static_cast<size_t>(operation.resource)].size() > 1) refresh_running(operation.resource);
  }
  Joining how = std::exchange(worker.waker, {});
  if (const int32_t cores = cores_of(worker); cores != kNone) {
    on_cores_[static_cast<size_t>(cores)].push_back(number);
    if (worker.left_cores_ns == now_) how = {.goes_on = true};
    if (has_run_queues(cores)) run_queues_[static_cast<size_t>(cores)].join(number, operation.cores, now_, how);
    refresh_cores(cores);
  }
}

void Engine::leave(int32_t number) {
  Worker& worker = workers_[static_cast<size_t>(number)];
  const ReplayOperation& operation = operation_of(worker);
  const auto drop_from = [number](std::vector<int32_t>& list) {
    const auto found = std::find(list.begin(), list.end(), number);
    if (found == list.end()) return false;
    list.erase(found);
    return true;
  };
  ++worker.version;
  if (operation.resource != kNone && drop_from(running_[static_cast<size_t>(operation.resource)]))
    refresh_running(operation.resource);
  if (const int32_t cores = cores_of(worker); cores != kNone && drop_from(on_cores_[static_cast<size_t>(cores)])) {
    if (has_run_queues(cores)) run_queues_[static_cast<size_t>(cores)].leave(number, now_);
    worker.left_cores_ns = now_;
    refresh_cores(cores);
  }
}

void Engine::take(int32_t number, Waiting what) {
  Worker& worker = workers_[static_cast<size_t>(number)];
  worker.frame = what.frame;
  worker.stage = what.stage;
  worker.operation = 0;
  go_on(number);
}

void Engine::go_on(int32_t number) {
  const Worker& worker = workers_[static_cast<size_t>(number)];
  if (worker.operation < stage_of(worker.frame, worker.stage).operation_count)
    run_operation(number);
  else
    finish_stage(number);
}

void Engine::run_operation(int32_t number) {
  Worker& worker = workers_[static_cast<size_t>(number)];
  const ReplayOperation& operation = operation_of(worker);
  worker.left_ns = operation.service_ns;
  if (operation.resource != kNone) result_.busy_ns[static_cast<size_t>(operation.resource)] += operation.service_ns;
  if (!is_exclusive(operation.resource) || worker.held == operation.resource) {
    join(number);
    return;
  }
  worker.doing = Doing::kWaits;
  // Who gave way keeps its place among those of its priority.
  if (!worker.gave_way) worker.asked = ++asked_;
  worker.asked_ns = now_;
  worker.gave_way = false;
  waiting_[static_cast<size_t>(operation.resource)].push_back(number);
  touched_.push_back(operation.resource);
}

// Whether the server stays for what comes next in the stage. Time of the thread between two operations is no other use.
bool Engine::keeps_server(Worker& worker) {
  const TenantResource& what = model_.resources[static_cast<size_t>(worker.held)];
  worker.gave_way = false;
  if (!what.by_stage) return false;
  const ReplayStage& stage = stage_of(worker.frame, worker.stage);
  int32_t next = worker.operation;
  const auto operation = [&]() -> const ReplayOperation& {
    return model_.operations[static_cast<size_t>(stage.first_operation + next)];
  };
  while (next < stage.operation_count && operation().name == 0) ++next;
  if (next >= stage.operation_count || operation().resource != worker.held) return false;
  if (!what.gives_way) return true;
  const auto priority = [this](int32_t tenant) { return model_.tenants[static_cast<size_t>(tenant)].priority; };
  const std::vector<int32_t>& waiting = waiting_[static_cast<size_t>(worker.held)];
  worker.gave_way = std::any_of(waiting.begin(), waiting.end(), [&](int32_t other) {
    return priority(workers_[static_cast<size_t>(other)].tenant) > priority(worker.tenant);
  });
  return !worker.gave_way;
}

void Engine::finish_operation(int32_t number) {
  leave(number);
  Worker& worker = workers_[static_cast<size_t>(number)];
  ++worker.operation;
  if (worker.server != kNone && !keeps_server(worker)) give_back(number);
  go_on(number);
}

void Engine::give_back(int32_t number) {
  Worker& worker = workers_[static_cast<size_t>(number)];
  Server& server = servers_[static_cast<size_t>(worker.held)][static_cast<size_t>(worker.server)];
  server.worker = kNone;
  server.released_by = number;
  server.released_ns = now_;
  touched_.push_back(worker.held);
  worker.server = worker.held = kNone;
}

void Engine::finish_stage(int32_t number) {
  Worker& worker = workers_[static_cast<size_t>(number)];
  const ReplayWork& work = work_of(worker.frame);
  std::vector<int32_t>& missing = missing_[static_cast<size_t>(worker.frame)];
  missing[static_cast<size_t>(worker.stage)] = -1;
  worker.to_hand_over.clear();
  worker.goes_on_with = kNone;
  bool all_done = true;
  for (int32_t i = work.stage_count - 1; i >= 0; --i) {
    int32_t& left = missing[static_cast<size_t>(i)];
    all_done &= left < 0;
    if (i <= worker.stage || left < 0) continue;
    const ReplayStage& next = stage_of(worker.frame, i);
    const auto first = model_.edges.begin() + next.first_edge;
    if (std::find(first, first + next.edge_count, worker.stage) == first + next.edge_count || --left > 0) continue;
    if (next.pool == worker.pool && model_.pools[static_cast<size_t>(worker.pool)].keeps) {
      if (worker.goes_on_with != kNone) worker.to_hand_over.push_back(worker.goes_on_with);
      worker.goes_on_with = i;
    } else {
      worker.to_hand_over.push_back(i);
    }
  }
  std::sort(worker.to_hand_over.begin(), worker.to_hand_over.end(), [&](int32_t a, int32_t b) {
    return stage_of(worker.frame, a).served_ns > stage_of(worker.frame, b).served_ns;
  });
  if (all_done) {
    const ReplayFrame& frame = model_.frames[static_cast<size_t>(worker.frame)];
    result_.done_ns[static_cast<size_t>(worker.frame)] = now_;
    result_.latency_ns[static_cast<size_t>(worker.frame)] = now_ - frame.stamp_ns;
    missing.clear();
    missing.shrink_to_fit();
  }
  worker.doing = Doing::kPushes;
  if (hand_over(number)) release(number);
}

// False: there is no room for one of them.
bool Engine::hand_over(int32_t number) {
  while (!workers_[static_cast<size_t>(number)].to_hand_over.empty()) {
    Worker& worker = workers_[static_cast<size_t>(number)];
    const int32_t stage = worker.to_hand_over.back();
    Pool& pool = pools_[static_cast<size_t>(stage_of(worker.frame, stage).pool)];
    const int64_t room = model_.tenants[static_cast<size_t>(worker.tenant)].queue_depth;
    if (!pool.idle.empty() && pool.queue.empty()) {
      worker.to_hand_over.pop_back();
      const int32_t other = pool.idle.back();
      pool.idle.pop_back();
      workers_[static_cast<size_t>(other)].waker = woken_by(number, other);
      take(other, {worker.frame, stage});
      continue;
    }
    if (stage_of(worker.frame, worker.stage).pushes && room > 0 && static_cast<int64_t>(pool.queue.size()) >= room) {
      pool.pushers.push_back(number);
      return false;
    }
    worker.to_hand_over.pop_back();
    pool.queue.push_back({worker.frame, stage});
  }
  return true;
}

void Engine::release(int32_t number) {
  Worker& worker = workers_[static_cast<size_t>(number)];
  if (worker.goes_on_with != kNone) {
    take(number, {worker.frame, worker.goes_on_with});
    return;
  }
  worker.doing = Doing::kNothing;
  worker.frame = kNone;
  Pool& pool = pools_[static_cast<size_t>(worker.pool)];
  if (pool.queue.empty()) {
    pool.idle.push_back(number);
    return;
  }
  const Waiting next = pool.queue.front();
  pool.queue.pop_front();
  take(number, next);
  if (pool.pushers.empty()) return;
  const int32_t pusher = pool.pushers.front();
  pool.pushers.pop_front();
  if (hand_over(pusher)) release(pusher);
}

// The thread that brings a frame wakes up on the core on which it was before, whoever is there.
bool Engine::source_waits(int32_t number) {
  const int32_t tenant = model_.frames[static_cast<size_t>(number)].tenant;
  const int32_t cores = model_.tenants[static_cast<size_t>(tenant)].cpu;
  if (cores == kNone || !has_run_queues(cores) || model_.run_queues.wake_up_ns.empty()) return false;
  const int32_t core = source_core_[static_cast<size_t>(tenant)];
  if (!run_queues_[static_cast<size_t>(cores)].is_busy(static_cast<size_t>(core))) return false;
  const double wait = drawn(model_.run_queues.wake_up_ns);
  if (wait < 1) return false;
  Event late{now_ + wait, ++order_, kNone, 0};
  late.frame = number;
  events_.push(late);
  return true;
}

void Engine::arrive(int32_t number) {
  const ReplayFrame& frame = model_.frames[static_cast<size_t>(number)];
  const ReplayTenant& tenant = model_.tenants[static_cast<size_t>(frame.tenant)];
  const ReplayWork& work = work_of(number);
  std::vector<int32_t>& missing = missing_[static_cast<size_t>(number)];
  for (int32_t i = 0; i < work.stage_count; ++i) missing.push_back(stage_of(number, i).edge_count);
  Pool& pool = pools_[static_cast<size_t>(stage_of(number, 0).pool)];
  if (!pool.idle.empty() && pool.queue.empty()) {
    const int32_t worker = pool.idle.back();
    pool.idle.pop_back();
    Joining& how = workers_[static_cast<size_t>(worker)].waker;
    how = {};
    if (tenant.cpu != kNone && has_run_queues(tenant.cpu) && !model_.run_queues.balance_ns.empty()) {
      how.waker = source_core_[static_cast<size_t>(frame.tenant)];
      const RunQueues& queues = run_queues_[static_cast<size_t>(tenant.cpu)];
      const size_t before = queues.core_of(worker), at = static_cast<size_t>(how.waker);
      const bool finds_its_own_idle = before < queues.cores() && before != at && !queues.is_busy(before);
      how.stays_with_waker = queues.is_busy(at) && !finds_its_own_idle && is_drawn(model_.run_queues.wake_up_stays);
    }
    take(worker, {number, 0});
    return;
  }
  if (tenant.drop != DropPolicy::kNever && tenant.queue_depth > 0) {
    const auto is_new = [](const Waiting& waiting) { return waiting.stage == 0; };
    if (std::count_if(pool.queue.begin(), pool.queue.end(), is_new) >= tenant.queue_depth) {
      if (tenant.drop == DropPolicy::kNewest) return;
      pool.queue.erase(std::find_if(pool.queue.begin(), pool.queue.end(), is_new));
    }
  }
  pool.queue.push_back({number, 0});
}

// Which of those who wait for a resource goes first; takes it out of the list.
int32_t Engine::next_of(int32_t resource, int32_t last_tenant) {
  std::vector<int32_t>& waiting = waiting_[static_cast<size_t>(resource)];
  const auto tenants = static_cast<int32_t>(model_.tenants.size());
  const auto key = [&](int32_t number) -> std::pair<double, uint64_t> {
    const Worker& worker = workers_[static_cast<size_t>(number)];
    const ReplayFrame& frame = model_.frames[static_cast<size_t>(worker.frame)];
    double rank = 0;
    switch (model_.resources[static_cast<size_t>(resource)].policy) {
      case ServePolicy::kPriority:
      case ServePolicy::kPriorityPreemptive:
        rank = -model_.tenants[static_cast<size_t>(worker.tenant)].priority;
        break;
      case ServePolicy::kEdf:
        rank = frame.deadline_ns > 0 ? frame.stamp_ns + frame.deadline_ns : kNever;
        break;
      case ServePolicy::kRoundRobin:
        rank = (worker.tenant - last_tenant - 1 + 2 * tenants) % tenants;
        break;
      default:
        break;
    }
    return {rank, worker.asked};
  };
  const auto first =
      std::min_element(waiting.begin(), waiting.end(), [&](int32_t a, int32_t b) { return key(a) < key(b); });
  const int32_t number = *first;
  waiting.erase(first);
  return number;
}

void Engine::serve(int32_t resource) {
  std::vector<Server>& servers = servers_[static_cast<size_t>(resource)];
  const TenantResource& what = model_.resources[static_cast<size_t>(resource)];
  for (size_t i = 0; i < servers.size() && !waiting_[static_cast<size_t>(resource)].empty(); ++i) {
    Server& server = servers[i];
    if (server.worker != kNone) continue;
    const int32_t number = next_of(resource, server.last_tenant);
    Worker& worker = workers_[static_cast<size_t>(number)];
    const bool switches = what.switch_ns > 0 && server.last_tenant != kNone && server.last_tenant != worker.tenant;
    server.worker = number;
    server.last_tenant = worker.tenant;
    worker.server = static_cast<int32_t>(i);
    worker.held = resource;
    // Who did not wait was not woken up by whoever had it before.
    if (worker.asked_ns < now_)
      worker.waker = server.released_ns == now_ ? woken_by(server.released_by, number) : Joining{};
    if (switches) {
      worker.doing = Doing::kSwitches;
      ++worker.version;
      schedule(now_ + static_cast<double>(what.switch_ns), number);
    } else {
      join(number);
    }
  }
}

ReplayResult Engine::run() {
  for (size_t i = 0; i < model_.frames.size(); ++i)
    if (model_.tenants[static_cast<size_t>(model_.frames[i].tenant)].is_there)
      arrivals_.push_back(static_cast<int32_t>(i));
  const auto arrival = [this](int32_t frame) {
    return model_.frames[static_cast<size_t>(frame)].stamp_ns + model_.frames[static_cast<size_t>(frame)].comm_ns;
  };
  std::stable_sort(arrivals_.begin(), arrivals_.end(), [&](int32_t a, int32_t b) { return arrival(a) < arrival(b); });
  size_t next = 0;
  if (arrivals_.empty()) return std::move(result_);
  const double begin = now_ = arrival(arrivals_.front());
  while (next < arrivals_.size() || !events_.empty()) {
    if (next < arrivals_.size() && (events_.empty() || arrival(arrivals_[next]) <= events_.top().time)) {
      now_ = std::max(now_, arrival(arrivals_[next]));
      const int32_t frame = arrivals_[next++];
      if (!source_waits(frame)) arrive(frame);
    } else if (events_.top().worker == kNone) {
      const Event event = events_.top();
      events_.pop();
      if (event.frame != kNone) {
        now_ = event.time;
        arrive(event.frame);
      } else if (event.core != kNone) {
        end_turn(event);
      } else {
        balance(event);
      }
    } else {
      const Event event = events_.top();
      events_.pop();
      Worker& worker = workers_[static_cast<size_t>(event.worker)];
      const bool is_valid = event.version == worker.version;
      if (is_valid) now_ = event.time;
      if (!is_valid) {
        // Its time was moved.
      } else if (worker.doing == Doing::kSwitches) {
        join(event.worker);
      } else if (worker.doing == Doing::kRuns) {
        advance(worker);
        constexpr double kRest = 1e-3;
        const int32_t resource = operation_of(worker).resource;
        if (worker.left_ns <= kRest) {
          finish_operation(event.worker);
        } else if (worker.held == resource && resource != kNone && worker.slice_left <= kRest) {
          if (waiting_[static_cast<size_t>(resource)].empty()) {
            worker.slice_left = static_cast<double>(model_.resources[static_cast<size_t>(resource)].quantum_ns);
            retime(event.worker);
          } else {
            leave(event.worker);
            give_back(event.worker);
            worker.doing = Doing::kWaits;
            worker.asked = ++asked_;
            worker.asked_ns = now_;
            waiting_[static_cast<size_t>(resource)].push_back(event.worker);
          }
        } else {
          retime(event.worker);
        }
      }
    }
    // Servers are given when all that happens at this instant has happened.
    const double soon = std::min(next < arrivals_.size() ? arrival(arrivals_[next]) : kNever,
                                 events_.empty() ? kNever : events_.top().time);
    if (soon <= now_) continue;
    while (!touched_.empty()) {
      const int32_t resource = touched_.back();
      touched_.pop_back();
      serve(resource);
    }
  }
  result_.span_ns = now_ - begin;
  return std::move(result_);
}

}  // namespace

ReplayResult replay(const ReplayModel& model) {
  return Engine(model).run();
}

}  // namespace strobe::analyze
