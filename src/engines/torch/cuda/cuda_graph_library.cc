// libstrobe_torch_cuda_graph.so: the only code of the torch engine that needs CUDA's headers.
#include <ATen/cuda/CUDAGraph.h>

#include <exception>

#include "../cuda_graph.h"

namespace strobe::engines::torch_plugin {
namespace {

class CapturedGraph : public CudaGraph {
 public:
  // Of this thread alone: other sessions go on meanwhile, and may do what a capture forbids.
  void begin() override { graph_.capture_begin(at::cuda::MempoolId_t{0, 0}, cudaStreamCaptureModeThreadLocal); }
  void end() override { graph_.capture_end(); }
  void abandon() noexcept override {
    try {
      graph_.capture_end();
    } catch (const std::exception&) {
      // It says that the capture is void; why is on its way already.
    }
  }
  void replay() override { graph_.replay(); }

 private:
  at::cuda::CUDAGraph graph_;
};

}  // namespace
}  // namespace strobe::engines::torch_plugin

extern "C" __attribute__((visibility("default"))) strobe::engines::torch_plugin::CudaGraph* strobe_make_cuda_graph() {
  return new strobe::engines::torch_plugin::CapturedGraph();
}
