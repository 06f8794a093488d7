// How a kernel serves threads that share cores, found by trying: what a replay needs to know of run queues beyond how
// many cores there are (docs/forecast.md).
#pragma once

#include <atomic>
#include <optional>
#include <vector>

#include "strobe/base/result.h"

namespace strobe::tenants {

struct RunQueueProbeOptions {
  std::vector<int> cores;                          // the first two are used
  int wake_ups = 600, balances = 80, turns = 150;  // so often each is measured; 0: not
  double tenants_s = 7;  // for so long each, what happens when threads wake each other up; 0: not measured
  const std::atomic<bool>* stop = nullptr;
  bool stopped() const { return stop != nullptr && stop->load(); }
};

// Times are quantiles in equal steps from 0 to 1; empty: not measured.
struct RunQueueProbe {
  // From when a thread should wake up on a core that another one keeps busy until it runs.
  std::vector<double> wake_up_ms;
  // From when a core becomes idle until it takes one of the two threads that are busy on the other core.
  std::vector<double> balance_ms;
  // For how long a thread that has taken a core from another one by waking up keeps it from that one.
  std::vector<double> turn_ms;
  // How often a thread that is woken up takes the core of its waker: away from the waker, which hands a device over and
  // goes on; away from a third thread, which the waker, a source, had interrupted. From 0 to 1; nothing: it never was
  // in question.
  std::optional<double> hand_over_stays, wake_up_stays;
};

// Errors: kUnsupported (fewer than two cores, or cores that may not be used), kInterrupted.
Result<RunQueueProbe> probe_run_queues(const RunQueueProbeOptions& options);

}  // namespace strobe::tenants
