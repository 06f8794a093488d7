// Cores with a run queue each, as kernels have them: a thread that wakes up goes to an idle core, else to the one it
// ran on before, and shares that core with whoever is on it, although another core may have fewer. An idle core takes
// a thread from the fullest. So of three busy threads on two cores one runs at full speed and two at half: not each
// at two thirds.
//
// Kernels look for idle cores only now and then, and a core is not idle while it runs the thread that wakes up another
// one. With balances_at_once false the caller says when they look (balance), and a thread whose waker runs on the idle
// core stays on its own.
//
// Threads of a core share it evenly, or, with takes_turns, one after the other: the first runs, a thread that wakes up
// goes before it, and the caller says when a turn is over (end_turn). Where a worker of several threads, or one that
// leaves its core at times, is among them, they share evenly all the same.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

namespace strobe::analyze {

// Who joins a run queue.
struct Joining {
  int32_t waker = -1;             // the core of the thread that wakes it up; -1: none
  bool stays_with_waker = false;  // there, whoever is on it
  bool goes_on = false;           // it had left at this very instant: its turn goes on
};

class RunQueues {
 public:
  explicit RunQueues(size_t cores, bool balances_at_once = true, bool takes_turns = false)
      : cores_(std::max<size_t>(1, cores)), balances_at_once_(balances_at_once), takes_turns_(takes_turns) {}

  // wanted: cores that the work of this worker would use by itself; more than one: so many threads.
  void join(int32_t worker, double wanted, const Joining& how = {}) {
    const auto threads = static_cast<size_t>(std::clamp(std::lround(wanted), 1L, 4096L));
    for (size_t i = 0; i < threads; ++i) {
      const Thread thread{worker, wanted / static_cast<double>(threads), threads == 1};
      if (takes_turns_ && how.goes_on && i == 0 && left_.worker == worker) {
        Core& core = cores_[left_.core];
        core.threads.insert(core.threads.begin(), thread);
        core.turn = left_.turn;
        remember(worker, left_.core);
        continue;
      }
      const size_t number = how.waker >= 0 && i == 0
                                ? pick_woken(worker, static_cast<size_t>(how.waker), how.stays_with_waker)
                                : pick(worker);
      Core& core = cores_[number];
      if (takes_turns_) {
        core.threads.insert(core.threads.begin(), thread);
        core.turn = ++turns_;
      } else {
        core.threads.push_back(thread);
      }
      remember(worker, number);
    }
    left_.worker = -1;
  }

  void leave(int32_t worker) {
    left_.worker = -1;
    for (size_t i = 0; i < cores_.size(); ++i) {
      Core& core = cores_[i];
      if (core.threads.empty()) continue;
      const bool was_first = core.threads.front().worker == worker;
      if (was_first) left_ = {worker, i, core.turn};
      std::erase_if(core.threads, [worker](const Thread& thread) { return thread.worker == worker; });
      if (was_first) core.turn = ++turns_;
    }
    if (balances_at_once_) balance();
  }

  bool is_busy(size_t core) const { return core < cores_.size() && !cores_[core].threads.empty(); }
  // The core that a worker is on, or was on last; of several threads that of the last one.
  size_t core_of(int32_t worker) const { return core_before(worker); }
  size_t cores() const { return cores_.size(); }
  bool is_uneven() const {
    const auto [least, most] = std::minmax_element(cores_.begin(), cores_.end(), shorter);
    return most->threads.size() >= least->threads.size() + 2;
  }
  // Emptier cores take threads from fuller ones.
  void balance() {
    for (;;) {
      const auto [least, most] = std::minmax_element(cores_.begin(), cores_.end(), shorter);
      if (most->threads.size() < least->threads.size() + 2) return;
      least->threads.push_back(most->threads.back());
      most->threads.pop_back();
      remember(least->threads.back().worker, static_cast<size_t>(least - cores_.begin()));
    }
  }

  // A number for the turn that the first thread of a core has, while others wait for theirs; 0: nobody waits.
  uint64_t turn(size_t core) const {
    return takes_turns_ && cores_[core].threads.size() > 1 && has_turns(cores_[core]) ? cores_[core].turn : 0;
  }
  void end_turn(size_t core) {
    std::vector<Thread>& threads = cores_[core].threads;
    std::rotate(threads.begin(), threads.begin() + 1, threads.end());
    cores_[core].turn = ++turns_;
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
      if (takes_turns_ && has_turns(core))
        speed = std::min(speed, core.threads.front().worker == worker ? 1.0 : 0.0);
      else if (wanted > 1)
        speed = std::min(speed, 1 / wanted);
    }
    return speed;
  }

 private:
  struct Thread {
    int32_t worker;
    double wanted;  // of a core
    bool is_alone;  // its worker has no other
  };
  struct Core {
    std::vector<Thread> threads;  // with turns: who runs first
    uint64_t turn = 0;
  };

  static bool shorter(const Core& a, const Core& b) { return a.threads.size() < b.threads.size(); }
  static bool has_turns(const Core& core) {
    constexpr double kBusy = 0.9;
    return std::all_of(core.threads.begin(), core.threads.end(),
                       [](const Thread& thread) { return thread.is_alone && thread.wanted >= kBusy; });
  }
  // cores_.size(): it has not run yet.
  size_t core_before(int32_t worker) const {
    const auto number = static_cast<size_t>(worker);
    return number < last_core_.size() && last_core_[number] >= 0 ? static_cast<size_t>(last_core_[number])
                                                                 : cores_.size();
  }
  size_t pick_woken(int32_t worker, size_t waker, bool stays_with_waker) const {
    const size_t before = core_before(worker);
    waker = std::min(waker, cores_.size() - 1);
    if (stays_with_waker) return waker;
    if (before == cores_.size()) return is_busy(waker) ? pick(worker) : waker;
    if (!is_busy(before)) return is_busy(waker) ? before : waker;
    for (size_t core = 0; core < cores_.size(); ++core)
      if (core != waker && !is_busy(core)) return core;
    return before;
  }
  size_t pick(int32_t worker) const {
    const size_t before = core_before(worker);
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

  struct Left {
    int32_t worker = -1;
    size_t core = 0;
    uint64_t turn = 0;
  };

  std::vector<Core> cores_;
  bool balances_at_once_, takes_turns_;
  uint64_t turns_ = 0;
  Left left_;                       // who left a core on which it was first, last of all
  std::vector<int32_t> last_core_;  // by worker
};

}  // namespace strobe::analyze
