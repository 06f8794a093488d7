#include "analyze/tenant_replay.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "analyze/replay_engine.h"

namespace strobe::analyze {

namespace replay_engine {

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
  // Of two that come at the same instant, as with sensors in step, who was served first goes first again.
  const auto was_served_first = [this](int32_t a, int32_t b) {
    const auto stages = [this](int32_t frame) {
      const auto first = model_.stages.begin() + work_of(frame).first_stage;
      return std::span(first, first + work_of(frame).stage_count);
    };
    return std::ranges::lexicographical_compare(stages(a), stages(b), {}, &ReplayStage::served_ns,
                                                &ReplayStage::served_ns);
  };
  std::stable_sort(arrivals_.begin(), arrivals_.end(), [&](int32_t a, int32_t b) {
    return arrival(a) != arrival(b) ? arrival(a) < arrival(b) : was_served_first(a, b);
  });
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
        // What is left is rounding, or less than a double can add to a time far from the timeline's begin.
        const auto is_over = [this](double left_ns, double rate) {
          constexpr double kRest = 1e-3;
          return left_ns <= kRest || now_ + left_ns / rate <= now_;
        };
        const int32_t resource = operation_of(worker).resource;
        if (is_over(worker.left_ns, worker.rate)) {
          finish_operation(event.worker);
        } else if (worker.held == resource && resource != kNone && is_over(worker.slice_left, 1)) {
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

}  // namespace replay_engine

ReplayResult replay(const ReplayModel& model) {
  return replay_engine::Engine(model).run();
}

}  // namespace strobe::analyze
