#include "node_list.h"

#include <torch/csrc/jit/ir/constants.h>
#include <torch/csrc/jit/ir/ir.h>

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

namespace strobe::engines::torch_plugin {
namespace {

using torch::jit::Node;
using torch::jit::Value;

using Call = std::function<void(torch::jit::Stack&)>;

// Nodes that only arrange values for others. The interpreter runs them as instructions of its own.
Call arranging(Node* node) {
  switch (node->kind()) {
    case c10::prim::ListConstruct:
      return [element = node->output()->type()->expectRef<c10::ListType>().getElementType()](auto& stack) {
        c10::impl::GenericList list(element);
        for (at::IValue& value : stack) list.push_back(std::move(value));
        stack.assign(1, list);
      };
    case c10::prim::TupleConstruct:
      return [](auto& stack) { stack.assign(1, c10::ivalue::Tuple::create(std::move(stack))); };
    case c10::prim::ListUnpack:
      return [](auto& stack) { stack = stack.front().toListRef().vec(); };
    case c10::prim::TupleUnpack:
      return [](auto& stack) { stack = stack.front().toTupleRef().elements().vec(); };
    default:
      return {};
  }
}

// Operators that cost nothing of note and stand for no layer.
bool incidental(const Node& node) {
  return node.kind() == c10::aten::size || node.kind() == c10::prim::NumToTensor ||
         node.kind() == c10::prim::ConstantMKLDNNTensor;
}

}  // namespace

std::optional<NodeList> NodeList::create(std::shared_ptr<torch::jit::Graph> graph, const Namer& namer) {
  NodeList list;
  std::unordered_map<const Value*, size_t> slots;
  std::unordered_set<std::string> names;
  const auto slot = [&](const Value* value) {
    const auto [at, fresh] = slots.emplace(value, list.constants_.size());
    if (fresh) list.constants_.emplace_back();
    return at->second;
  };
  for (const Value* input : graph->inputs()) list.inputs_.push_back(slot(input));
  for (Node* node : graph->nodes()) {
    if (!node->blocks().empty()) return std::nullopt;
    if (node->kind() == c10::prim::Constant) {
      const auto constant = torch::jit::toIValue(node->output());
      if (!constant) return std::nullopt;
      list.constants_[slot(node->output())] = *constant;
      continue;
    }
    Step step;
    step.call = arranging(node);
    const bool kernel = !step.call && !incidental(*node);
    if (!step.call) {
      if (node->maybeOperator() == nullptr) return std::nullopt;
      step.call = [operation = node->getOperation()](torch::jit::Stack& stack) mutable { operation(stack); };
    }
    for (const Value* input : node->inputs()) step.inputs.push_back(slot(input));
    for (const Value* output : node->outputs()) step.outputs.push_back(slot(output));
    if (kernel) {
      const std::string layer = namer(*node);
      const std::string type = node->kind().toQualString();
      step.kernel = list.kernels_.size();
      std::string name = layer.empty() ? type + "_" + std::to_string(list.kernels_.size()) : layer;
      // A layer of several nodes: padding and the pool itself.
      if (!names.insert(name).second) name += "#" + std::to_string(list.kernels_.size());
      names.insert(name);
      list.kernels_.push_back(
          {name, type, "", layer.empty() ? std::vector<std::string>{} : std::vector<std::string>{layer}});
    }
    list.steps_.push_back(std::move(step));
  }
  if (graph->outputs().size() != 1) return std::nullopt;
  list.output_ = slot(graph->outputs().front());

  std::vector<bool> read(list.constants_.size());
  read[list.output_] = true;
  for (auto step = list.steps_.rbegin(); step != list.steps_.rend(); ++step) {
    for (const auto* side : {&step->inputs, &step->outputs}) {
      for (const size_t one : *side) {
        if (!read[one] && list.constants_[one].isNone()) step->released.push_back(one);
        read[one] = true;
      }
    }
  }
  list.graph_ = std::move(graph);
  return list;
}

at::IValue NodeList::run(std::vector<at::IValue> inputs, KernelClock& clock) const {
  std::vector<at::IValue> slots = constants_;
  std::vector<at::IValue> stack;
  // The first input is the module itself, which a frozen graph does not read.
  for (size_t i = 0; i < inputs.size(); ++i) slots[inputs_[i + 1]] = std::move(inputs[i]);
  for (const Step& step : steps_) {
    stack.clear();
    for (const size_t input : step.inputs) stack.push_back(slots[input]);
    for (const size_t done : step.released) slots[done] = at::IValue();
    if (step.kernel) clock.begin();
    step.call(stack);
    if (step.kernel) clock.end(*step.kernel);
    for (size_t i = 0; i < step.outputs.size(); ++i) slots[step.outputs[i]] = std::move(stack[i]);
  }
  return slots[output_];
}

}  // namespace strobe::engines::torch_plugin
