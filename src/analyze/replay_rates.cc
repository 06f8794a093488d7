#include <algorithm>
#include <cmath>
#include <utility>

#include "analyze/replay_engine.h"

namespace strobe::analyze::replay_engine {

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

}  // namespace strobe::analyze::replay_engine
