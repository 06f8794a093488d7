// What OpenVINO executes, read from the model that it runs.
#pragma once

#include <map>
#include <openvino/runtime/compiled_model.hpp>
#include <openvino/runtime/profiling_info.hpp>
#include <string>
#include <vector>

#include "engines/running_means.h"
#include "strobe/engines/engine.h"

namespace strobe::engines::openvino_plugin {

struct KernelList {
  std::vector<Kernel> kernels;          // in execution order; no constants, parameters and results
  std::map<std::string, size_t> index;  // by name, which is how profiling names them
};
// graph: the source when the model was emitted from one, to complete the fusion map; null for a file.
KernelList kernels_of(const ov::CompiledModel& compiled, const models::Graph* graph);

// What the kernels of the run that just ended took, in execution order; means: told of every run of the counters'
// graph.
std::vector<KernelTime> last_run(const KernelList& kernels, const std::vector<ov::ProfilingInfo>& counters,
                                 RunningMeans& means);

}  // namespace strobe::engines::openvino_plugin
