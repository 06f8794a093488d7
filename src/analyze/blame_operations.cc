#include "analyze/blame_operations.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "analyze/core_runs.h"

namespace strobe::analyze {

using trace::kNone;

void add_cell(std::vector<BlameCell>& cells, int32_t by, int32_t resource, double ns) {
  if (ns == 0) return;
  for (BlameCell& cell : cells)
    if (cell.by == by && cell.resource == resource) {
      cell.ns += ns;
      return;
    }
  cells.push_back({by, resource, ns});
}

namespace {

constexpr double kSqrt2 = 1.4142135623730951;

// A difference of two stamps has sqrt(2) sigma.
int64_t noise_of_difference(const TenantTrace& trace) {
  return static_cast<int64_t>(std::ceil(trace.dead_band_ns() * kSqrt2));
}

struct Record {
  int32_t operation;
  BlameCell cell;
};

class Sweeper {
 public:
  explicit Sweeper(const TenantTrace& trace) : trace_(trace), core_runs_(trace), band_(noise_of_difference(trace)) {
    out_.beside_idle_ns.assign(trace.tenants.size(), 0);
    out_.intrinsic_ns.resize(trace.operations.size());
    for (size_t i = 0; i < trace.operations.size(); ++i)
      out_.intrinsic_ns[i] = static_cast<double>(trace.operations[i].end_ns - trace.operations[i].start_ns);
    out_.blocker.assign(trace.operations.size(), kNone);
    out_.estimated.assign(trace.resources.size(), 0);
    out_.of_stage.resize(trace.stages.size());
    out_.servers.resize(trace.resources.size());
  }

  OperationBlame run() {
    by_resource_.resize(trace_.resources.size());
    for (size_t i = 0; i < trace_.operations.size(); ++i)
      if (trace_.operations[i].resource != kNone)
        by_resource_[static_cast<size_t>(trace_.operations[i].resource)].push_back(static_cast<int32_t>(i));
    // Stretch first: what CPU time is waited for is no part of it.
    for (size_t i = 0; i < trace_.resources.size(); ++i) {
      if (trace_.resources[i].kind == ResourceKind::kExclusive) sweep_exclusive(static_cast<int32_t>(i));
      if (trace_.resources[i].kind == ResourceKind::kShared && static_cast<int32_t>(i) != trace_.memory)
        sweep_shared(static_cast<int32_t>(i), whole(by_resource_[i]));
    }
    sweep_memory();
    sweep_cores();
    collect();
    return std::move(out_);
  }

 private:
  void sweep_exclusive(int32_t resource);
  Servers servers_of(int32_t resource);
  // A time in which an operation used a resource; of each operation in order.
  struct Use {
    int32_t operation;
    int64_t start_ns, end_ns;
  };
  void sweep_shared(int32_t resource, const std::vector<Use>& uses);
  std::vector<Use> whole(const std::vector<int32_t>& operations) const;
  void sweep_memory();
  void add_runs(int32_t operation, std::vector<Use>& uses);
  double running_share(const TenantOperation& operation) const;
  double beside(const TenantOperation& slowed, const TenantOperation& other, int32_t resource) const;
  void sweep_cores();
  void sweep_core_domain(const std::vector<int32_t>& resources);
  bool split_by_core_runs(int32_t operation, int32_t stage, int32_t resource, double waited_ns);
  void give_core_wait(int32_t operation, int32_t stage, int32_t by, int32_t resource, double ns) {
    if (operation != kNone)
      put(operation, by, resource, ns);
    else
      add_cell(out_.of_stage[static_cast<size_t>(stage)], by, resource, ns);
  }
  void collect();
  void put(int32_t operation, int32_t by, int32_t resource, double ns) {
    if (ns > 0) records_.push_back({operation, {by, resource, ns}});
  }

  const TenantTrace& trace_;
  CoreRunIndex core_runs_;
  int64_t band_;
  std::vector<std::vector<int32_t>> by_resource_;
  std::vector<Record> records_;
  std::vector<uint8_t> runs_known_;  // by operation: when it waited for a core is known, and is no use of memory
  OperationBlame out_;
};

Servers Sweeper::servers_of(int32_t resource) {
  const TenantResource& what = trace_.resources[static_cast<size_t>(resource)];
  std::vector<Holding> all;
  for (const int32_t number : by_resource_[static_cast<size_t>(resource)]) {
    const TenantOperation& operation = trace_.operations[static_cast<size_t>(number)];
    bool is_inner = false;
    for (int32_t outer = operation.inside; outer != kNone; outer = trace_.operations[static_cast<size_t>(outer)].inside)
      is_inner |= trace_.operations[static_cast<size_t>(outer)].resource == resource;
    if (is_inner || operation.end_ns <= operation.start_ns) continue;
    all.push_back({operation.start_ns, operation.end_ns, operation.tenant, number});
    // A server that stays with a stage stays also between two of its operations.
    if (all.size() < 2) continue;
    Holding& before = all[all.size() - 2];
    if (before.operation == number - 1 && trace_.keeps_server(before.operation, number))
      before.end_ns = operation.start_ns;
  }
  for (const OtherHolder& other : trace_.others)
    if (other.resource == resource)
      all.push_back({other.start_ns, other.end_ns,
                     blamed(trace_, other.is_recorder ? Blamed::kRecorder : Blamed::kSystem), kNone});
  std::sort(all.begin(), all.end(), [](const Holding& a, const Holding& b) {
    return a.start_ns != b.start_ns ? a.start_ns < b.start_ns : a.end_ns < b.end_ns;
  });
  const auto capacity = static_cast<size_t>(std::clamp(what.capacity, 1.0, 1e4));
  // Noise of both ends of a hand-over, and some more: an overlap beyond it is no noise.
  const int64_t near = 2 * band_;
  Servers servers(capacity + 1);
  for (const Holding& holding : all) {
    // The server whose last holder ended nearest to it; noise may let the two overlap a little.
    const auto distance = [&](size_t i) {
      return servers[i].empty() ? std::numeric_limits<int64_t>::max()
                                : std::abs(holding.start_ns - servers[i].back().end_ns);
    };
    size_t best = capacity;
    for (size_t i = 0; i < capacity; ++i) {
      if (!servers[i].empty() && servers[i].back().end_ns > holding.start_ns + near) continue;
      if (best == capacity || distance(i) < distance(best)) best = i;
    }
    if (best == capacity) {
      ++out_.contradictions;
      int64_t free = std::numeric_limits<int64_t>::max();
      for (size_t i = 0; i < capacity; ++i) free = std::min(free, servers[i].back().end_ns);
      out_.contradicted_ns += std::max<int64_t>(0, std::min(free, holding.end_ns) - holding.start_ns);
    }
    if (best < capacity && !servers[best].empty()) {
      Holding& before = servers[best].back();
      const bool is_switch = what.switch_ns > 0 && before.by != holding.by && before.end_ns < holding.start_ns;
      if (distance(best) <= near && !is_switch) before.end_ns = std::max(before.start_ns, holding.start_ns);
    }
    servers[best].push_back(holding);
  }
  return servers;
}

void Sweeper::sweep_exclusive(int32_t resource) {
  Servers& servers = out_.servers[static_cast<size_t>(resource)];
  servers = servers_of(resource);
  const double dead = trace_.dead_band_ns();
  for (const int32_t number : by_resource_[static_cast<size_t>(resource)]) {
    const TenantOperation& operation = trace_.operations[static_cast<size_t>(number)];
    const int64_t wait = operation.start_ns - operation.ready_ns;
    if (wait <= 0 || static_cast<double>(wait) < dead) continue;
    for (const BlameCell& cell : blame_wait(trace_, servers, number, operation.ready_ns, operation.start_ns,
                                            &out_.blocker[static_cast<size_t>(number)]))
      put(number, cell.by, resource, cell.ns);
  }
}

// Events of things that begin and end; `Entry` numbers are the caller's.
struct Event {
  int64_t time_ns;
  int32_t entry;
  bool begins;
};
void sort_events(std::vector<Event>& events) {
  std::sort(events.begin(), events.end(), [](const Event& a, const Event& b) {
    if (a.time_ns != b.time_ns) return a.time_ns < b.time_ns;
    return a.begins != b.begins ? !a.begins : a.entry < b.entry;  // first what ends
  });
}

std::vector<Sweeper::Use> Sweeper::whole(const std::vector<int32_t>& operations) const {
  std::vector<Use> uses;
  for (const int32_t number : operations) {
    const TenantOperation& operation = trace_.operations[static_cast<size_t>(number)];
    if (operation.end_ns > operation.start_ns) uses.push_back({number, operation.start_ns, operation.end_ns});
  }
  return uses;
}

// What is left of an operation when its thread did not wait for a core, where the kernel's switches tell; else all.
void Sweeper::add_runs(int32_t number, std::vector<Use>& uses) {
  const TenantOperation& operation = trace_.operations[static_cast<size_t>(number)];
  if (operation.end_ns <= operation.start_ns) return;
  int64_t at = operation.start_ns;
  if (operation.runnable_ns > 0 && operation.stage != kNone &&
      core_runs_.covers(operation.start_ns, operation.end_ns)) {
    const int32_t lane = trace_.stages[static_cast<size_t>(operation.stage)].lane;
    const std::vector<Interval> within = {{operation.start_ns, operation.end_ns}};
    for (const auto& [from, to] : core_runs_.waits(trace_.lane_tids[static_cast<size_t>(lane)], within,
                                                   static_cast<double>(operation.runnable_ns))) {
      if (from > at) uses.push_back({number, at, from});
      at = std::max(at, to);
    }
    runs_known_[static_cast<size_t>(number)] = 1;
  }
  if (operation.end_ns > at) uses.push_back({number, at, operation.end_ns});
}

// Operations on different cores share caches and memory.
void Sweeper::sweep_memory() {
  if (trace_.memory == kNone) return;
  std::vector<Use> runs;
  runs_known_.assign(trace_.operations.size(), 0);
  for (size_t i = 0; i < trace_.resources.size(); ++i)
    if (trace_.resources[i].kind == ResourceKind::kCores)
      for (const int32_t operation : by_resource_[i]) add_runs(operation, runs);
  sweep_shared(trace_.memory, runs);
}

// Of the time of its uses, that in which it did not wait for a core.
double Sweeper::running_share(const TenantOperation& operation) const {
  const auto number = static_cast<size_t>(&operation - trace_.operations.data());
  if (number < runs_known_.size() && runs_known_[number] != 0) return 1;
  return 1 - static_cast<double>(operation.runnable_ns) / static_cast<double>(operation.end_ns - operation.start_ns);
}

// How much one operation slows another while both are under way; NaN: never measured.
double Sweeper::beside(const TenantOperation& slowed, const TenantOperation& other, int32_t resource) const {
  const double a = trace_.slow(slowed.kind, other.kind);
  if (resource != trace_.memory) return a;
  const TenantResource &own = trace_.resources[static_cast<size_t>(slowed.resource)],
                       &its = trace_.resources[static_cast<size_t>(other.resource)];
  // Two on one core never run at the same time, and whoever waits for a core slows nobody.
  if (slowed.resource == other.resource && its.capacity <= 1) return 0;
  const double others_share = running_share(other);
  // When is not known of both: those who take turns on c cores run less often at once than by chance. Of n that want
  // them all the time each waits for w = (n - c) / n, and two run together for c (c - 1) / (n (n - 1)).
  const double waits = 1 - (running_share(slowed) + others_share) / 2;
  if (waits <= 0) return a * others_share;
  std::vector<int32_t> all = own.cores;
  for (const int32_t core : its.cores)
    if (std::find(all.begin(), all.end(), core) == all.end()) all.push_back(core);
  const bool meet = slowed.resource == other.resource || all.size() < own.cores.size() + its.cores.size();
  const double cores = slowed.resource == other.resource ? its.capacity : static_cast<double>(all.size());
  return a * others_share * (meet ? std::max(0.0, cores - 1) / (cores - 1 + waits) : 1);
}

void Sweeper::sweep_shared(int32_t resource, const std::vector<Use>& uses) {
  std::vector<Event> events;
  std::vector<int32_t> left(trace_.operations.size(), 0);  // uses of each operation
  for (const Use& use : uses) {
    events.push_back({use.start_ns, use.operation, true});
    events.push_back({use.end_ns, use.operation, false});
    ++left[static_cast<size_t>(use.operation)];
  }
  sort_events(events);
  struct Active {
    int32_t operation;
    double lost = 0;         // of its time, to others
    std::vector<double> to;  // tenants
  };
  std::vector<Active> active, paused;  // paused: between two uses
  const auto find = [](std::vector<Active>& all, int32_t operation) {
    return std::find_if(all.begin(), all.end(), [operation](const Active& one) { return one.operation == operation; });
  };
  int64_t at = 0;
  const size_t tenants = trace_.tenants.size();
  for (const Event& event : events) {
    const auto dt = static_cast<double>(event.time_ns - at);
    if (active.size() > 1 && dt > 0) {
      for (Active& self : active) {
        const TenantOperation& slowed = trace_.operations[static_cast<size_t>(self.operation)];
        double sum = 0;
        for (const Active& other : active) {
          if (&other == &self) continue;
          const double a = beside(slowed, trace_.operations[static_cast<size_t>(other.operation)], resource);
          if (std::isnan(a))
            ++out_.unmeasured_pairs;
          else
            sum += a;
        }
        if (sum <= 0) continue;
        const double effective = trace_.saturation > 0 ? std::min(sum, trace_.saturation) : sum;
        const double lost = dt * effective / (1 + effective);
        self.lost += lost;
        for (const Active& other : active) {
          if (&other == &self) continue;
          const TenantOperation& neighbour = trace_.operations[static_cast<size_t>(other.operation)];
          const double a = beside(slowed, neighbour, resource);
          if (!std::isnan(a)) self.to[static_cast<size_t>(neighbour.tenant)] += lost * a / sum;
        }
      }
    }
    at = event.time_ns;
    if (event.begins) {
      if (const auto again = find(paused, event.entry); again != paused.end()) {
        active.push_back(std::move(*again));
        paused.erase(again);
      } else {
        active.push_back({event.entry, 0, std::vector<double>(tenants, 0)});
      }
      continue;
    }
    const auto done = find(active, event.entry);
    if (--left[static_cast<size_t>(event.entry)] > 0) {
      paused.push_back(std::move(*done));
      active.erase(done);
      continue;
    }
    const TenantOperation& operation = trace_.operations[static_cast<size_t>(event.entry)];
    // While it did not run for want of a core, nobody slowed it.
    const double ran = running_share(operation);
    for (size_t i = 0; i < tenants; ++i) put(event.entry, static_cast<int32_t>(i), resource, done->to[i] * ran);
    out_.intrinsic_ns[static_cast<size_t>(event.entry)] -= done->lost * ran;
    active.erase(done);
  }
}

// Run queues whose core sets meet are one.
void Sweeper::sweep_cores() {
  std::vector<uint8_t> done(trace_.resources.size(), 0);
  const auto meet = [](const TenantResource& a, const TenantResource& b) {
    return std::any_of(a.cores.begin(), a.cores.end(),
                       [&b](int32_t core) { return std::find(b.cores.begin(), b.cores.end(), core) != b.cores.end(); });
  };
  for (size_t i = 0; i < trace_.resources.size(); ++i) {
    if (done[i] || trace_.resources[i].kind != ResourceKind::kCores) continue;
    std::vector<int32_t> domain{static_cast<int32_t>(i)};
    done[i] = 1;
    for (size_t next = 0; next < domain.size(); ++next)
      for (size_t k = 0; k < trace_.resources.size(); ++k)
        if (!done[k] && trace_.resources[k].kind == ResourceKind::kCores &&
            meet(trace_.resources[static_cast<size_t>(domain[next])], trace_.resources[k])) {
          done[k] = 1;
          domain.push_back(static_cast<int32_t>(k));
        }
    sweep_core_domain(domain);
  }
}

void Sweeper::sweep_core_domain(const std::vector<int32_t>& resources) {
  const auto is_here = [&resources](int32_t resource) {
    return std::find(resources.begin(), resources.end(), resource) != resources.end();
  };
  // Whoever uses these cores, and how many at once; what of it waited for them is to be split among the others.
  struct User {
    int64_t start_ns, end_ns;
    int32_t by;
    int32_t resource;
    double cores;      // while it runs
    double waited_ns;  // in total, exact
    int32_t operation, stage;
  };
  std::vector<User> users;
  const auto cores_of = [](int64_t cpu_ns, double ran_ns) {
    if (cpu_ns < 0 || ran_ns <= 0) return 1.0;
    return std::clamp(static_cast<double>(cpu_ns) / ran_ns, 0.0, 4096.0);
  };
  for (size_t i = 0; i < trace_.operations.size(); ++i) {
    const TenantOperation& operation = trace_.operations[i];
    const bool on_cores = operation.resource != kNone && is_here(operation.resource);
    const int32_t cpu = trace_.tenants[static_cast<size_t>(operation.tenant)].cpu;
    if (!on_cores && !(cpu != kNone && is_here(cpu) && (operation.cpu_ns > 0 || operation.runnable_ns > 0))) continue;
    const bool is_outer =
        i + 1 < trace_.operations.size() && trace_.operations[i + 1].inside == static_cast<int32_t>(i);
    if (is_outer || operation.end_ns <= operation.start_ns) continue;
    const auto waited = static_cast<double>(operation.runnable_ns);
    const double ran = static_cast<double>(operation.end_ns - operation.start_ns) - waited;
    users.push_back({operation.start_ns, operation.end_ns, operation.tenant, on_cores ? operation.resource : cpu,
                     cores_of(operation.cpu_ns, ran), waited, static_cast<int32_t>(i), kNone});
  }
  for (size_t i = 0; i < trace_.stages.size(); ++i) {
    const TenantStage& stage = trace_.stages[i];
    const int32_t cpu = trace_.tenants[static_cast<size_t>(stage.tenant)].cpu;
    if (cpu == kNone || !is_here(cpu)) continue;
    int64_t left = stage.runnable_ns;
    for (int32_t k = stage.first_operation; k < stage.first_operation + stage.operation_count; ++k)
      left -= trace_.operations[static_cast<size_t>(k)].runnable_ns;
    if (left <= 0) continue;
    users.push_back({stage.start_ns, stage.end_ns, stage.tenant, cpu, 0, static_cast<double>(left), kNone,
                     static_cast<int32_t>(i)});
  }
  for (const OtherHolder& other : trace_.others)
    if (is_here(other.resource))
      users.push_back({other.start_ns, other.end_ns,
                       blamed(trace_, other.is_recorder ? Blamed::kRecorder : Blamed::kSystem), other.resource, 1, 0,
                       kNone, kNone});
  std::vector<Event> events;
  for (size_t i = 0; i < users.size(); ++i) {
    if (users[i].end_ns <= users[i].start_ns) continue;
    events.push_back({users[i].start_ns, static_cast<int32_t>(i), true});
    events.push_back({users[i].end_ns, static_cast<int32_t>(i), false});
  }
  sort_events(events);
  const size_t count = trace_.tenants.size() + kBlamedCount;
  struct Active {
    int32_t user;
    std::vector<double> crowded = {};  // by blamed one, while there were too few cores
    double crowded_ns = 0;             // for so long
  };
  std::vector<Active> active;
  int64_t at = 0;
  for (const Event& event : events) {
    const auto dt = static_cast<double>(event.time_ns - at);
    if (active.size() > 1 && dt > 0) {
      double wanted = 0;
      for (const Active& one : active) wanted += users[static_cast<size_t>(one.user)].cores;
      for (Active& self : active) {
        const User& user = users[static_cast<size_t>(self.user)];
        if (user.waited_ns <= 0) continue;
        const double own = user.cores, others = wanted - own;
        if (others <= 0) continue;
        const double capacity = trace_.resources[static_cast<size_t>(user.resource)].capacity;
        // Processor sharing: everyone gets capacity / wanted.
        const double density = std::max(0.0, 1 - capacity / std::max(wanted, 1e-9));
        if (density <= 0) continue;
        self.crowded_ns += dt;
        for (const Active& other : active) {
          if (&other == &self) continue;
          const User& beside = users[static_cast<size_t>(other.user)];
          self.crowded[static_cast<size_t>(beside.by)] += dt * density * beside.cores / others;
        }
      }
    }
    at = event.time_ns;
    if (event.begins) {
      active.push_back({event.entry});
      if (users[static_cast<size_t>(event.entry)].waited_ns > 0) active.back().crowded.assign(count, 0);
      continue;
    }
    const auto done =
        std::find_if(active.begin(), active.end(), [&event](const Active& one) { return one.user == event.entry; });
    const User& user = users[static_cast<size_t>(event.entry)];
    if (user.waited_ns > 0) {
      double sum = 0;
      for (const double ns : done->crowded) sum += ns;
      // Those who are known kept it waiting at most while they were more than the cores; the rest was somebody else.
      const double known = sum > 0 ? std::min(user.waited_ns, done->crowded_ns) : 0;
      if (!split_by_core_runs(user.operation, user.stage, user.resource, user.waited_ns)) {
        out_.estimated[static_cast<size_t>(user.resource)] = 1;
        for (size_t i = 0; i < count && known > 0; ++i)
          if (done->crowded[i] > 0)
            give_core_wait(user.operation, user.stage, static_cast<int32_t>(i), user.resource,
                           known * done->crowded[i] / sum);
        give_core_wait(user.operation, user.stage, blamed(trace_, Blamed::kUnknown), user.resource,
                       user.waited_ns - known);
      }
      if (user.operation != kNone) out_.intrinsic_ns[static_cast<size_t>(user.operation)] -= user.waited_ns;
    }
    active.erase(done);
  }
}

// Where the kernel's switches are recorded, who ran is known. False: they are not, or not of this time.
bool Sweeper::split_by_core_runs(int32_t operation, int32_t stage_number, int32_t resource, double waited_ns) {
  if (operation != kNone) stage_number = trace_.operations[static_cast<size_t>(operation)].stage;
  if (stage_number == kNone) return false;
  const TenantStage& stage = trace_.stages[static_cast<size_t>(stage_number)];
  if (!core_runs_.covers(stage.start_ns, stage.end_ns)) return false;
  std::vector<Interval> within;
  if (operation != kNone) {
    const TenantOperation& own = trace_.operations[static_cast<size_t>(operation)];
    within.emplace_back(own.start_ns, own.end_ns);
  } else {
    // What a stage waited for outside of its operations.
    int64_t at = stage.start_ns;
    for (int32_t i = stage.first_operation; i < stage.first_operation + stage.operation_count; ++i) {
      const TenantOperation& inner = trace_.operations[static_cast<size_t>(i)];
      if (inner.start_ns > at) within.emplace_back(at, inner.start_ns);
      at = std::max(at, inner.end_ns);
    }
    if (stage.end_ns > at) within.emplace_back(at, stage.end_ns);
  }
  const int32_t tid = trace_.lane_tids[static_cast<size_t>(stage.lane)];
  const std::vector<CoreWait> parts = core_runs_.split(tid, within, waited_ns, resource);
  if (parts.empty())  // the counter was read a little off the switches
    give_core_wait(operation, stage_number, blamed(trace_, Blamed::kUnknown), resource, waited_ns);
  const bool counts = trace_.frames[static_cast<size_t>(stage.frame)].counts &&
                      trace_.frames[static_cast<size_t>(stage.frame)].finished();
  for (const CoreWait& part : parts) {
    const Blamed other = part.is_idle ? Blamed::kIdle : part.is_recorder ? Blamed::kRecorder : Blamed::kSystem;
    const int32_t by = part.tenant != kNone ? part.tenant : blamed(trace_, other);
    give_core_wait(operation, stage_number, by, resource, part.ns);
    if (!counts) continue;
    if (by == blamed(trace_, Blamed::kSystem)) out_.programs[part.program] += part.ns;
    out_.beside_idle_ns[static_cast<size_t>(stage.tenant)] += part.beside_idle_ns;
  }
  return true;
}

void Sweeper::collect() {
  out_.first.assign(trace_.operations.size() + 1, 0);
  for (const Record& record : records_) ++out_.first[static_cast<size_t>(record.operation) + 1];
  for (size_t i = 1; i < out_.first.size(); ++i) out_.first[i] += out_.first[i - 1];
  std::vector<uint32_t> next(out_.first.begin(), out_.first.end() - 1);
  out_.cells.resize(records_.size());
  for (const Record& record : records_) out_.cells[next[static_cast<size_t>(record.operation)]++] = record.cell;
}

}  // namespace

std::vector<BlameCell> blame_wait(const TenantTrace& trace, const Servers& servers, int32_t number, int64_t from,
                                  int64_t to, int32_t* blocker) {
  const TenantOperation& operation = trace.operations[static_cast<size_t>(number)];
  const TenantResource& what = trace.resources[static_cast<size_t>(operation.resource)];
  const size_t capacity = servers.size() - 1;
  const int64_t band = noise_of_difference(trace);
  std::vector<BlameCell> cells;
  if (to <= from) return cells;
  const auto overlap = [&](const Holding& holding) {
    return std::max<int64_t>(0, std::min(to, holding.end_ns) - std::max(from, holding.start_ns));
  };
  const auto first_after = [&](const std::vector<Holding>& holdings) {
    return std::partition_point(holdings.begin(), holdings.end(),
                                [from](const Holding& holding) { return holding.end_ns <= from; });
  };
  // Where more held it than there are servers, some clock is wrong: nobody knows who did.
  int64_t contradicted = 0;
  for (auto at = first_after(servers[capacity]); at != servers[capacity].end() && at->start_ns < to; ++at)
    if (at->operation != number) contradicted += overlap(*at);
  const auto whole = static_cast<double>(to - from);
  const double believed = std::max(0.0, 1 - static_cast<double>(contradicted) / whole);
  const double each = believed / static_cast<double>(capacity);
  const int32_t system = blamed(trace, Blamed::kSystem);
  const int32_t nobody = blamed(trace, trace.lost_records > 0 ? Blamed::kUnknown : Blamed::kIdle);
  if (believed < 1) add_cell(cells, blamed(trace, Blamed::kUnknown), operation.resource, whole * (1 - believed));
  int64_t latest = std::numeric_limits<int64_t>::min();
  for (size_t i = 0; i < capacity; ++i) {
    int64_t at_ns = from;
    // Nobody held it; where a server takes time from one tenant to another, that is what it did.
    const auto give_gap = [&](int64_t until) {
      int64_t gap = until - at_ns;
      if (gap <= 0) return;
      if (what.switch_ns > 0) {
        const int64_t on_the_way = std::min(gap, what.switch_ns + band);
        add_cell(cells, system, operation.resource, static_cast<double>(on_the_way) * each);
        gap -= on_the_way;
      }
      add_cell(cells, nobody, operation.resource, static_cast<double>(gap) * each);
    };
    for (auto at = first_after(servers[i]); at != servers[i].end() && at->start_ns < to; ++at) {
      if (at->operation == number) continue;
      const int64_t start = std::max(at_ns, at->start_ns), end = std::min(to, at->end_ns);
      if (end <= start) continue;
      give_gap(start);
      add_cell(cells, at->by, operation.resource, static_cast<double>(end - start) * each);
      at_ns = end;
      if (blocker && at->end_ns > latest && at->operation != kNone) {
        latest = at->end_ns;
        *blocker = at->operation;
      }
    }
    give_gap(to);
  }
  return cells;
}

OperationBlame blame_operations(const TenantTrace& trace) {
  return Sweeper(trace).run();
}

}  // namespace strobe::analyze
