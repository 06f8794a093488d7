#include "tenants/device_arbiter.h"

#include <fmt/format.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <bitset>
#include <cerrno>
#include <ctime>

namespace strobe::tenants {

struct DeviceArbiter::State {
  using Called = std::bitset<kMostTenants>;  // tenants that sleep and may go on
  struct Slot {
    std::atomic<uint32_t> called{0};  // the word that the tenant sleeps on: 0 while it waits
    bool waiting = false, holding = false;
    uint64_t ticket = 0;  // order of asking; kept by who gives way
    Claim claim;
  };
  pthread_mutex_t mutex;
  Policy policy = Policy::kConcurrent;
  size_t tenants = 0, servers = 1, holders = 0;
  size_t last_served = 0;  // of round robin
  uint64_t next_ticket = 1;
  Slot slots[kMostTenants];

  // Whether `a` goes before `b` (another tenant that waits, too).
  bool goes_before(size_t a, size_t b) const {
    const Slot &one = slots[a], &other = slots[b];
    switch (policy) {
      case Policy::kPriority:
      case Policy::kPriorityPreemptive:
        if (one.claim.priority != other.claim.priority) return one.claim.priority > other.claim.priority;
        break;
      case Policy::kEdf:
        if (one.claim.deadline_ns != other.claim.deadline_ns) return one.claim.deadline_ns < other.claim.deadline_ns;
        break;
      case Policy::kRoundRobin:
        return turns_until(a) < turns_until(b);
      default:
        break;
    }
    return one.ticket < other.ticket;
  }
  size_t turns_until(size_t tenant) const { return (tenant + tenants - last_served - 1) % tenants; }

  // The waiting tenant that goes first; `tenants` when nobody waits.
  size_t first() const {
    size_t best = tenants;
    for (size_t i = 0; i < tenants; ++i)
      if (slots[i].waiting && (best == tenants || goes_before(i, best))) best = i;
    return best;
  }

  // Not under the lock: whoever is woken may take the core from the one that wakes it, and the others would wait for
  // that.
  void wake(const Called& tenants_called) {
    for (size_t i = 0; i < tenants; ++i)
      if (tenants_called[i]) ::syscall(SYS_futex, &slots[i].called, FUTEX_WAKE, 1, nullptr, nullptr, 0);
  }
  void give(size_t tenant) {
    slots[tenant].waiting = false;
    slots[tenant].holding = true;
    ++holders;
    last_served = tenant;
  }
  // Free servers go to those who wait. Of a plain lock the first one is only woken: it takes it if it is still free.
  // Returns who is to be woken.
  Called hand_out() {
    Called called;
    while (holders < servers) {
      const size_t next = first();
      if (next == tenants) break;
      if (policy != Policy::kExclusive) give(next);
      slots[next].called.store(1, std::memory_order_release);
      called.set(next);
      if (policy == Policy::kExclusive) break;
    }
    return called;
  }
};

namespace {

class Lock {
 public:
  explicit Lock(pthread_mutex_t& mutex) : mutex_(mutex) {
    // Its holder died inside: every change of the state leaves it usable, and forget() follows.
    if (::pthread_mutex_lock(&mutex_) == EOWNERDEAD) ::pthread_mutex_consistent(&mutex_);
  }
  ~Lock() { ::pthread_mutex_unlock(&mutex_); }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

 private:
  pthread_mutex_t& mutex_;
};

void sleep_while_zero(std::atomic<uint32_t>& word) {
  while (word.load(std::memory_order_acquire) == 0) ::syscall(SYS_futex, &word, FUTEX_WAIT, 0, nullptr, nullptr, 0);
}

}  // namespace

Result<DeviceArbiter> DeviceArbiter::create(Policy policy, size_t tenants, size_t servers) {
  if (tenants > kMostTenants) return usage_error(fmt::format("{} tenants: at most {}", tenants, kMostTenants));
  STROBE_ASSIGN(SharedPages pages, SharedPages::map(sizeof(State)));
  State* state = new (pages.data()) State;
  pthread_mutexattr_t attributes;
  ::pthread_mutexattr_init(&attributes);
  ::pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
  ::pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
  ::pthread_mutex_init(&state->mutex, &attributes);
  ::pthread_mutexattr_destroy(&attributes);
  state->policy = policy;
  state->tenants = tenants;
  state->servers = servers;
  state->last_served = tenants == 0 ? 0 : tenants - 1;  // so that the first tenant is the first in turn
  return DeviceArbiter(std::move(pages));
}

Policy DeviceArbiter::policy() const {
  return state().policy;
}

void DeviceArbiter::acquire(size_t tenant, const Claim& claim) {
  State& all = state();
  if (all.policy == Policy::kConcurrent) return;
  State::Slot& own = all.slots[tenant];
  for (bool first_try = true;; first_try = false) {
    {
      const Lock lock(all.mutex);
      if (first_try) {
        own.ticket = all.next_ticket++;
        own.claim = claim;
      }
      own.called.store(0, std::memory_order_relaxed);
      // Of a plain lock whoever comes while it is free has it; else only where nobody stands before.
      const bool free = all.holders < all.servers;
      if (free && (all.policy == Policy::kExclusive || all.first() == all.tenants)) {
        all.give(tenant);
        return;
      }
      own.waiting = true;
    }
    sleep_while_zero(own.called);
    if (all.policy != Policy::kExclusive) return;
  }
}

void DeviceArbiter::release(size_t tenant) {
  State& all = state();
  if (all.policy == Policy::kConcurrent) return;
  State::Called called;
  {
    const Lock lock(all.mutex);
    State::Slot& own = all.slots[tenant];
    if (!own.holding) return;
    own.holding = false;
    --all.holders;
    called = all.hand_out();
  }
  all.wake(called);
}

bool DeviceArbiter::give_way(size_t tenant, const std::function<void()>& finish) {
  State& all = state();
  if (all.policy != Policy::kPriorityPreemptive) return false;
  State::Slot& own = all.slots[tenant];
  const auto wanted = [&] {
    const size_t next = all.first();
    return own.holding && next != all.tenants && all.slots[next].claim.priority > own.claim.priority;
  };
  if (finish) {
    {
      const Lock lock(all.mutex);
      if (!wanted()) return false;
    }
    finish();  // without the lock: others ask and release meanwhile
  }
  State::Called called;
  {
    const Lock lock(all.mutex);
    if (!wanted()) return false;
    own.called.store(0, std::memory_order_relaxed);
    own.holding = false;
    own.waiting = true;
    --all.holders;
    called = all.hand_out();
  }
  all.wake(called);
  sleep_while_zero(own.called);
  return true;
}

void DeviceArbiter::forget(size_t tenant) {
  State& all = state();
  State::Called called;
  {
    const Lock lock(all.mutex);
    State::Slot& gone = all.slots[tenant];
    gone.waiting = false;
    if (gone.holding) {
      gone.holding = false;
      --all.holders;
    }
    all.hand_out();
    // Whom the tenant that is gone had called, and died before waking it, too.
    for (size_t i = 0; i < all.tenants; ++i) called[i] = all.slots[i].called.load(std::memory_order_relaxed) != 0;
  }
  all.wake(called);
}

size_t DeviceArbiter::waiting() const {
  State& all = state();
  const Lock lock(all.mutex);
  size_t count = 0;
  for (size_t i = 0; i < all.tenants; ++i) count += all.slots[i].waiting ? 1 : 0;
  return count;
}

}  // namespace strobe::tenants
