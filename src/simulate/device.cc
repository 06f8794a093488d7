#include "simulate/device.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>

#include "simulate/laws.h"

namespace strobe::simulate {

int32_t thread_queue_of(const Scenario& scenario, int32_t tenant) {
  return static_cast<int32_t>(scenario.resources.size()) + tenant;
}

int32_t stage_queue_of(const Scenario& scenario, int32_t tenant, int32_t stage) {
  auto number = static_cast<int32_t>(scenario.resources.size() + scenario.tenants.size());
  for (int32_t i = 0; i < tenant; ++i)
    number += static_cast<int32_t>(scenario.tenants[static_cast<size_t>(i)].stages.size());
  return number + stage;
}

std::vector<std::string> resource_names(const Scenario& scenario) {
  std::vector<std::string> names;
  for (const Resource& resource : scenario.resources) names.push_back(resource.name);
  for (const Tenant& tenant : scenario.tenants) names.push_back("queue:" + tenant.name);
  for (const Tenant& tenant : scenario.tenants)
    for (const StageLaw& stage : tenant.stages) names.push_back("queue:" + tenant.name + "." + stage.name);
  return names;
}

namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr double kEps = 1e-3;  // ns: what is left of a service after rounding

enum class State : uint8_t { kIdle, kWaiting, kSwitching, kRunning, kPushing };

struct Worker {
  int32_t tenant = 0, group = 0;
  State state = State::kIdle;
  int32_t frame = -1, stage = -1, law = -1, operation = 0;
  int32_t resource = -1, server = -1, kind = 0;
  int32_t slice = 0;
  uint64_t asked = 0;  // order of requests
  bool gave_way = false;
  double remaining = 0, share = 1, speed = 1;
  double ready_ns = 0, start_ns = 0, intrinsic_ns = 0, runnable_ns = 0;
  std::vector<int32_t> deliver;  // stages to be handed over, the next one last
  int32_t keep = -1;             // the stage that this worker goes on with
  std::vector<Blame> blame;
  double rate() const { return share * speed; }
};

struct Server {
  int32_t worker = -1, last_tenant = -1;
  double switch_left = 0, slice_left = 0;
};

struct Entry {
  int32_t frame = 0, law = 0, cause = -1;
  double queued_ns = 0;
};

// Threads that do the same stages, and what waits for them.
struct Group {
  std::vector<int32_t> workers;
  std::deque<Entry> waiting;
  std::vector<int32_t> pushers;  // workers that wait for room, in that order
  struct Spell {
    double start_ns, end_ns;
    int32_t frame;
  };
  std::vector<Spell> spells;  // what its threads worked on, by end
};

class Device {
 public:
  explicit Device(const Scenario& scenario) : scenario_(scenario) {
    servers_.resize(scenario.resources.size());
    waiting_.resize(scenario.resources.size());
    running_.resize(scenario.resources.size());
    dirty_.assign(scenario.resources.size(), 1);
    for (size_t i = 0; i < servers_.size(); ++i)
      if (scenario.resources[i].kind == Resource::Kind::kExclusive)
        servers_[i].resize(static_cast<size_t>(scenario.resources[i].capacity));
    make_workers();
    make_frames();
    for (const Load& load : scenario.loads) loads_.push_back({&load, load.from_ns, false, 0});
  }

  Log run() {
    const double limit = scenario_.duration_ns * 20;
    settle();
    while (now_ < limit) {
      const double next = next_change();
      if (next == kNever || (open_frames_ == 0 && next_frame_ == log_.frames.size())) break;
      integrate(std::max(0.0, next - now_));
      now_ = next;
      settle();
    }
    for (LoadState& load : loads_)
      if (load.is_on) switch_load(load);
    log_.workers = static_cast<int32_t>(workers_.size());
    return std::move(log_);
  }

 private:
  struct LoadState {
    const Load* load;
    double next;
    bool is_on;
    double since;
  };

  void make_workers();
  void make_frames();
  void settle();
  void integrate(double dt);
  double next_change();
  void switch_load(LoadState& load);
  void arrive(int32_t frame);
  void begin_stage(int32_t worker, const Entry& entry);
  void next_operation(int32_t worker);
  void request(int32_t worker);
  void start_service(Worker& worker);
  void end_operation(int32_t worker);
  void log_operation(const Worker& worker);
  void preempt(int32_t worker);
  void finish_stage(int32_t worker);
  bool deliver(int32_t worker);
  void release_worker(int32_t worker);
  void dispatch(size_t resource);
  int32_t choose(size_t resource, const Server& server) const;
  void refresh(size_t resource);
  double speed_of(size_t resource) const;
  double progress_of(const Worker& worker) const { return worker.state == State::kRunning ? worker.share : 0; }
  void blame_stall(Worker& whose, const Worker& of, double ns);
  static void put(Worker& whose, int32_t by, int32_t resource, double ns) {
    for (Blame& known : whose.blame)
      if (known.by == by && known.resource == resource) {
        known.ns += ns;
        return;
      }
    whose.blame.push_back({by, resource, ns});
  }
  const Tenant& tenant_of(const Worker& worker) const { return scenario_.tenants[static_cast<size_t>(worker.tenant)]; }
  Group& group_of(int32_t tenant, int32_t group) {
    return groups_[static_cast<size_t>(tenant)][static_cast<size_t>(group)];
  }
  double slow(int32_t slowed, int32_t beside) const {
    return scenario_.interference.empty()
               ? 0
               : scenario_.interference[static_cast<size_t>(slowed)][static_cast<size_t>(beside)];
  }

  const Scenario& scenario_;
  Log log_;
  double now_ = 0;
  uint64_t requests_ = 0;
  size_t next_frame_ = 0, open_frames_ = 0;
  std::vector<Worker> workers_;
  std::vector<std::vector<Group>> groups_;  // by tenant
  std::vector<std::vector<Server>> servers_;
  std::vector<std::vector<int32_t>> waiting_, running_;  // workers by resource
  std::vector<uint8_t> dirty_;
  std::vector<LoadState> loads_;
  struct FrameState {
    std::vector<int32_t> missing;  // of each stage: how many it still waits for
    int32_t left = 0;
    double units = 0;
    uint64_t seed = 0;
  };
  std::vector<FrameState> states_;
};

void Device::make_workers() {
  for (size_t i = 0; i < scenario_.tenants.size(); ++i) {
    const Tenant& tenant = scenario_.tenants[i];
    int32_t groups = 1;
    for (const StageLaw& stage : tenant.stages) groups = std::max(groups, stage.thread + 1);
    groups_.emplace_back(static_cast<size_t>(groups));
    std::vector<int32_t>& numbers = log_.worker_of.emplace_back();
    for (int32_t group = 0; group < groups; ++group)
      for (int64_t k = 0; k < tenant.workers; ++k) {
        Worker worker;
        worker.tenant = static_cast<int32_t>(i);
        worker.group = group;
        numbers.push_back(static_cast<int32_t>(workers_.size()));
        groups_.back()[static_cast<size_t>(group)].workers.push_back(numbers.back());
        workers_.push_back(std::move(worker));
      }
  }
}

void Device::make_frames() {
  for (size_t i = 0; i < scenario_.tenants.size(); ++i) {
    const Tenant& tenant = scenario_.tenants[i];
    const uint64_t seed = mixed(scenario_.seed, text_seed(tenant.name));
    int64_t id = 0;
    for (const double stamp : stamps(tenant.arrivals, scenario_.duration_ns, Random(mixed(seed, 1)))) {
      FrameLog frame;
      frame.tenant = static_cast<int32_t>(i);
      frame.id = id++;
      frame.stamp_ns = stamp;
      const bool is_missing = std::any_of(scenario_.gaps.begin(), scenario_.gaps.end(), [&](const Gap& gap) {
        return gap.tenant == static_cast<int32_t>(i) && stamp >= gap.from_ns && stamp < gap.to_ns;
      });
      if (is_missing) {
        log_.not_sent.push_back({frame.tenant, frame.id, stamp});
        continue;
      }
      frame.arrival_ns =
          stamp + draw(tenant.comm, Random(mixed(mixed(seed, 2), static_cast<uint64_t>(frame.id))), frame.id, 0);
      frame.stages.assign(tenant.stages.size(), -1);
      log_.frames.push_back(std::move(frame));
    }
  }
  std::stable_sort(log_.frames.begin(), log_.frames.end(),
                   [](const FrameLog& a, const FrameLog& b) { return a.arrival_ns < b.arrival_ns; });
  for (const FrameLog& frame : log_.frames) {
    const Tenant& tenant = scenario_.tenants[static_cast<size_t>(frame.tenant)];
    FrameState state;
    const uint64_t seed = mixed(scenario_.seed, text_seed(tenant.name));
    state.seed = mixed(mixed(seed, 3), static_cast<uint64_t>(frame.id));
    state.units = draw(tenant.input, Random(mixed(state.seed, 4)), frame.id, 0);
    state.left = static_cast<int32_t>(tenant.stages.size());
    for (const StageLaw& stage : tenant.stages) state.missing.push_back(static_cast<int32_t>(stage.after.size()));
    states_.push_back(std::move(state));
  }
}

double Device::speed_of(size_t resource) const {
  double speed = 1;
  for (const Slowdown& slowdown : scenario_.slowdowns)
    if (slowdown.resource == static_cast<int32_t>(resource) && now_ >= slowdown.from_ns - kEps &&
        now_ < slowdown.to_ns - kEps)
      speed /= slowdown.factor;
  return speed;
}

// Shares and speeds of what runs on a resource.
void Device::refresh(size_t resource) {
  dirty_[resource] = 0;
  const Resource& what = scenario_.resources[resource];
  const double speed = speed_of(resource);
  double busy = static_cast<double>(running_[resource].size());
  if (what.kind == Resource::Kind::kCores)
    for (const LoadState& load : loads_)
      if (load.is_on && load.load->resource == static_cast<int32_t>(resource))
        busy += static_cast<double>(load.load->threads);
  for (const int32_t number : running_[resource]) {
    Worker& worker = workers_[static_cast<size_t>(number)];
    worker.speed = speed;
    if (what.kind == Resource::Kind::kCores) worker.share = std::min(1.0, static_cast<double>(what.capacity) / busy);
    if (what.kind != Resource::Kind::kShared) continue;
    double sum = 0;
    for (const int32_t other : running_[resource])
      if (other != number) sum += slow(worker.kind, workers_[static_cast<size_t>(other)].kind);
    if (scenario_.saturation > 0) sum = std::min(sum, scenario_.saturation);
    worker.share = 1 / (1 + sum);
  }
}

double Device::next_change() {
  double next = kNever;
  if (next_frame_ < log_.frames.size()) next = log_.frames[next_frame_].arrival_ns;
  for (const LoadState& load : loads_) next = std::min(next, load.next);
  for (const Slowdown& slowdown : scenario_.slowdowns)
    for (const double at : {slowdown.from_ns, slowdown.to_ns})
      if (at > now_ + kEps) next = std::min(next, at);
  for (size_t i = 0; i < servers_.size(); ++i) {
    if (dirty_[i]) refresh(i);
    for (const int32_t number : running_[i]) {
      const Worker& worker = workers_[static_cast<size_t>(number)];
      next = std::min(next, now_ + worker.remaining / worker.rate());
    }
    for (const Server& server : servers_[i]) {
      if (server.worker < 0) continue;
      if (server.switch_left > 0)
        next = std::min(next, now_ + server.switch_left);
      else if (scenario_.resources[i].quantum_ns > 0)
        next = std::min(next, now_ + server.slice_left);
    }
  }
  return next;
}

// The time in which `of` made no progress, to those who were in its way; it counts as a delay of `whose`.
void Device::blame_stall(Worker& whose, const Worker& of, double ns) {
  if (of.state == State::kPushing) {
    const int32_t target = of.deliver.back();
    Group& group = group_of(of.tenant, tenant_of(of).stages[static_cast<size_t>(target)].thread);
    const double part = ns / static_cast<double>(group.workers.size());
    for (const int32_t number : group.workers) {
      const Worker& consumer = workers_[static_cast<size_t>(number)];
      const double progress = progress_of(consumer);
      if (progress > 0) put(whose, of.tenant, stage_queue_of(scenario_, of.tenant, target), part * progress);
      if (progress < 1) blame_stall(whose, consumer, part * (1 - progress));
    }
    return;
  }
  const auto at = static_cast<size_t>(of.resource);
  const Resource& resource = scenario_.resources[at];
  if (of.state == State::kWaiting || of.state == State::kSwitching) {
    const double part = ns / static_cast<double>(servers_[at].size());
    for (const Server& server : servers_[at]) {
      const bool is_switch = server.worker < 0 || server.switch_left > 0;
      put(whose, is_switch ? system_of(scenario_) : workers_[static_cast<size_t>(server.worker)].tenant, of.resource,
          part);
    }
    return;
  }
  if (resource.kind == Resource::Kind::kShared) {
    double sum = 0;
    for (const int32_t other : running_[at]) {
      const Worker& beside = workers_[static_cast<size_t>(other)];
      if (&beside != &of) sum += slow(of.kind, beside.kind);
    }
    for (const int32_t other : running_[at]) {
      const Worker& beside = workers_[static_cast<size_t>(other)];
      if (&beside != &of && sum > 0) put(whose, beside.tenant, of.resource, ns * slow(of.kind, beside.kind) / sum);
    }
    return;
  }
  double others = static_cast<double>(running_[at].size()) - 1;
  for (const LoadState& load : loads_)
    if (load.is_on && load.load->resource == of.resource) others += static_cast<double>(load.load->threads);
  for (const int32_t other : running_[at])
    if (const Worker& beside = workers_[static_cast<size_t>(other)]; &beside != &of)
      put(whose, beside.tenant, of.resource, ns / others);
  for (const LoadState& load : loads_)
    if (load.is_on && load.load->resource == of.resource)
      put(whose, load.load->is_recorder ? recorder_of(scenario_) : system_of(scenario_), of.resource,
          ns * static_cast<double>(load.load->threads) / others);
}

void Device::integrate(double dt) {
  if (dt <= 0) return;
  for (Worker& worker : workers_) {
    switch (worker.state) {
      case State::kIdle:
        break;
      case State::kRunning: {
        worker.intrinsic_ns += dt * worker.share;
        worker.remaining -= dt * worker.rate();
        if (worker.share >= 1) break;
        if (scenario_.resources[static_cast<size_t>(worker.resource)].kind == Resource::Kind::kCores)
          worker.runnable_ns += dt * (1 - worker.share);
        blame_stall(worker, worker, dt * (1 - worker.share));
        break;
      }
      default:
        blame_stall(worker, worker, dt);
    }
  }
  for (size_t i = 0; i < servers_.size(); ++i)
    for (Server& server : servers_[i]) {
      if (server.worker < 0) continue;
      if (server.switch_left > 0)
        server.switch_left -= dt;
      else
        server.slice_left -= dt;
    }
}

void Device::switch_load(LoadState& load) {
  const Load& law = *load.load;
  dirty_[static_cast<size_t>(law.resource)] = 1;
  if (load.is_on) {
    const int32_t by = law.is_recorder ? recorder_of(scenario_) : system_of(scenario_);
    for (int64_t i = 0; i < law.threads; ++i)
      log_.others.push_back({by, law.resource, load.since, now_, law.is_recorded});
  }
  load.is_on = !load.is_on;
  const double end = law.to_ns > 0 ? law.to_ns : scenario_.duration_ns;
  if (load.is_on) {
    load.since = now_;
    load.next = law.every_ns > 0 ? std::min(end, now_ + law.for_ns) : end;
  } else {
    load.next = law.every_ns > 0 ? load.since + law.every_ns : kNever;
    if (load.next >= end) load.next = kNever;
  }
}

// Everything that happens at this instant.
void Device::settle() {
  for (LoadState& load : loads_)
    while (load.next <= now_ + kEps) switch_load(load);
  for (const Slowdown& slowdown : scenario_.slowdowns)
    if (std::abs(slowdown.from_ns - now_) <= kEps || std::abs(slowdown.to_ns - now_) <= kEps)
      dirty_[static_cast<size_t>(slowdown.resource)] = 1;
  bool changed = true;
  while (changed) {
    changed = false;
    while (next_frame_ < log_.frames.size() && log_.frames[next_frame_].arrival_ns <= now_ + kEps)
      arrive(static_cast<int32_t>(next_frame_++));
    for (int32_t i = 0; i < static_cast<int32_t>(workers_.size()); ++i) {
      Worker& worker = workers_[static_cast<size_t>(i)];
      if (worker.state == State::kSwitching) {
        Server& server = servers_[static_cast<size_t>(worker.resource)][static_cast<size_t>(worker.server)];
        if (server.switch_left > kEps) continue;
        server.switch_left = 0;
        start_service(worker);
        changed = true;
      } else if (worker.state == State::kRunning && worker.remaining <= kEps) {
        end_operation(i);
        changed = true;
      } else if (worker.state == State::kRunning && worker.server >= 0) {
        const Resource& resource = scenario_.resources[static_cast<size_t>(worker.resource)];
        Server& server = servers_[static_cast<size_t>(worker.resource)][static_cast<size_t>(worker.server)];
        if (resource.quantum_ns <= 0 || server.slice_left > kEps) continue;
        if (waiting_[static_cast<size_t>(worker.resource)].empty())
          server.slice_left = resource.quantum_ns;
        else
          preempt(i);
        changed = true;
      }
    }
    for (size_t i = 0; i < servers_.size(); ++i)
      if (!waiting_[i].empty()) dispatch(i);
  }
}

void Device::arrive(int32_t number) {
  FrameLog& frame = log_.frames[static_cast<size_t>(number)];
  const Tenant& tenant = scenario_.tenants[static_cast<size_t>(frame.tenant)];
  Group& group = group_of(frame.tenant, tenant.stages.front().thread);
  const Entry entry{number, 0, -1, frame.arrival_ns};
  ++open_frames_;
  for (const int32_t worker : group.workers)
    if (workers_[static_cast<size_t>(worker)].state == State::kIdle && group.waiting.empty()) {
      begin_stage(worker, entry);
      return;
    }
  const auto is_first = [](const Entry& other) { return other.law == 0; };
  const auto depth = std::count_if(group.waiting.begin(), group.waiting.end(), is_first);
  if (tenant.drop != Drop::kNever && tenant.queue_depth > 0 && depth >= tenant.queue_depth) {
    --open_frames_;
    if (tenant.drop == Drop::kNewest) {
      frame.outcome = FrameLog::Outcome::kDroppedNewest;
      frame.done_ns = now_;
      return;
    }
    const auto oldest = std::find_if(group.waiting.begin(), group.waiting.end(), is_first);
    FrameLog& dropped = log_.frames[static_cast<size_t>(oldest->frame)];
    dropped.outcome = FrameLog::Outcome::kDroppedOldest;
    dropped.done_ns = now_;
    group.waiting.erase(oldest);
  }
  group.waiting.push_back(entry);
}

void Device::begin_stage(int32_t number, const Entry& entry) {
  Worker& worker = workers_[static_cast<size_t>(number)];
  StageLog stage;
  stage.frame = entry.frame;
  stage.law = entry.law;
  stage.worker = number;
  stage.cause = entry.cause;
  stage.queued_ns = entry.queued_ns;
  stage.start_ns = now_;
  const Group& group = group_of(worker.tenant, worker.group);
  const double each = 1 / static_cast<double>(group.workers.size());
  if (stage.start_ns > stage.queued_ns) {
    const auto add = [&](int32_t frame, double from, double to) {
      const double both = std::min(to, stage.start_ns) - std::max(from, stage.queued_ns);
      if (both > 0) stage.backlog.push_back({frame, both * each});
    };
    // Spells end one after the other, but a long one may have begun before a short one that ended earlier.
    for (size_t i = group.spells.size(); i-- > 0 && group.spells[i].end_ns > stage.queued_ns;)
      add(group.spells[i].frame, group.spells[i].start_ns, group.spells[i].end_ns);
    for (const int32_t other : group.workers)
      if (const Worker& busy = workers_[static_cast<size_t>(other)]; other != number && busy.state != State::kIdle)
        add(busy.frame, log_.stages[static_cast<size_t>(busy.stage)].start_ns, now_);
  }
  worker.frame = entry.frame;
  worker.law = entry.law;
  worker.operation = 0;
  worker.stage = static_cast<int32_t>(log_.stages.size());
  worker.blame.clear();
  log_.frames[static_cast<size_t>(entry.frame)].stages[static_cast<size_t>(entry.law)] = worker.stage;
  log_.stages.push_back(std::move(stage));
  next_operation(number);
}

void Device::next_operation(int32_t number) {
  Worker& worker = workers_[static_cast<size_t>(number)];
  const StageLaw& law = tenant_of(worker).stages[static_cast<size_t>(worker.law)];
  if (worker.operation == static_cast<int32_t>(law.operations.size())) {
    finish_stage(number);
    return;
  }
  const OperationLaw& operation = law.operations[static_cast<size_t>(worker.operation)];
  const FrameState& state = states_[static_cast<size_t>(worker.frame)];
  const auto key = static_cast<uint64_t>(worker.law) * 100'003 + static_cast<uint64_t>(worker.operation) + 10;
  worker.remaining = draw(operation.service, Random(mixed(state.seed, key)),
                          log_.frames[static_cast<size_t>(worker.frame)].id, state.units);
  worker.slice = 0;
  worker.kind = operation.kind;
  worker.resource = operation.resource;
  request(number);
}

void Device::request(int32_t number) {
  Worker& worker = workers_[static_cast<size_t>(number)];
  const auto resource = static_cast<size_t>(worker.resource);
  worker.ready_ns = now_;
  worker.intrinsic_ns = worker.runnable_ns = 0;
  if (scenario_.resources[resource].kind != Resource::Kind::kExclusive) {
    start_service(worker);
  } else if (worker.server >= 0) {  // kept from the operation before
    start_service(worker);
  } else {
    worker.state = State::kWaiting;
    if (!worker.gave_way) worker.asked = ++requests_;  // who gave way keeps its place among those of its priority
    worker.gave_way = false;
    waiting_[resource].push_back(number);
  }
}

void Device::start_service(Worker& worker) {
  const auto resource = static_cast<size_t>(worker.resource);
  worker.state = State::kRunning;
  worker.start_ns = now_;
  worker.share = worker.speed = 1;
  running_[resource].push_back(static_cast<int32_t>(&worker - workers_.data()));
  dirty_[resource] = 1;
  if (worker.server >= 0)
    servers_[resource][static_cast<size_t>(worker.server)].slice_left = scenario_.resources[resource].quantum_ns;
}

void Device::log_operation(const Worker& worker) {
  OperationLog log;
  log.stage = worker.stage;
  log.law = worker.operation;
  log.resource = worker.resource;
  log.slice = worker.slice;
  log.ready_ns = worker.ready_ns;
  log.start_ns = worker.start_ns;
  log.end_ns = now_;
  log.intrinsic_ns = worker.intrinsic_ns;
  log.runnable_ns = worker.runnable_ns;
  log_.stages[static_cast<size_t>(worker.stage)].intrinsic_ns += worker.intrinsic_ns;
  log_.operations.push_back(log);
}

void Device::preempt(int32_t number) {
  Worker& worker = workers_[static_cast<size_t>(number)];
  const auto resource = static_cast<size_t>(worker.resource);
  log_operation(worker);
  std::erase(running_[resource], number);
  servers_[resource][static_cast<size_t>(worker.server)].worker = -1;
  worker.server = -1;
  ++worker.slice;
  request(number);
}

void Device::end_operation(int32_t number) {
  Worker& worker = workers_[static_cast<size_t>(number)];
  const auto resource = static_cast<size_t>(worker.resource);
  log_operation(worker);
  std::erase(running_[resource], number);
  dirty_[resource] = 1;
  const StageLaw& law = tenant_of(worker).stages[static_cast<size_t>(worker.law)];
  const auto next = static_cast<size_t>(++worker.operation);
  const bool goes_on = next < law.operations.size() && law.operations[next].resource == worker.resource;
  worker.gave_way = false;
  if (goes_on && scenario_.resources[resource].gives_way)
    for (const int32_t other : waiting_[resource])
      worker.gave_way |= tenant_of(workers_[static_cast<size_t>(other)]).priority > tenant_of(worker).priority;
  const bool keeps = scenario_.resources[resource].by_stage && goes_on && !worker.gave_way;
  if (worker.server >= 0 && !keeps) {
    servers_[resource][static_cast<size_t>(worker.server)].worker = -1;
    worker.server = -1;
  }
  next_operation(number);
}

void Device::finish_stage(int32_t number) {
  Worker& worker = workers_[static_cast<size_t>(number)];
  const Tenant& tenant = tenant_of(worker);
  FrameState& state = states_[static_cast<size_t>(worker.frame)];
  --state.left;
  worker.keep = -1;
  worker.deliver.clear();
  for (int32_t i = static_cast<int32_t>(tenant.stages.size()) - 1; i > worker.law; --i) {
    const StageLaw& next = tenant.stages[static_cast<size_t>(i)];
    if (std::find(next.after.begin(), next.after.end(), worker.law) == next.after.end()) continue;
    if (--state.missing[static_cast<size_t>(i)] > 0) continue;
    if (next.thread == worker.group) {
      if (worker.keep >= 0) worker.deliver.push_back(worker.keep);
      worker.keep = i;
    } else {
      worker.deliver.push_back(i);
    }
  }
  if (!deliver(number)) {
    worker.state = State::kPushing;
    worker.ready_ns = now_;
  }
}

// Hands over what this stage led to. False: there is no room.
bool Device::deliver(int32_t number) {
  while (!workers_[static_cast<size_t>(number)].deliver.empty()) {
    Worker& worker = workers_[static_cast<size_t>(number)];
    const int32_t law = worker.deliver.back();
    const StageLaw& next = tenant_of(worker).stages[static_cast<size_t>(law)];
    Group& group = group_of(worker.tenant, next.thread);
    const Entry entry{worker.frame, law, worker.stage, now_};
    const auto idle = std::find_if(group.workers.begin(), group.workers.end(), [&](int32_t other) {
      return workers_[static_cast<size_t>(other)].state == State::kIdle;
    });
    if (idle != group.workers.end() && group.waiting.empty()) {
      worker.deliver.pop_back();
      begin_stage(*idle, entry);
      continue;
    }
    const auto depth = std::count_if(group.waiting.begin(), group.waiting.end(),
                                     [law](const Entry& other) { return other.law == law; });
    if (next.queue > 0 && depth >= next.queue) {
      group.pushers.push_back(number);
      return false;
    }
    worker.deliver.pop_back();
    group.waiting.push_back(entry);
  }
  Worker& worker = workers_[static_cast<size_t>(number)];
  StageLog& stage = log_.stages[static_cast<size_t>(worker.stage)];
  stage.end_ns = now_;
  stage.blame = worker.blame;
  FrameLog& frame = log_.frames[static_cast<size_t>(worker.frame)];
  Group& group = group_of(worker.tenant, worker.group);
  group.spells.push_back({stage.start_ns, now_, worker.frame});
  if (states_[static_cast<size_t>(worker.frame)].left == 0 && frame.outcome == FrameLog::Outcome::kLost) {
    frame.outcome = FrameLog::Outcome::kFinished;
    frame.done_ns = now_;
    frame.last = worker.stage;
    --open_frames_;
  }
  if (worker.keep >= 0)
    begin_stage(number, {worker.frame, worker.keep, worker.stage, now_});
  else
    release_worker(number);
  return true;
}

void Device::release_worker(int32_t number) {
  Worker& worker = workers_[static_cast<size_t>(number)];
  worker.state = State::kIdle;
  worker.frame = worker.stage = -1;
  Group& group = group_of(worker.tenant, worker.group);
  if (group.waiting.empty()) return;
  const Entry entry = group.waiting.front();
  group.waiting.pop_front();
  begin_stage(number, entry);
  // Room for those who wait to hand over.
  std::vector<int32_t> pushers;
  pushers.swap(group.pushers);
  for (const int32_t pusher : pushers) {
    Worker& pushing = workers_[static_cast<size_t>(pusher)];
    const auto before = pushing.ready_ns;
    OperationLog log;
    log.stage = pushing.stage;
    log.law = -1;
    log.resource = stage_queue_of(scenario_, pushing.tenant, pushing.deliver.back());
    log.ready_ns = before;
    log.start_ns = log.end_ns = now_;
    if (const size_t left = pushing.deliver.size(); !deliver(pusher) && pushing.deliver.size() == left) continue;
    log_.operations.push_back(log);
    if (pushing.state == State::kPushing) pushing.ready_ns = now_;
  }
}

int32_t Device::choose(size_t resource, const Server& server) const {
  const Resource& what = scenario_.resources[resource];
  const auto count = static_cast<int32_t>(scenario_.tenants.size());
  const auto rank = [&](const Worker& worker) -> double {
    switch (what.serve) {
      case Serve::kFifo:
        return 0;
      case Serve::kPriority:
        return -tenant_of(worker).priority;
      case Serve::kEdf: {
        const double deadline = tenant_of(worker).deadline_ns;
        return deadline > 0 ? log_.frames[static_cast<size_t>(worker.frame)].stamp_ns + deadline : kNever;
      }
      case Serve::kRoundRobin:
        return (worker.tenant - server.last_tenant - 1 + 2 * count) % count;
    }
    return 0;
  };
  int32_t best = -1;
  double best_rank = 0;
  for (const int32_t number : waiting_[resource]) {
    const Worker& worker = workers_[static_cast<size_t>(number)];
    const double its = rank(worker);
    if (best >= 0 &&
        (its > best_rank || (its == best_rank && worker.asked > workers_[static_cast<size_t>(best)].asked)))
      continue;
    best = number;
    best_rank = its;
  }
  return best;
}

void Device::dispatch(size_t resource) {
  for (size_t i = 0; i < servers_[resource].size() && !waiting_[resource].empty(); ++i) {
    Server& server = servers_[resource][i];
    if (server.worker >= 0) continue;
    const int32_t number = choose(resource, server);
    std::erase(waiting_[resource], number);
    Worker& worker = workers_[static_cast<size_t>(number)];
    server.worker = number;
    worker.server = static_cast<int32_t>(i);
    const bool switches = server.last_tenant >= 0 && server.last_tenant != worker.tenant;
    server.last_tenant = worker.tenant;
    if (switches && scenario_.resources[resource].switch_ns > 0) {
      server.switch_left = scenario_.resources[resource].switch_ns;
      worker.state = State::kSwitching;
    } else {
      start_service(worker);
    }
  }
}

}  // namespace

Log simulate(const Scenario& scenario) {
  return Device(scenario).run();
}

}  // namespace strobe::simulate
