#include "tenants/calibration.h"

#include <fmt/format.h>

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>
#include <thread>

#include "base/statistics.h"
#include "collect/core_set.h"
#include "tenants/board.h"
#include "tenants/spin_task.h"

namespace strobe::tenants {
namespace {

using Kind = SpinWork::Kind;
constexpr std::array<std::pair<Kind, const char*>, 2> kKinds = {
    {{Kind::kCompute, "compute"}, {Kind::kBandwidth, "bandwidth"}}};
constexpr int64_t kRounds = 500;  // between two looks at the clock

// Rounds a second of CPU time that a thread on that core gets done.
double speed(Kind kind, double seconds) {
  timespec begin{}, now{};
  spin_rounds(kind, kRounds);
  const int64_t until = monotonic_ns() + static_cast<int64_t>(1e9 * seconds);
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
  int64_t rounds = 0;
  while (monotonic_ns() < until) {
    spin_rounds(kind, kRounds);
    rounds += kRounds;
  }
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(rounds) /
         (static_cast<double>(now.tv_sec - begin.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec - begin.tv_nsec));
}

// On its core, with or without a neighbour at work on the other one.
Result<double> measured(Kind kind, const Kind* neighbour, const CalibrationOptions& options) {
  std::atomic<bool> done{false}, going{neighbour == nullptr};
  std::thread beside;
  Result<void> bound;
  if (neighbour != nullptr)
    beside = std::thread([&, other = *neighbour] {
      bound = collect::bind_to_cores(std::to_string(options.cores[1]));
      while (!done) {
        spin_rounds(other, kRounds);
        going = true;
      }
    });
  double result = 0;
  Result<void> own;
  std::thread work([&] {
    own = collect::bind_to_cores(std::to_string(options.cores[0]));
    while (!going) std::this_thread::yield();
    if (own) result = speed(kind, options.seconds_each);
    done = true;
  });
  work.join();
  if (beside.joinable()) beside.join();
  STROBE_TRY(std::move(own));
  STROBE_TRY(std::move(bound));
  return result;
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
            spin_rounds(Kind::kCompute, kRounds / 20);
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
            const auto until = std::chrono::steady_clock::now() + kSpell;
            while (std::chrono::steady_clock::now() < until) spin_rounds(Kind::kCompute, kRounds / 20);
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
Result<std::vector<double>> wake_ups(const CalibrationOptions& options) {
  std::vector<double> late, idle;
  SpellThread spells(options.cores[0]);
  STROBE_TRY(Result<void>(spells.bound()));
  Result<void> bound;
  std::thread sleeper([&] {
    bound = collect::bind_to_cores(std::to_string(options.cores[0]));
    constexpr double kMeanNs = 8e6;
    std::mt19937 random(1);
    std::exponential_distribution<double> apart(1 / kMeanNs);
    for (int i = 0; bound && i < options.wake_ups && !(options.stop != nullptr && options.stop->load()); ++i) {
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
Result<std::vector<double>> balances(const CalibrationOptions& options) {
  constexpr std::chrono::milliseconds kLongest(40);
  BusyThread a(options.cores[0]), b(options.cores[0]);
  STROBE_TRY(Result<void>(a.bound()));
  STROBE_TRY(Result<void>(b.bound()));
  std::vector<double> taken;
  Result<void> bound;
  std::thread waker([&] {
    bound = collect::bind_to_cores(std::to_string(options.cores[1]));
    std::mt19937 random(2);
    for (int i = 0; bound && i < options.balances && !(options.stop != nullptr && options.stop->load()); ++i) {
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

}  // namespace

Result<PairCalibration> calibrate(const CalibrationOptions& options) {
  if (options.cores.size() < 2)
    return unsupported("calibration needs two cores: on one, work does not run beside other work");
  const int64_t begin = monotonic_ns();
  std::array<std::array<std::vector<double>, kKinds.size()>, kKinds.size()> slower;
  for (int round = 0; round < options.rounds; ++round)
    for (size_t x = 0; x < kKinds.size(); ++x) {
      STROBE_ASSIGN(const double alone, measured(kKinds[x].first, nullptr, options));
      for (size_t y = 0; y < kKinds.size(); ++y) {
        if (options.stop != nullptr && options.stop->load()) return Error(ErrorKind::kInterrupted, "interrupted");
        STROBE_ASSIGN(const double beside, measured(kKinds[x].first, &kKinds[y].first, options));
        slower[x][y].push_back(std::max(0.0, alone / beside - 1));
      }
    }
  PairCalibration result;
  for (size_t x = 0; x < kKinds.size(); ++x) {
    result.classes.emplace_back(kKinds[x].second);
    auto& row = result.a.emplace_back();
    for (size_t y = 0; y < kKinds.size(); ++y) row.push_back(quantile(slower[x][y], 0.5));
  }
  if (options.wake_ups > 0) {
    STROBE_ASSIGN(std::vector<double> late, wake_ups(options));
    result.wake_up_ms = quantiles_of(std::move(late));
  }
  if (options.balances > 0) {
    STROBE_ASSIGN(std::vector<double> taken, balances(options));
    result.balance_ms = quantiles_of(std::move(taken));
  }
  result.seconds = static_cast<double>(monotonic_ns() - begin) / 1e9;
  return result;
}

std::string calibration_json(const PairCalibration& calibration) {
  // Each class that traces know, by the measured one that it is like.
  constexpr std::array<std::pair<const char*, size_t>, 5> kClasses = {
      {{"compute", 0}, {"bandwidth", 1}, {"small", 0}, {"cpu", 0}, {"copy", 1}}};
  nlohmann::ordered_json out;
  out["of"] = "cores";
  out["classes"] = nlohmann::ordered_json::array();
  for (const auto& [name, like] : kClasses) {
    out["classes"].push_back(name);
    auto row = nlohmann::ordered_json::array();
    for (const auto& [other, beside] : kClasses) row.push_back(calibration.a[like][beside]);
    out["a"].push_back(row);
  }
  if (!calibration.wake_up_ms.empty()) out["wake_up_ms"] = calibration.wake_up_ms;
  if (!calibration.balance_ms.empty()) out["balance_ms"] = calibration.balance_ms;
  out["seconds"] = calibration.seconds;
  return out.dump(2) + "\n";
}

}  // namespace strobe::tenants
