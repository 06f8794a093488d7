// What OpenVINO executes, read from the model that it runs.
#pragma once

#include <map>
#include <openvino/runtime/compiled_model.hpp>
#include <openvino/runtime/profiling_info.hpp>
#include <string>
#include <vector>

#include "strobe/engines/engine.h"

namespace strobe::engines::openvino_plugin {

struct KernelList {
  std::vector<Kernel> kernels;          // in execution order; no constants, parameters and results
  std::map<std::string, size_t> index;  // by name, which is how profiling names them
};
// graph: the source when the model was emitted from one, to complete the fusion map; null for a file.
KernelList kernels_of(const ov::CompiledModel& compiled, const models::Graph* graph);

// Times of single runs out of OpenVINO's counters. A counter holds the mean of a kernel's times in all runs so far, cut
// to whole microseconds; one run is what the sum grew by. The k-th run is known to about k microseconds, the mean of
// several runs to one. Not thread-safe: it must see every run, one after the other.
class KernelClock {
 public:
  explicit KernelClock(const KernelList& kernels) : kernels_(kernels), told_ns_(kernels.kernels.size()) {}
  // Called once after each run.
  std::vector<KernelTime> last_run(const std::vector<ov::ProfilingInfo>& counters);

 private:
  const KernelList& kernels_;
  int64_t runs_ = 0;
  std::vector<double> told_ns_;  // by kernel: the sum of what was returned
};

}  // namespace strobe::engines::openvino_plugin
