// Cores with a run queue each, as kernels have them: a thread that wakes up goes to an idle core, else to the one it
// ran on before, and shares that core with whoever is on it, although another core may have fewer. An idle core takes
// a thread from the fullest. So of three busy threads on two cores one runs at full speed and two at half: not each
// at two thirds.
//
// Kernels look for idle cores only now and then, and a core is not idle while it runs the thread that wakes up another
// one. With balances_at_once false the caller says when they look (balance), and a thread whose waker runs on the idle
// core stays on its own.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

namespace strobe::analyze {

class RunQueues {
 public:
  explicit RunQueues(size_t cores, bool balances_at_once = true)
      : cores_(std::max<size_t>(1, cores)), balances_at_once_(balances_at_once) {}

  // wanted: cores that the work of this worker would use by itself; more than one: so many threads. waker: the core of
  // the thread that wakes it up; -1: none.
  void join(int32_t worker, double wanted, int32_t waker = -1) {
    const auto threads = static_cast<size_t>(std::clamp(std::lround(wanted), 1L, 4096L));
    for (size_t i = 0; i < threads; ++i) {
      const size_t core = waker >= 0 && i == 0 ? pick_woken(worker, static_cast<size_t>(waker)) : pick(worker);
      cores_[core].push_back({worker, wanted / static_cast<double>(threads)});
      remember(worker, core);
    }
  }

  void leave(int32_t worker) {
    for (auto& core : cores_) std::erase_if(core, [worker](const Thread& thread) { return thread.worker == worker; });
    if (balances_at_once_) balance();
  }

  bool is_busy(size_t core) const { return core < cores_.size() && !cores_[core].empty(); }
  // The core that a worker is on, or was on last; of several threads that of the last one.
  size_t core_of(int32_t worker) const { return core_before(worker); }
  size_t cores() const { return cores_.size(); }
  bool is_uneven() const {
    const auto [least, most] = std::minmax_element(cores_.begin(), cores_.end(), shorter);
    return most->size() >= least->size() + 2;
  }
  // Emptier cores take threads from fuller ones.
  void balance() {
    for (;;) {
      const auto [least, most] = std::minmax_element(cores_.begin(), cores_.end(), shorter);
      if (most->size() < least->size() + 2) return;
      least->push_back(most->back());
      most->pop_back();
      remember(least->back().worker, static_cast<size_t>(least - cores_.begin()));
    }
  }

  // The share of its speed that a worker gets: that of its slowest thread, for which the others wait.
  double speed(int32_t worker) const {
    double speed = 1;
    for (const auto& core : cores_) {
      double wanted = 0;
      bool is_here = false;
      for (const Thread& thread : core) {
        wanted += thread.wanted;
        is_here |= thread.worker == worker;
      }
      if (is_here && wanted > 1) speed = std::min(speed, 1 / wanted);
    }
    return speed;
  }

 private:
  struct Thread {
    int32_t worker;
    double wanted;  // of a core
  };

  static bool shorter(const std::vector<Thread>& a, const std::vector<Thread>& b) { return a.size() < b.size(); }
  // cores_.size(): it has not run yet.
  size_t core_before(int32_t worker) const {
    const auto number = static_cast<size_t>(worker);
    return number < last_core_.size() && last_core_[number] >= 0 ? static_cast<size_t>(last_core_[number])
                                                                 : cores_.size();
  }
  size_t pick_woken(int32_t worker, size_t waker) const {
    const size_t before = core_before(worker);
    waker = std::min(waker, cores_.size() - 1);
    if (before == cores_.size()) return is_busy(waker) ? pick(worker) : waker;
    if (!is_busy(before)) return is_busy(waker) ? before : waker;
    for (size_t core = 0; core < cores_.size(); ++core)
      if (core != waker && !is_busy(core)) return core;
    return before;
  }
  size_t pick(int32_t worker) const {
    const size_t before = core_before(worker);
    if (before < cores_.size() && cores_[before].empty()) return before;
    const auto least = std::min_element(cores_.begin(), cores_.end(),
                                        [](const auto& a, const auto& b) { return a.size() < b.size(); });
    if (least->empty() || before == cores_.size() || cores_[before].size() >= least->size() + 2)
      return static_cast<size_t>(least - cores_.begin());
    return before;
  }
  void remember(int32_t worker, size_t core) {
    if (static_cast<size_t>(worker) >= last_core_.size()) last_core_.resize(static_cast<size_t>(worker) + 1, -1);
    last_core_[static_cast<size_t>(worker)] = static_cast<int32_t>(core);
  }

  std::vector<std::vector<Thread>> cores_;
  bool balances_at_once_;
  std::vector<int32_t> last_core_;  // by worker
};

}  // namespace strobe::analyze
