// Cores with a run queue each, as kernels have them: a thread that wakes up goes to an idle core, else to the one it
// ran on before, and shares that core with whoever is on it, although another core may have fewer. An idle core takes
// a thread from the fullest. So of three busy threads on two cores one runs at full speed and two at half: not each
// at two thirds.
//
// Kernels look for idle cores only now and then, and a core is not idle while it runs the thread that wakes up another
// one. With balances_at_once false the caller says when they look (balance), and a thread whose waker runs on the idle
// core stays on its own.
//
// Threads of a core share it evenly, or, with turns, run one after the other: the first one runs until its turn is
// over, which the caller says (end_turn). A thread that wakes up takes the core from it, unless it has had more than
// its share of the core lately. Where a worker of several threads, or work that does not fill a core, is among them,
// they share evenly all the same.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

namespace strobe::analyze {

// Who joins a run queue.
struct Joining {
  int32_t waker = -1;             // the core of the thread that wakes it up; -1: none
  bool stays_with_waker = false;  // there, whoever is on it
  bool goes_on = false;           // it had left at this very instant: it keeps its place
};

class RunQueues {
 public:
  static constexpr double kNoTurn = std::numeric_limits<double>::infinity();

  // most_lag_ns: with turns, how much more or less than its share of a core a thread may be remembered to have had; 0:
  // cores are shared evenly.
  explicit RunQueues(size_t cores, bool balances_at_once = true, double most_lag_ns = 0)
      : cores_(std::max<size_t>(1, cores)), balances_at_once_(balances_at_once), most_lag_ns_(most_lag_ns) {}

  // Times in ns, never less than those before. wanted: cores that the work of this worker would use by itself; more
  // than one: so many threads.
  void join(int32_t worker, double wanted, double now, const Joining& how = {}) {
    const auto threads = static_cast<size_t>(std::clamp(std::lround(wanted), 1L, 4096L));
    const double each = wanted / static_cast<double>(threads);
    for (size_t i = 0; i < threads; ++i) {
      Thread thread{worker, each, threads == 1 && each >= kBusy && each <= 2 - kBusy};
      const bool keeps_place = takes_turns() && how.goes_on && i == 0 && left_.worker == worker;
      size_t number = left_.core;
      if (!keeps_place) number = how.waker >= 0 && i == 0 ? pick_woken(worker, how) : pick(worker);
      Core& core = cores_[number];
      settle(core, now);
      if (keeps_place) {
        thread.used_ns = left_.used_ns;
        core.threads.insert(left_.was_first ? core.threads.begin() : core.threads.end(), thread);
        if (left_.was_first) core.turn_end = left_.turn_end;
      } else {
        enter(core, thread, now);
      }
      remember(worker, number);
    }
    left_.worker = -1;
  }

  void leave(int32_t worker, double now) {
    left_.worker = -1;
    for (size_t i = 0; i < cores_.size(); ++i) {
      Core& core = cores_[i];
      const auto found = std::find_if(core.threads.begin(), core.threads.end(),
                                      [worker](const Thread& thread) { return thread.worker == worker; });
      if (found == core.threads.end()) continue;
      settle(core, now);
      const bool was_first = found == core.threads.begin();
      left_ = {worker, i, was_first, core.turn_end, found->used_ns};
      set_lag(worker, mean_used(core) - found->used_ns, now);
      std::erase_if(core.threads, [worker](const Thread& thread) { return thread.worker == worker; });
      if (was_first) core.turn_end = kNoTurn;
    }
    if (balances_at_once_) balance(now);
  }

  bool is_busy(size_t core) const { return core < cores_.size() && !cores_[core].threads.empty(); }
  // The core that a worker is on, or was on last; of several threads that of the last one. cores(): it was on none.
  size_t core_of(int32_t worker) const {
    const auto number = static_cast<size_t>(worker);
    return number < last_core_.size() && last_core_[number] >= 0 ? static_cast<size_t>(last_core_[number])
                                                                 : cores_.size();
  }
  size_t cores() const { return cores_.size(); }
  bool is_uneven() const {
    const auto [least, most] = std::minmax_element(cores_.begin(), cores_.end(), shorter);
    return most->threads.size() >= least->threads.size() + 2;
  }
  // Emptier cores take threads from fuller ones.
  void balance(double now) {
    for (;;) {
      const auto [least, most] = std::minmax_element(cores_.begin(), cores_.end(), shorter);
      if (most->threads.size() < least->threads.size() + 2) return;
      settle(*least, now);
      settle(*most, now);
      Thread taken = most->threads.back();
      set_lag(taken.worker, mean_used(*most) - taken.used_ns, now);
      most->threads.pop_back();
      taken.used_ns = mean_used(*least) - lag(taken.worker, now);
      least->threads.push_back(taken);
      remember(taken.worker, static_cast<size_t>(least - cores_.begin()));
    }
  }

  // Whether others wait on a core for the turn of its first thread to be over.
  bool has_turn(size_t core) const { return cores_[core].threads.size() > 1 && runs_in_turns(cores_[core]); }
  // When that is; kNoTurn: nobody has said so.
  double turn_end(size_t core) const { return cores_[core].turn_end; }
  void set_turn_end(size_t core, double at) { cores_[core].turn_end = at; }
  // The turn is over: it is the turn of who has had least, where somebody waits.
  void end_turn(size_t number, double now) {
    Core& core = cores_[number];
    core.turn_end = kNoTurn;
    if (!has_turn(number)) return;
    settle(core, now);
    std::vector<Thread>& threads = core.threads;
    std::rotate(threads.begin(), threads.begin() + 1, threads.end());
    const auto next = std::min_element(threads.begin(), threads.end() - 1,
                                       [](const Thread& a, const Thread& b) { return a.used_ns < b.used_ns; });
    std::rotate(threads.begin(), next, next + 1);
  }

  // The share of its speed that a worker gets: that of its slowest thread, for which the others wait.
  double speed(int32_t worker) const {
    double speed = 1;
    for (const Core& core : cores_) {
      double wanted = 0;
      bool is_here = false;
      for (const Thread& thread : core.threads) {
        wanted += thread.wanted;
        is_here |= thread.worker == worker;
      }
      if (!is_here) continue;
      if (runs_in_turns(core))
        speed = std::min(speed, core.threads.front().worker == worker ? 1.0 : 0.0);
      else if (wanted > 1)
        speed = std::min(speed, 1 / wanted);
    }
    return speed;
  }

 private:
  static constexpr double kBusy = 0.9;  // of a core: who uses as much fills it

  struct Thread {
    int32_t worker;
    double wanted;    // of a core
    bool fills_core;  // and is its worker's only one
    double used_ns = 0;
  };
  struct Core {
    std::vector<Thread> threads;  // with turns: who runs first
    double turn_end = kNoTurn;
    double settled_ns = 0;  // until then used_ns is counted
  };
  struct Lag {
    double ns = 0, at = 0;
  };
  // Who left a core last of all, and what place it had there.
  struct Left {
    int32_t worker = -1;
    size_t core = 0;
    bool was_first = false;
    double turn_end = kNoTurn, used_ns = 0;
  };

  bool takes_turns() const { return most_lag_ns_ > 0; }
  static bool shorter(const Core& a, const Core& b) { return a.threads.size() < b.threads.size(); }
  bool runs_in_turns(const Core& core) const {
    return takes_turns() && std::all_of(core.threads.begin(), core.threads.end(),
                                        [](const Thread& thread) { return thread.fills_core; });
  }
  void settle(Core& core, double now) const {
    const double passed = now - core.settled_ns;
    core.settled_ns = now;
    if (core.threads.empty() || passed <= 0 || !takes_turns()) return;
    if (runs_in_turns(core)) {
      core.threads.front().used_ns += passed;
      return;
    }
    for (Thread& thread : core.threads) thread.used_ns += passed / static_cast<double>(core.threads.size());
  }
  static double mean_used(const Core& core) {
    double sum = 0;
    for (const Thread& thread : core.threads) sum += thread.used_ns;
    return core.threads.empty() ? 0 : sum / static_cast<double>(core.threads.size());
  }
  void enter(Core& core, Thread thread, double now) {
    thread.used_ns = mean_used(core) - lag(thread.worker, now);
    const bool takes_core =
        takes_turns() && (core.threads.empty() || thread.used_ns <= core.threads.front().used_ns || !thread.fills_core);
    core.threads.insert(takes_core ? core.threads.begin() : core.threads.end(), thread);
    if (takes_core) core.turn_end = kNoTurn;
  }
  // How much less than the mean of its core a
  // worker had when it left; what it had more is forgotten as time passes, for the others have had it since.
  double lag(int32_t worker, double now) const {
    const auto number = static_cast<size_t>(worker);
    if (number >= lag_.size()) return 0;
    const Lag& one = lag_[number];
    return one.ns < 0 ? std::min(0.0, one.ns + now - one.at) : one.ns;
  }
  void set_lag(int32_t worker, double ns, double now) {
    if (!takes_turns()) return;
    if (static_cast<size_t>(worker) >= lag_.size()) lag_.resize(static_cast<size_t>(worker) + 1);
    lag_[static_cast<size_t>(worker)] = {std::clamp(ns, -most_lag_ns_, most_lag_ns_), now};
  }
  size_t pick_woken(int32_t worker, const Joining& how) const {
    const size_t before = core_of(worker);
    const size_t waker = std::min(static_cast<size_t>(how.waker), cores_.size() - 1);
    if (how.stays_with_waker) return waker;
    if (before == cores_.size()) return is_busy(waker) ? pick(worker) : waker;
    if (!is_busy(before)) return is_busy(waker) ? before : waker;
    for (size_t core = 0; core < cores_.size(); ++core)
      if (core != waker && !is_busy(core)) return core;
    return before;
  }
  size_t pick(int32_t worker) const {
    const size_t before = core_of(worker);
    if (before < cores_.size() && cores_[before].threads.empty()) return before;
    const auto least = std::min_element(cores_.begin(), cores_.end(), shorter);
    if (least->threads.empty() || before == cores_.size() || cores_[before].threads.size() >= least->threads.size() + 2)
      return static_cast<size_t>(least - cores_.begin());
    return before;
  }
  void remember(int32_t worker, size_t core) {
    if (static_cast<size_t>(worker) >= last_core_.size()) last_core_.resize(static_cast<size_t>(worker) + 1, -1);
    last_core_[static_cast<size_t>(worker)] = static_cast<int32_t>(core);
  }

  std::vector<Core> cores_;
  bool balances_at_once_;
  double most_lag_ns_;
  Left left_;
  std::vector<int32_t> last_core_;  // by worker
  std::vector<Lag> lag_;            // by worker
};

}  // namespace strobe::analyze
