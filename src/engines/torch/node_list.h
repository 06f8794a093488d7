// A frozen TorchScript graph as a list of nodes that can be run one at a time, each with its own time.
#pragma once

#include <ATen/core/ivalue.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "device.h"
#include "strobe/engines/engine.h"

namespace torch::jit {
struct Graph;
struct Node;
}  // namespace torch::jit

namespace strobe::engines::torch_plugin {

class NodeList {
 public:
  // The source layer of a node, or an empty string.
  using Namer = std::function<std::string(const torch::jit::Node&)>;

  // Nothing when the graph branches or loops: its nodes do not run in one order.
  static std::optional<NodeList> create(std::shared_ptr<torch::jit::Graph> graph, const Namer& namer);

  // The nodes that call an operator; constants and the making of lists are no kernels.
  const std::vector<Kernel>& kernels() const { return kernels_; }
  std::vector<Kernel>& kernels() { return kernels_; }

  // Runs the graph on the inputs (without the module itself) and returns its output; the clock is told of each kernel.
  at::IValue run(std::vector<at::IValue> inputs, KernelClock& clock) const;

 private:
  struct Step {
    std::function<void(std::vector<at::IValue>&)> call;  // takes its inputs from the stack, leaves its outputs there
    std::vector<size_t> inputs;                          // slots
    std::vector<size_t> outputs;
    std::vector<size_t> released;  // slots that nobody reads any more
    std::optional<size_t> kernel;
  };
  std::shared_ptr<torch::jit::Graph> graph_;
  std::vector<at::IValue> constants_;  // the slots as a run starts with them
  std::vector<size_t> inputs_;
  size_t output_ = 0;
  std::vector<Step> steps_;
  std::vector<Kernel> kernels_;
};

}  // namespace strobe::engines::torch_plugin
