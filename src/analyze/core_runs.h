// Who ran on the cores while somebody waited for one, where the kernel's switches were recorded.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "analyze/tenant_trace.h"
#include "strobe/trace/timeline.h"

namespace strobe::analyze {

// core_runs, programs and lane_tids of a trace whose facts are read. Nothing where switches were not recorded or some
// of them are lost.
void read_core_runs(const trace::Timeline& timeline, TenantTrace& trace);

using Interval = std::pair<int64_t, int64_t>;

// What a thread waited for, by who ran meanwhile on the cores that it may use.
struct CoreWait {
  int32_t tenant = trace::kNone;
  bool is_recorder = false;
  bool is_idle = false;  // a core was free, and the thread had not got there yet
  int32_t program = 0;
  double ns = 0;
  double beside_idle_ns = 0;  // of that, while another core that the thread may use was idle
};

class CoreRunIndex {
 public:
  explicit CoreRunIndex(const TenantTrace& trace);
  // Whether it is known who ran then.
  bool covers(int64_t from_ns, int64_t to_ns) const;
  // When a thread waited for a core within these intervals (in time order, apart), waited_ns by the kernel's own
  // figure.
  std::vector<Interval> waits(int32_t tid, const std::vector<Interval>& within, double waited_ns) const;
  // Splits waited_ns, which a thread waited in these intervals (in time order, apart): the kernel's own figure, so that
  // the parts add up to it. It waited from where it was taken off a core until it was back, and as long as is left of
  // waited_ns before it ran again after a sleep. Of each instant each busy core has an equal part (the cores are those
  // of the resource; all where it names none); where none is busy it is idle's. Empty: the thread ran all the time.
  std::vector<CoreWait> split(int32_t tid, const std::vector<Interval>& within, double waited_ns,
                              int32_t resource) const;

 private:
  const TenantTrace& trace_;
  std::vector<std::pair<int32_t, Interval>> cores_;  // core: its rows of core_runs
  std::vector<int32_t> by_thread_;                   // rows by thread, then start
};

}  // namespace strobe::analyze
