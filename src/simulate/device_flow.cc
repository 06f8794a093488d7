// What threads of the simulated device do: stages, hand-overs, and who gets a server.
#include <algorithm>

#include "simulate/device_state.h"

namespace strobe::simulate {

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

}  // namespace strobe::simulate
