// Counters of replayed kernels as a table of a timeline.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/table.h"
#include "gpu/activity.h"

namespace strobe::gpu {

// The rows of all logs, put together. One row a kernel: pid, device, launch (order in its process, from 1), kernel,
// grid, block ("x,y,z"), and a column for each figure that any of them has.
class ReplayTable {
 public:
  // Of the log of one process after the other, each in its order.
  void add(int32_t pid, const Record& record);
  bool empty() const { return kernels_.empty(); }
  // facts: of the timeline, for what a replay cost.
  Table table(const std::map<std::string, std::string>& facts) const;

 private:
  struct Kernel {
    int32_t pid;
    ReplayedKernel record;
    std::string name;
    std::map<std::string, double> values;
  };
  std::vector<Kernel> kernels_;
  std::map<std::pair<int32_t, uint32_t>, std::string> texts_;  // by process and number
};

}  // namespace strobe::gpu
