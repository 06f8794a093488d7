// CpuClock: what a measured stretch cost in CPU time, and what others took of the same cores meanwhile; recorded as
// arguments of the stretch's range.
#pragma once

#include <optional>

#include "collect/cpu_time.h"
#include "strobe/record/annotate.h"

namespace strobe::pipeline {

// Counts from its construction, which reads /proc: make it before the range.
class CpuClock {
 public:
  // Arguments cpu_ns, and where the machine tells, machine_busy_ns and machine_stolen_ns (analyze/pipeline.h).
  void finish(record::Range& range) const {
    static const record::Name kCpu("cpu_ns"), kBusy("machine_busy_ns"), kStolen("machine_stolen_ns");
    range.arg(kCpu, collect::process_cpu_ns() - process_ns_);
    const auto machine = collect::cpu_use();
    if (!machine || !machine_) return;
    range.arg(kBusy, machine->busy_ns - machine_->busy_ns).arg(kStolen, machine->stolen_ns - machine_->stolen_ns);
  }

 private:
  std::optional<collect::CpuUse> machine_ = collect::cpu_use();
  int64_t process_ns_ = collect::process_cpu_ns();
};

}  // namespace strobe::pipeline
