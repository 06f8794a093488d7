#include "eager.h"

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>

#include <functional>
#include <mutex>

#include "cuda_graph.h"
#include "device.h"
#include "error.h"
#include "operations.h"
#include "preprocess.h"
#include "threads.h"

namespace strobe::engines::torch_plugin {
namespace {

using models::LayerId;

// What the sessions of a network share; never changes after load.
struct Plan {
  std::shared_ptr<const models::Graph> graph;
  std::vector<LayerWeights> weights;
  std::vector<std::vector<LayerId>> released_after;  // by layer: outputs that nobody reads any more
  std::vector<Kernel> kernels;
  std::vector<size_t> kernel_of;  // by layer; kernels.size() for an identity
  Precision precision = Precision::kF32;
  at::ScalarType type = at::kFloat;
  c10::Device device{c10::DeviceType::CPU};
  int priority = 0;
  Ends ends;
  int threads = 1;
  bool profile = false;
  bool captured = false;  // variant "graph"
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

// Held while a graph is made or destroyed: torch 2.11 and older note every graph in one list of the default generator,
// without a lock, and what libraries do at their first calls or at a graph's end may void another thread's capture.
std::mutex& graphs_in_making() {
  static std::mutex one;
  return one;
}

// The listener hears nothing for as long as this lives.
class Silence {
 public:
  explicit Silence(bool& silent) : silent_(silent) { silent_ = true; }
  ~Silence() { silent_ = false; }
  Silence(const Silence&) = delete;
  Silence& operator=(const Silence&) = delete;

 private:
  bool& silent_;
};

class EagerSession : public Session {
 public:
  explicit EagerSession(std::shared_ptr<const Plan> plan)
      : plan_(std::move(plan)), lane_(plan_->device, plan_->priority), clock_(lane_) {}
  ~EagerSession() override {
    if (!graph_) return;
    const std::lock_guard alone(graphs_in_making());
    graph_.reset();
  }
  EagerSession(const EagerSession&) = delete;
  EagerSession& operator=(const EagerSession&) = delete;

  Result<void> run(std::span<const float* const> inputs, std::span<float* const> outputs) override {
    STROBE_TRY(check_buffers(plan_->ends, inputs, outputs));
    return run_on([&] { return lane_.bring(inputs.front(), plan_->ends.inputs.front().shape); }, outputs);
  }

  Result<void> run_prepared(const DeviceInput& input, std::span<float* const> outputs) override {
    STROBE_ASSIGN(const TorchInput* const own, own_input(input, plan_->ends, plan_->device, outputs));
    // A captured graph reads its input at one place.
    return run_on([&] { return plan_->captured ? lane_.settled(own->seen_by(lane_)) : own->seen_by(lane_); }, outputs);
  }

  Result<std::vector<KernelTime>> kernel_times() override { return times_; }

  bool listen(LayerListener* listener) override {
    listener_ = listener;
    return !plan_->captured;
  }

 private:
  template <typename Bring>
  Result<void> run_on(const Bring& bring, std::span<float* const> outputs) {
    auto done = guarded(ErrorKind::kEngine, [&]() -> Result<void> {
      const c10::InferenceMode inference;
      use_threads(plan_->threads);
      const auto stream = lane_.guard();
      const at::Tensor input = bring();
      if (plan_->captured) {
        if (!graph_) STROBE_TRY(capture(input));
        graph_->replay();
        lane_.fetch(captured_results_, outputs, plan_->ends.outputs);
        return {};
      }
      clock_.restart();
      lane_.fetch(forward(input), outputs, plan_->ends.outputs);
      times_ = clock_.take();
      return {};
    });
    if (!done) lane_.settle();
    return done;
  }

  std::vector<at::Tensor> forward(const at::Tensor& input) {
    const auto& graph = *plan_->graph;
    std::vector<at::Tensor> values(graph.layers.size());
    std::vector<at::Tensor> arguments;
    const auto& finish = plan_->captured ? nothing_ : finish_;
    for (size_t id = 0; id < graph.layers.size(); ++id) {
      const auto& layer = graph.layers[id];
      const size_t kernel = plan_->kernel_of[id];
      arguments.clear();
      if (id == 0) arguments.push_back(input.to(plan_->type));
      for (const LayerId source : layer.inputs) arguments.push_back(values[static_cast<size_t>(source)]);
      const bool is_kernel = kernel < plan_->kernels.size();
      const bool timed = plan_->profile && !plan_->captured && is_kernel, told = listener_ && is_kernel && !silent_;
      if (told) listener_->before(kernel, finish);
      if (timed) clock_.begin();
      values[id] = apply(layer, plan_->weights[id], arguments);
      if (timed) clock_.end(kernel);
      if (told) listener_->after(kernel, finish);
      arguments.clear();
      for (const LayerId done : plan_->released_after[id]) values[static_cast<size_t>(done)].reset();
    }
    std::vector<at::Tensor> results;
    for (const LayerId output : graph.outputs) results.push_back(values[static_cast<size_t>(output)]);
    return results;
  }

  // What libraries make at their first calls (handles, workspaces, chosen algorithms) is not to be in the graph.
  Result<void> capture(const at::Tensor& input) {
    constexpr int kWarmUps = 2;
    const std::lock_guard alone(graphs_in_making());
    {
      const Silence silence(silent_);
      for (int i = 0; i < kWarmUps; ++i) forward(input);
    }
    lane_.wait();
    STROBE_ASSIGN(auto graph, make_cuda_graph());
    graph->begin();
    try {
      captured_results_ = forward(input);
    } catch (...) {
      graph->abandon();
      throw;
    }
    graph->end();
    graph_ = std::move(graph);
    return {};
  }

  std::shared_ptr<const Plan> plan_;
  Lane lane_;
  KernelClock clock_;
  std::vector<KernelTime> times_;
  LayerListener* listener_ = nullptr;
  bool silent_ = false;  // the listener hears of one pass alone: that of the capture
  const std::function<void()> finish_ = [this] { lane_.wait(); };
  const std::function<void()> nothing_ = [] {};  // nothing may be waited for while a graph is captured
  std::vector<at::Tensor> captured_results_;     // the graph writes into them
  std::unique_ptr<CudaGraph> graph_;
};

class EagerNetwork : public Network {
 public:
  explicit EagerNetwork(std::shared_ptr<const Plan> plan) : plan_(std::move(plan)) {}

  const std::vector<TensorInfo>& inputs() const override { return plan_->ends.inputs; }
  const std::vector<TensorInfo>& outputs() const override { return plan_->ends.outputs; }
  Result<std::unique_ptr<Session>> create_session() override {
    return guarded(ErrorKind::kEngine, [&]() -> Result<std::unique_ptr<Session>> {
      return std::unique_ptr<Session>(std::make_unique<EagerSession>(plan_));
    });
  }
  Result<std::unique_ptr<Preprocessor>> create_preprocessor(const PrepOptions& options) override {
    return make_preprocessor(plan_->ends.inputs.front(), plan_->device, options);
  }
  Result<std::vector<Kernel>> kernels() override { return plan_->kernels; }
  std::vector<std::pair<std::string, std::string>> facts() const override {
    std::vector<std::pair<std::string, std::string>> facts = {{"variant", plan_->captured ? "graph" : "eager"},
                                                              {"precision", std::string(to_string(plan_->precision))},
                                                              {"threads_per_session", std::to_string(plan_->threads)}};
    if (plan_->captured) facts.emplace_back("layer_times", "none: all layers are one launch");
    for (auto& fact : device_facts(plan_->device)) facts.push_back(std::move(fact));
    return facts;
  }

 private:
  std::shared_ptr<const Plan> plan_;
};

}  // namespace

Result<std::unique_ptr<Network>> load_eager(std::shared_ptr<const models::Graph> graph, const LoadOptions& options) {
  STROBE_ASSIGN(const c10::Device device, open_device(options.device));
  const bool captured = options.variant == "graph";
  if (captured && device.is_cpu())
    return unsupported(
        "engine torch:graph launches the whole network as one CUDA graph and needs a GPU (--infer-on-gpu, or device: "
        "cuda:N of a tenant); torch:eager does the same on the CPU");
  if (captured) STROBE_TRY(cuda_graph_support());
  return guarded(ErrorKind::kEngine, [&]() -> Result<std::unique_ptr<Network>> {
    auto plan = std::make_shared<Plan>();
    plan->graph = graph;
    plan->precision = options.precision;
    plan->type = scalar_type(options.precision);
    plan->device = device;
    plan->priority = options.priority;
    plan->captured = captured;
    plan->weights = tensors_of(*graph, plan->type, device);
    wait_for(device);
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
