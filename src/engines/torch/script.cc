#include "script.h"

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/frontend/source_range.h>
#include <torch/csrc/jit/ir/ir.h>
#include <torch/csrc/jit/ir/scope.h>
#include <torch/csrc/jit/serialization/import.h>

#include <algorithm>

#include "device.h"
#include "engines/fusion.h"
#include "error.h"
#include "node_list.h"
#include "operations.h"
#include "preprocess.h"
#include "script_source.h"
#include "threads.h"

namespace strobe::engines::torch_plugin {
namespace {

// Channels innermost: oneDNN's convolutions then need no reordering between layers. Measured on one thread against the
// frozen graph alone: 0.85 of its CPU time on yolov4-tiny, 0.77 on yolo-fastest-1.1-xl. optimize_for_inference, which
// moves single operators into oneDNN's opaque layout and back, took 1.02 and 1.2 of it, so it is not used.
constexpr auto kLayout = at::MemoryFormat::ChannelsLast;

// What the sessions of a network share; never changes after load.
struct Plan {
  std::shared_ptr<const models::Graph> graph;  // keeps the weights; null for a file
  torch::jit::Module module;
  std::optional<NodeList> nodes;
  Ends ends;
  Precision precision = Precision::kF32;
  at::ScalarType type = at::kFloat;
  c10::Device device{c10::DeviceType::CPU};
  int priority = 0;
  at::MemoryFormat layout = at::MemoryFormat::Contiguous;
  bool optimised = false;
  int threads = 1;
  bool profile = false;
};

// The tensors of what a module returned: one, or a list or tuple of them. Empty for anything else.
std::vector<at::Tensor> tensors_in(const at::IValue& value) {
  if (value.isTensor()) return {value.toTensor()};
  if (value.isTensorList()) return value.toTensorVector();
  std::vector<at::Tensor> all;
  if (value.isTuple() || value.isList()) {
    const auto elements = value.isTuple() ? value.toTupleRef().elements().vec() : value.toListRef().vec();
    for (const at::IValue& element : elements) {
      const auto inner = tensors_in(element);
      if (inner.empty()) return {};
      all.insert(all.end(), inner.begin(), inner.end());
    }
  }
  return all;
}

class ScriptSession : public Session {
 public:
  explicit ScriptSession(std::shared_ptr<Plan> plan)
      : plan_(std::move(plan)), lane_(plan_->device, plan_->priority), clock_(lane_) {}

  Result<void> run(std::span<const float* const> inputs, std::span<float* const> outputs) override {
    STROBE_TRY(check_buffers(plan_->ends, inputs, outputs));
    return run_on([&] { return lane_.bring(inputs.front(), plan_->ends.inputs.front().shape); }, outputs);
  }

  Result<void> run_prepared(const DeviceInput& input, std::span<float* const> outputs) override {
    STROBE_ASSIGN(const TorchInput* const own, own_input(input, plan_->ends, plan_->device, outputs));
    return run_on([&] { return own->seen_by(lane_); }, outputs);
  }

  Result<std::vector<KernelTime>> kernel_times() override { return times_; }

 private:
  template <typename Bring>
  Result<void> run_on(const Bring& bring, std::span<float* const> outputs) {
    auto done = guarded(ErrorKind::kEngine, [&]() -> Result<void> {
      const c10::InferenceMode inference;
      use_threads(plan_->threads);
      const auto stream = lane_.guard();
      const at::Tensor input = bring();
      std::vector<at::IValue> arguments{input.to(plan_->type).contiguous(plan_->layout)};
      const bool timed = plan_->profile && plan_->nodes;
      clock_.restart();
      const auto returned = tensors_in(timed ? plan_->nodes->run(std::move(arguments), clock_)
                                             : plan_->module.forward(std::move(arguments)));
      if (returned.size() != outputs.size()) {
        return engine_error("torch: the module returned " + std::to_string(returned.size()) + " tensors, " +
                            std::to_string(outputs.size()) + " were expected");
      }
      lane_.fetch(returned, outputs, plan_->ends.outputs);
      times_ = clock_.take();
      return {};
    });
    if (!done) lane_.settle();
    return done;
  }

  std::shared_ptr<Plan> plan_;
  Lane lane_;
  KernelClock clock_;
  std::vector<KernelTime> times_;
};

class ScriptNetwork : public Network {
 public:
  explicit ScriptNetwork(std::shared_ptr<Plan> plan) : plan_(std::move(plan)) {}

  const std::vector<TensorInfo>& inputs() const override { return plan_->ends.inputs; }
  const std::vector<TensorInfo>& outputs() const override { return plan_->ends.outputs; }
  Result<std::unique_ptr<Session>> create_session() override {
    return guarded(ErrorKind::kEngine, [&]() -> Result<std::unique_ptr<Session>> {
      return std::unique_ptr<Session>(std::make_unique<ScriptSession>(plan_));
    });
  }
  Result<std::unique_ptr<Preprocessor>> create_preprocessor(const PrepOptions& options) override {
    return make_preprocessor(plan_->ends.inputs.front(), plan_->device, options);
  }
  Result<std::vector<Kernel>> kernels() override {
    return plan_->nodes ? plan_->nodes->kernels() : std::vector<Kernel>{};
  }
  std::vector<std::pair<std::string, std::string>> facts() const override {
    std::vector<std::pair<std::string, std::string>> facts = {
        {"variant", plan_->optimised ? "script" : "eager"},
        {"precision", std::string(to_string(plan_->precision))},
        {"threads_per_session", std::to_string(plan_->threads)},
        {"layer_times", plan_->nodes ? "one node of the graph at a time" : "none: the module branches"}};
    for (auto& fact : device_facts(plan_->device)) facts.push_back(std::move(fact));
    return facts;
  }

 private:
  std::shared_ptr<Plan> plan_;
};

std::shared_ptr<Plan> plan_for(const LoadOptions& options, c10::Device device, bool optimised) {
  auto plan = std::make_shared<Plan>();
  plan->precision = options.precision;
  plan->type = scalar_type(options.precision);
  plan->device = device;
  plan->priority = options.priority;
  plan->threads = session_threads(options);
  plan->profile = options.profile_layers;
  plan->optimised = optimised;
  return plan;
}

torch::jit::Module module_of(const models::Graph& graph, const ScriptSource& source, at::ScalarType type,
                             c10::Device device) {
  torch::jit::Module module("strobe");
  module.register_attribute("training", c10::BoolType::get(), false);
  const auto weights = tensors_of(graph, type, device);
  for (size_t id = 0; id < weights.size(); ++id) {
    const auto add = [&](const char* what, const at::Tensor& tensor) {
      if (!tensor.defined()) return;
      const bool picture_like = tensor.dim() == 4;
      module.register_parameter(what + std::to_string(id), picture_like ? tensor.contiguous(kLayout) : tensor,
                                /*is_buffer=*/false);
    };
    add("weight", weights[id].weight);
    add("bias", weights[id].bias);
    add("scale", weights[id].scale);
    add("shift", weights[id].shift);
    add("mean", weights[id].mean);
    add("variance", weights[id].variance);
  }
  module.define(source.text);
  return module;
}

// The layer whose line of the source a node came from.
std::string layer_of_line(const ScriptSource& source, const torch::jit::Node& node) {
  const auto range = node.sourceRange();
  if (range.source() == nullptr) return "";
  const auto line = source.line_of.find(range.source()->lineno_for_offset(range.start()));
  return line == source.line_of.end() ? "" : line->second;
}

// The submodule of a file's module that a node came from: "features.0".
std::string layer_of_module(const torch::jit::Node& node) {
  std::string name;
  if (const auto stack = node.callstack()) {
    for (const auto& entry : (*stack)->vec()) {
      if (const auto instance = std::get<2>(entry)) {
        name += (name.empty() ? "" : ".") + instance->instance_name();
      }
    }
  }
  return name;
}

}  // namespace

Result<std::unique_ptr<Network>> load_script(std::shared_ptr<const models::Graph> graph, const LoadOptions& options) {
  STROBE_ASSIGN(const c10::Device device, open_device(options.device));
  return guarded(ErrorKind::kEngine, [&]() -> Result<std::unique_ptr<Network>> {
    const c10::InferenceMode inference;
    auto plan = plan_for(options, device, true);
    const ScriptSource source = script_source(*graph);
    plan->module = module_of(*graph, source, plan->type, device);
    plan->module = torch::jit::freeze(plan->module);
    wait_for(device);
    plan->layout = kLayout;
    plan->nodes = NodeList::create(plan->module.get_method("forward").graph(),
                                   [&](const torch::jit::Node& node) { return layer_of_line(source, node); });
    if (plan->nodes) complete_fusion(*graph, plan->nodes->kernels());
    plan->ends = ends_of(*graph, options.batch);
    plan->graph = std::move(graph);
    return std::unique_ptr<Network>(std::make_unique<ScriptNetwork>(std::move(plan)));
  });
}

Result<std::unique_ptr<Network>> load_file(const std::filesystem::path& path, bool optimised,
                                           const LoadOptions& options) {
  const std::string file = path.string();
  if (options.input_shape.empty()) {
    return usage_error(file + ": a TorchScript file does not tell its input's shape; give one, e.g. 3x416x416");
  }
  STROBE_ASSIGN(const c10::Device device, open_device(options.device));
  auto plan = plan_for(options, device, optimised);
  auto read = guarded(ErrorKind::kBadData, [&]() -> Result<void> {
    plan->module = torch::jit::load(file, device);
    plan->module.eval();
    return {};
  });
  if (!read) return std::move(read).error().at(file);

  auto prepared = guarded(ErrorKind::kEngine, [&]() -> Result<std::unique_ptr<Network>> {
    const c10::InferenceMode inference;
    if (plan->type != at::kFloat) plan->module.to(plan->type);
    if (optimised) plan->module = torch::jit::freeze(plan->module);
    if (optimised) plan->nodes = NodeList::create(plan->module.get_method("forward").graph(), layer_of_module);
    std::vector<int64_t> shape{options.batch};
    shape.insert(shape.end(), options.input_shape.begin(), options.input_shape.end());
    plan->ends.inputs.push_back({"input", shape});
    const auto returned =
        tensors_in(plan->module.forward({at::zeros(shape, at::TensorOptions(plan->type).device(device))}));
    if (returned.empty()) return unsupported("the module returns something else than tensors");
    wait_for(device);
    for (size_t i = 0; i < returned.size(); ++i) {
      plan->ends.outputs.push_back({"output" + std::to_string(i), returned[i].sizes().vec()});
    }
    return std::unique_ptr<Network>(std::make_unique<ScriptNetwork>(plan));
  });
  if (!prepared) return std::move(prepared).error().at(file);
  return prepared;
}

}  // namespace strobe::engines::torch_plugin
