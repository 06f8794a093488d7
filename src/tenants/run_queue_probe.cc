#include "tenants/run_queue_probe.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <deque>
#include <mutex>
#include <random>
#include <semaphore>
#include <string>
#include <thread>
#include <utility>

#include "base/statistics.h"
#include "collect/core_set.h"
#include "tenants/board.h"
#include "tenants/spin_task.h"

namespace strobe::tenants {
namespace {

constexpr int64_t kFewRounds = 25;  // of work, between two looks at the clock
void work_a_little() {
  spin_rounds(SpinWork::Kind::kCompute, kFewRounds);
}
void work_for(std::chrono::microseconds time) {
  const auto until = std::chrono::steady_clock::now() + time;
  while (std::chrono::steady_clock::now() < until) work_a_little();
}

// In equal steps from 0 to 1.
std::vector<double> quantiles_of(std::vector<double> values) {
  constexpr int kSteps = 20;
  std::sort(values.begin(), values.end());
  std::vector<double> made;
  for (int i = 0; i <= kSteps && !values.empty(); ++i)
    made.push_back(quantile_sorted(values, static_cast<double>(i) / kSteps));
  return made;
}

// A thread that is busy for as long as it lives, on one core until it may use others.
class BusyThread {
 public:
  explicit BusyThread(int core)
      : home_(core), thread_([this] {
          bound_ = collect::bind_to_cores(std::to_string(home_));
          id_ = ::gettid();
          while (!done_) {
            work_a_little();
            if (left_ns_ == 0 && ::sched_getcpu() != home_) left_ns_ = monotonic_ns();
          }
        }) {
    while (id_ == 0) std::this_thread::yield();
  }
  ~BusyThread() {
    done_ = true;
    thread_.join();
  }
  BusyThread(const BusyThread&) = delete;
  BusyThread& operator=(const BusyThread&) = delete;

  const Result<void>& bound() const { return bound_; }
  void may_use(std::initializer_list<int> cores) const {
    cpu_set_t set;
    CPU_ZERO(&set);
    for (const int core : cores) CPU_SET(static_cast<size_t>(core), &set);
    ::sched_setaffinity(id_, sizeof set, &set);
  }
  void forget() { left_ns_ = 0; }
  int64_t left_ns() const { return left_ns_; }  // when it left its core; 0: it did not

 private:
  const int home_;
  std::atomic<bool> done_{false};
  std::atomic<pid_t> id_{0};
  std::atomic<int64_t> left_ns_{0};
  Result<void> bound_;
  std::thread thread_;
};

// Works in spells, as tenants do, and tells when: a kernel leaves a thread its core for a while after it woke up.
class SpellThread {
 public:
  explicit SpellThread(int core)
      : thread_([this, core] {
          bound_ = collect::bind_to_cores(std::to_string(core));
          constexpr std::chrono::milliseconds kSpell(10), kRest(3);
          is_up_ = true;
          while (!done_) {
            began_ns_ = monotonic_ns();
            work_for(kSpell);
            ended_ns_ = monotonic_ns();
            std::this_thread::sleep_for(kRest);
          }
        }) {
    while (!is_up_) std::this_thread::yield();
  }
  ~SpellThread() {
    done_ = true;
    thread_.join();
  }
  SpellThread(const SpellThread&) = delete;
  SpellThread& operator=(const SpellThread&) = delete;
  const Result<void>& bound() const { return bound_; }
  // At a time in the latest spell; asked soon after it.
  bool was_busy(int64_t ns) const { return began_ns_ <= ns && (ended_ns_ < began_ns_ || ended_ns_ > ns); }

 private:
  std::atomic<bool> done_{false}, is_up_{false};
  std::atomic<int64_t> began_ns_{0}, ended_ns_{0};
  Result<void> bound_;
  std::thread thread_;
};

// A thread that sleeps until drawn times on a core on which another one works: how late it is, in ms, beyond what it is
// (in the median) where nobody else is.
Result<std::vector<double>> wake_ups(const RunQueueProbeOptions& options) {
  std::vector<double> late, idle;
  SpellThread spells(options.cores[0]);
  STROBE_TRY(Result<void>(spells.bound()));
  Result<void> bound;
  std::thread sleeper([&] {
    bound = collect::bind_to_cores(std::to_string(options.cores[0]));
    constexpr double kMeanNs = 8e6;
    std::mt19937 random(1);
    std::exponential_distribution<double> apart(1 / kMeanNs);
    for (int i = 0; bound && i < options.wake_ups && !options.stopped(); ++i) {
      const int64_t due = monotonic_ns() + static_cast<int64_t>(apart(random));
      std::this_thread::sleep_until(std::chrono::steady_clock::time_point(std::chrono::nanoseconds(due)));
      (spells.was_busy(due) ? late : idle).push_back(static_cast<double>(monotonic_ns() - due) / 1e6);
    }
  });
  sleeper.join();
  STROBE_TRY(std::move(bound));
  const double usual = idle.empty() ? 0 : quantile(std::move(idle), 0.5);
  for (double& ms : late) ms = std::max(0.0, ms - usual);
  return late;
}

// Two busy threads on one core, of which one could run on the other core, where a third thread, which let them, has
// just gone to sleep: when one of them is there, in ms.
Result<std::vector<double>> balances(const RunQueueProbeOptions& options) {
  constexpr std::chrono::milliseconds kLongest(40);
  BusyThread a(options.cores[0]), b(options.cores[0]);
  STROBE_TRY(Result<void>(a.bound()));
  STROBE_TRY(Result<void>(b.bound()));
  std::vector<double> taken;
  Result<void> bound;
  std::thread waker([&] {
    bound = collect::bind_to_cores(std::to_string(options.cores[1]));
    std::mt19937 random(2);
    for (int i = 0; bound && i < options.balances && !options.stopped(); ++i) {
      for (const BusyThread* thread : {&a, &b}) thread->may_use({options.cores[0]});
      std::this_thread::sleep_for(std::chrono::microseconds(10'000 + random() % 4000));
      for (BusyThread* thread : {&a, &b}) thread->forget();
      const int64_t begin = monotonic_ns();
      for (const BusyThread* thread : {&a, &b}) thread->may_use({options.cores[0], options.cores[1]});
      std::this_thread::sleep_for(kLongest);
      double ms = static_cast<double>(kLongest.count());
      for (const BusyThread* thread : {&a, &b})
        if (thread->left_ns() > begin) ms = std::min(ms, static_cast<double>(thread->left_ns() - begin) / 1e6);
      taken.push_back(ms);
    }
  });
  waker.join();
  STROBE_TRY(std::move(bound));
  return taken;
}

// Two threads on one core: for how long one that wakes up keeps it from the one that is always at work, in ms.
Result<std::vector<double>> turns(const RunQueueProbeOptions& options) {
  constexpr std::chrono::milliseconds kLongest(30);
  constexpr int64_t kAway = 100'000;  // ns for which a thread at work is not seen while it is not on its core
  std::atomic<bool> done{false}, going{false};
  std::vector<std::pair<int64_t, int64_t>> away;  // of the busy one
  Result<void> bound, bound_too;
  std::thread busy([&] {
    bound = collect::bind_to_cores(std::to_string(options.cores[0]));
    going = true;
    for (int64_t before = monotonic_ns(); !done;) {
      work_a_little();
      const int64_t now = monotonic_ns();
      if (now - before > kAway) away.emplace_back(before, now);
      before = now;
    }
  });
  std::vector<int64_t> began;
  std::thread sleeper([&] {
    bound_too = collect::bind_to_cores(std::to_string(options.cores[0]));
    while (!going) std::this_thread::yield();
    std::mt19937 random(3);
    for (int i = 0; bound_too && i < options.turns && !options.stopped(); ++i) {
      std::this_thread::sleep_for(std::chrono::microseconds(6000 + random() % 8000));
      began.push_back(monotonic_ns());
      // Until the other one was there again: it has had its turn.
      const auto until = std::chrono::steady_clock::now() + kLongest;
      for (int64_t before = monotonic_ns(); std::chrono::steady_clock::now() < until;) {
        work_a_little();
        const int64_t now = monotonic_ns();
        if (now - before > kAway) break;
        before = now;
      }
    }
  });
  sleeper.join();
  done = true;
  busy.join();
  STROBE_TRY(std::move(bound));
  STROBE_TRY(std::move(bound_too));
  std::vector<double> found;
  size_t next = 0;
  for (const int64_t at : began) {
    while (next < away.size() && away[next].second <= at) ++next;
    if (next < away.size() && away[next].first <= at)
      found.push_back(static_cast<double>(away[next].second - away[next].first) / 1e6);
  }
  return found;
}

// Tenants in small: a source each, which sleeps and wakes up a worker, and that works. On a device for one they wait
// for each other.
class SmallTenants {
 public:
  SmallTenants(const RunQueueProbeOptions& options, bool share_device)
      : options_(options), share_device_(share_device) {
    std::vector<std::thread> threads;
    for (size_t me = 0; me < kTenants; ++me) {
      threads.emplace_back([this, me] { work(me); });
      threads.emplace_back([this, me] { send(me); });
    }
    for (std::thread& thread : threads) thread.join();
  }

  Result<void> bound() const {
    for (const Tenant& tenant : tenants_) {
      STROBE_TRY(Result<void>(tenant.source_bound));
      STROBE_TRY(Result<void>(tenant.worker_bound));
    }
    return {};
  }

  // Of the hand-overs of the device to somebody who waited for it those after which whoever handed it over had to wait
  // for the rest of its own work.
  std::optional<double> hand_overs_that_stay() const {
    int all = 0, stay = 0;
    for (const Tenant& tenant : tenants_)
      for (const int64_t at : tenant.handed_over) {
        ++all;
        stay += is_away(tenant, at) ? 1 : 0;
      }
    return all == 0 ? std::nullopt : std::optional(static_cast<double>(stay) / all);
  }

  // Of the frames whose source woke up on a core on which another tenant worked those that cost it its core.
  std::optional<double> wake_ups_that_stay() const {
    int all = 0, stay = 0;
    for (const Tenant& tenant : tenants_)
      for (const auto& [other, at] : tenant.came_between) {
        ++all;
        stay += is_away(tenants_[other], at) ? 1 : 0;
      }
    return all == 0 ? std::nullopt : std::optional(static_cast<double>(stay) / all);
  }

 private:
  static constexpr size_t kTenants = 3;
  static constexpr int64_t kTaken = 300'000;  // ns: who is away for so long has lost its core

  struct Tenant {
    std::counting_semaphore<> frames{0}, device{0};
    std::atomic<int> core{-1};  // on which its worker is at work; -1: it is not
    std::vector<std::pair<int64_t, int64_t>> away;
    std::vector<int64_t> handed_over;
    std::vector<std::pair<size_t, int64_t>> came_between;  // whose work
    Result<void> source_bound, worker_bound;
  };

  static bool is_away(const Tenant& tenant, int64_t at) {
    const auto next =
        std::find_if(tenant.away.begin(), tenant.away.end(), [at](const auto& from_to) { return from_to.second > at; });
    return next != tenant.away.end() && next->first <= at + kTaken / 2;
  }
  std::string cores() const { return std::to_string(options_.cores[0]) + "," + std::to_string(options_.cores[1]); }

  // Counts work, not time: what is lost is lost.
  void run(Tenant& tenant, std::chrono::microseconds time, int64_t since) {
    int64_t left = std::chrono::nanoseconds(time).count();
    for (int64_t before = since; left > 0;) {
      tenant.core = ::sched_getcpu();
      work_a_little();
      const int64_t now = monotonic_ns();
      if (now - before > kTaken)
        tenant.away.emplace_back(before, now);
      else
        left -= now - before;
      before = now;
    }
    tenant.core = -1;
  }

  void work(size_t me) {
    constexpr std::chrono::microseconds kPrepare(500), kInfer(6000), kRest(40);
    Tenant& tenant = tenants_[me];
    tenant.worker_bound = collect::bind_to_cores(cores());
    for (tenant.frames.acquire(); !done_; tenant.frames.acquire()) {
      run(tenant, kPrepare, monotonic_ns());
      if (share_device_ && !take_device(me)) tenant.device.acquire();
      run(tenant, kInfer, monotonic_ns());
      // Whoever is woken up may have the core at once.
      const int64_t done = monotonic_ns();
      if (share_device_ && give_device()) tenant.handed_over.push_back(done);
      run(tenant, kRest, done);
    }
  }

  void send(size_t me) {
    constexpr std::array<int, kTenants> kPeriods = {27'300, 35'700, 49'300};  // us, not commensurate
    Tenant& tenant = tenants_[me];
    tenant.source_bound = collect::bind_to_cores(cores());
    auto due = std::chrono::steady_clock::now();
    const auto end = due + std::chrono::milliseconds(std::lround(1000 * options_.tenants_s));
    while (due < end && tenant.source_bound && !options_.stopped()) {
      due += std::chrono::microseconds(kPeriods[me]);
      std::this_thread::sleep_until(due);
      for (size_t other = 0; other < kTenants; ++other)
        if (other != me && tenants_[other].core == ::sched_getcpu())
          tenant.came_between.emplace_back(other, monotonic_ns());
      tenant.frames.release();
    }
    if (++sources_done_ < kTenants) return;
    done_ = true;
    for (Tenant& one : tenants_) one.frames.release();
  }

  // False: it will be handed over.
  bool take_device(size_t me) {
    const std::scoped_lock lock(mutex_);
    if (is_held_) waiting_.push_back(me);
    return !std::exchange(is_held_, true);
  }
  // Whether somebody waited for it.
  bool give_device() {
    std::optional<size_t> next;
    {
      const std::scoped_lock lock(mutex_);
      is_held_ = !waiting_.empty();
      if (is_held_) next = waiting_.front();
      if (is_held_) waiting_.pop_front();
    }
    if (next) tenants_[*next].device.release();
    return next.has_value();
  }

  const RunQueueProbeOptions& options_;
  const bool share_device_;
  std::array<Tenant, kTenants> tenants_;
  std::mutex mutex_;
  bool is_held_ = false;
  std::deque<size_t> waiting_;
  std::atomic<size_t> sources_done_{0};
  std::atomic<bool> done_{false};
};

}  // namespace

Result<RunQueueProbe> probe_run_queues(const RunQueueProbeOptions& options) {
  if (options.cores.size() < 2) return unsupported("run queues are measured on two cores, and there is one");
  RunQueueProbe found;
  const auto quantiles = [&](std::vector<double>& to, int count, auto measure) -> Result<void> {
    if (count <= 0) return {};
    STROBE_ASSIGN(std::vector<double> values, measure(options));
    if (options.stopped()) return Error(ErrorKind::kInterrupted, "interrupted");
    to = quantiles_of(std::move(values));
    return {};
  };
  STROBE_TRY(quantiles(found.wake_up_ms, options.wake_ups, wake_ups));
  STROBE_TRY(quantiles(found.balance_ms, options.balances, balances));
  STROBE_TRY(quantiles(found.turn_ms, options.turns, turns));
  if (options.tenants_s > 0) {
    const SmallTenants in_turn(options, true), at_once(options, false);
    STROBE_TRY(in_turn.bound());
    STROBE_TRY(at_once.bound());
    if (options.stopped()) return Error(ErrorKind::kInterrupted, "interrupted");
    found.hand_over_stays = in_turn.hand_overs_that_stay();
    found.wake_up_stays = at_once.wake_ups_that_stay();
  }
  return found;
}

}  // namespace strobe::tenants
