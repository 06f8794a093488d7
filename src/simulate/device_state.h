// Inside of the simulated device: its threads, servers and queues.
#pragma once

#include <algorithm>
#include <deque>
#include <limits>
#include <vector>

#include "simulate/device.h"
#include "simulate/laws.h"

namespace strobe::simulate {

inline constexpr double kNever = std::numeric_limits<double>::infinity();
inline constexpr double kEps = 1e-3;  // ns: what is left of a service after rounding

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

// The device. Its time and blame stand in device.cc, what its threads do in device_flow.cc.
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

}  // namespace strobe::simulate
