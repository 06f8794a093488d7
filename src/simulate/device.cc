#include "simulate/device.h"

#include <algorithm>
#include <cmath>

#include "simulate/device_state.h"

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

Log simulate(const Scenario& scenario) {
  return Device(scenario).run();
}

}  // namespace strobe::simulate
