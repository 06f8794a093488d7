#include "tenants/calibration.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
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
  RunQueueProbeOptions queues = options.run_queues;
  queues.cores = options.cores;
  queues.stop = options.stop;
  STROBE_ASSIGN(result.run_queues, probe_run_queues(queues));
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
  const RunQueueProbe& queues = calibration.run_queues;
  if (!queues.wake_up_ms.empty()) out["wake_up_ms"] = queues.wake_up_ms;
  if (!queues.balance_ms.empty()) out["balance_ms"] = queues.balance_ms;
  if (!queues.turn_ms.empty()) out["turn_ms"] = queues.turn_ms;
  if (queues.hand_over_stays) out["hand_over_stays"] = *queues.hand_over_stays;
  if (queues.wake_up_stays) out["wake_up_stays"] = *queues.wake_up_stays;
  out["seconds"] = calibration.seconds;
  return out.dump(2) + "\n";
}

}  // namespace strobe::tenants
