#include "eager.h"

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>

#include <chrono>

#include "error.h"
#include "operations.h"
#include "threads.h"

namespace strobe::engines::torch_plugin {
namespace {

using models::LayerId;
using Clock = std::chrono::steady_clock;

// What the sessions of a network share; never changes after load.
struct Plan {
  std::shared_ptr<const models::Graph> graph;
  std::vector<LayerWeights> weights;
  std::vector<std::vector<LayerId>> released_after;  // by layer: outputs that nobody reads any more
  std::vector<Kernel> kernels;
  std::vector<size_t> kernel_of;  // by layer; kernels.size() for an identity
  at::ScalarType type = at::kFloat;
  Ends ends;
  int threads = 1;
  bool profile = false;
};

std::vector<std::vector<LayerId>> releases(const models::Graph& graph) {
  std::vector<LayerId> last(graph.layers.size());
  for (size_t id = 0; id < graph.layers.size(); ++id) {
    last[id] = static_cast<LayerId>(id);
    for (const LayerId input : graph.layers[id].inputs) last[static_cast<size_t>(input)] = static_cast<LayerId>(id);
  }
  for (const LayerId output : graph.outputs) last[static_cast<size_t>(output)] = -1;
  std::vector<std::vector<LayerId>> after(graph.layers.size());
  for (size_t id = 0; id < last.size(); ++id) {
    if (last[id] >= 0) after[static_cast<size_t>(last[id])].push_back(static_cast<LayerId>(id));
  }
  return after;
}

class EagerSession : public Session {
 public:
  explicit EagerSession(std::shared_ptr<const Plan> plan) : plan_(std::move(plan)) {}

  Result<void> run(std::span<const float* const> inputs, std::span<float* const> outputs) override {
    STROBE_TRY(check_buffers(plan_->ends, inputs, outputs));
    return guarded(ErrorKind::kEngine, [&]() -> Result<void> {
      const c10::InferenceMode inference;
      use_threads(plan_->threads);
      forward(inputs.front(), outputs);
      return {};
    });
  }

  Result<std::vector<KernelTime>> kernel_times() override { return times_; }

  bool listen(LayerListener* listener) override {
    listener_ = listener;
    return true;
  }

 private:
  void forward(const float* input, std::span<float* const> outputs) {
    const auto& graph = *plan_->graph;
    std::vector<at::Tensor> values(graph.layers.size());
    std::vector<at::Tensor> arguments;
    times_.clear();
    for (size_t id = 0; id < graph.layers.size(); ++id) {
      const auto& layer = graph.layers[id];
      arguments.clear();
      if (id == 0) {
        arguments.push_back(
            at::from_blob(const_cast<float*>(input), plan_->ends.inputs.front().shape, at::kFloat).to(plan_->type));
      }
      for (const LayerId source : layer.inputs) arguments.push_back(values[static_cast<size_t>(source)]);
      const bool is_kernel = plan_->kernel_of[id] < plan_->kernels.size();
      const bool timed = plan_->profile && is_kernel, told = listener_ && is_kernel;
      if (told) listener_->before(plan_->kernel_of[id]);
      const auto begin = timed ? Clock::now() : Clock::time_point{};
      values[id] = apply(layer, plan_->weights[id], arguments);
      if (timed) {
        const auto spent = std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - begin);
        times_.push_back({plan_->kernel_of[id], spent.count()});
      }
      if (told) listener_->after(plan_->kernel_of[id]);
      arguments.clear();
      for (const LayerId done : plan_->released_after[id]) values[static_cast<size_t>(done)].reset();
    }
    for (size_t i = 0; i < graph.outputs.size(); ++i) {
      at::from_blob(outputs[i], plan_->ends.outputs[i].shape, at::kFloat)
          .copy_(values[static_cast<size_t>(graph.outputs[i])]);
    }
  }

  std::shared_ptr<const Plan> plan_;
  std::vector<KernelTime> times_;
  LayerListener* listener_ = nullptr;
};

class EagerNetwork : public Network {
 public:
  explicit EagerNetwork(std::shared_ptr<const Plan> plan) : plan_(std::move(plan)) {}

  const std::vector<TensorInfo>& inputs() const override { return plan_->ends.inputs; }
  const std::vector<TensorInfo>& outputs() const override { return plan_->ends.outputs; }
  Result<std::unique_ptr<Session>> create_session() override {
    return std::unique_ptr<Session>(std::make_unique<EagerSession>(plan_));
  }
  Result<std::vector<Kernel>> kernels() override { return plan_->kernels; }
  std::vector<std::pair<std::string, std::string>> facts() const override {
    return {{"variant", "eager"},
            {"precision", plan_->type == at::kFloat ? "f32" : "bf16"},
            {"threads_per_session", std::to_string(plan_->threads)}};
  }

 private:
  std::shared_ptr<const Plan> plan_;
};

}  // namespace

Result<std::unique_ptr<Network>> load_eager(std::shared_ptr<const models::Graph> graph, const LoadOptions& options) {
  return guarded(ErrorKind::kEngine, [&]() -> Result<std::unique_ptr<Network>> {
    auto plan = std::make_shared<Plan>();
    plan->graph = graph;
    plan->type = options.precision == Precision::kBf16 ? at::kBFloat16 : at::kFloat;
    plan->weights = tensors_of(*graph, plan->type);
    plan->released_after = releases(*graph);
    plan->ends = ends_of(*graph, options.batch);
    plan->threads = session_threads(options);
    plan->profile = options.profile_layers;
    for (const auto& layer : graph->layers) {
      const std::string call = call_name(layer.operation);
      if (!call.empty()) plan->kernels.push_back({layer.name, call, "", {layer.name}});
    }
    size_t next = 0;
    for (const auto& layer : graph->layers) {
      const bool identity = *call_name(layer.operation) == '\0';
      plan->kernel_of.push_back(identity ? plan->kernels.size() : next++);
    }
    return std::unique_ptr<Network>(std::make_unique<EagerNetwork>(std::move(plan)));
  });
}

}  // namespace strobe::engines::torch_plugin
