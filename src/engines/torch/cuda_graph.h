// CUDA graphs: what a session gives to its stream, captured once and launched as one piece ever after. They need CUDA's
// headers, so they lie in a library of their own, libstrobe_torch_cuda_graph.so, which is built where those and a CUDA
// wheel of torch are found, and which is opened at the first use.
#pragma once

#include <memory>

#include "strobe/base/result.h"

namespace strobe::engines::torch_plugin {

class CudaGraph {
 public:
  virtual ~CudaGraph() = default;
  // From begin to end, what the calling thread gives to its current stream, which must not be the default one, is
  // captured and does not run. Memory that was made meanwhile belongs to the graph.
  virtual void begin() = 0;
  virtual void end() = 0;
  virtual void abandon() noexcept = 0;  // instead of end, when something failed
  virtual void replay() = 0;            // into the current stream
};

// Errors: kUnsupported (the library was not built or cannot be loaded).
Result<void> cuda_graph_support();
// Errors: the same. What ATen throws comes through.
Result<std::unique_ptr<CudaGraph>> make_cuda_graph();

}  // namespace strobe::engines::torch_plugin
