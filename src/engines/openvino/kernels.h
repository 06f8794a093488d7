// What OpenVINO executes, read from the model that it runs.
#pragma once

#include <map>
#include <openvino/runtime/compiled_model.hpp>
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

}  // namespace strobe::engines::openvino_plugin
