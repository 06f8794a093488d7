// What a TensorRT engine executes, by its inspector.
#pragma once

#include <NvInferRuntime.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "strobe/engines/engine.h"

namespace strobe::engines::tensorrt_plugin {

struct KernelList {
  std::vector<Kernel> kernels;                       // in execution order
  std::map<std::string, std::vector<size_t>> index;  // by name, which is how the profiler names them
};
// graph: the source, to complete the fusion map; null for a file. An engine that was built without detail gives names.
// Errors: kEngine.
Result<KernelList> kernels_of(nvinfer1::ICudaEngine& engine, const models::Graph* graph);

// Collects what TensorRT's profiler reports of one run.
class LayerTimes : public nvinfer1::IProfiler {
 public:
  explicit LayerTimes(const KernelList& kernels) : kernels_(kernels) {}
  void begin_run();
  void reportLayerTime(const char* layer, float ms) noexcept override;
  const std::vector<KernelTime>& times() const { return times_; }
  // Of the last run: layers that the inspector did not name.
  size_t unknown() const { return unknown_; }

 private:
  const KernelList& kernels_;
  std::vector<KernelTime> times_;
  std::map<std::string, size_t> reported_;  // how often in this run: equal names stand in order of execution
  size_t unknown_ = 0;
};

}  // namespace strobe::engines::tensorrt_plugin
