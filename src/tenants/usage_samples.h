// What processes use while tenants run: CPU and memory as counters of the trace, ten times a second.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "collect/proc_reader.h"
#include "strobe/record/annotate.h"

namespace strobe::tenants {

class UsageSamples {
 public:
  // By tenant's name (empty: all of them are threads of that process) and process. Counters: "cpu_percent:NAME" (of one
  // core) and "rss_bytes:NAME"; without a name "cpu_percent" and "rss_bytes". Of the machine: "machine_cpu_percent" of
  // all allowed cores.
  explicit UsageSamples(const std::vector<std::pair<std::string, int32_t>>& processes);
  // Does nothing until a tenth of a second has passed.
  void sample();

 private:
  struct Process {
    record::Name cpu, memory;
    collect::ProcFile stat;
    int64_t ticks = -1;
  };
  std::vector<Process> processes_;
  int64_t last_ns_ = 0, machine_busy_ns_ = -1;
};

}  // namespace strobe::tenants
