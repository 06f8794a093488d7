#include "train.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/autocast_mode.h>
#include <c10/core/GradMode.h>

#include <cmath>

#include "engines/request.h"
#include "error.h"
#include "operations.h"
#include "threads.h"
#include "yolo_loss.h"

namespace strobe::engines::torch_plugin {
namespace {

using models::LayerId;

constexpr double kNormMomentum = 0.1;  // of the running means of batch norm, as PyTorch has it
constexpr double kBeta2 = 0.999, kEpsilon = 1e-8;

// bfloat16 in those operators that ATen thinks safe, for as long as this lives.
class MixedPrecision {
 public:
  explicit MixedPrecision(bool on) : on_(on) {
    if (!on_) return;
    at::autocast::set_autocast_dtype(at::kCPU, at::kBFloat16);
    at::autocast::set_autocast_enabled(at::kCPU, true);
  }
  ~MixedPrecision() {
    if (!on_) return;
    at::autocast::set_autocast_enabled(at::kCPU, false);
    at::autocast::clear_cache();
  }
  MixedPrecision(const MixedPrecision&) = delete;
  MixedPrecision& operator=(const MixedPrecision&) = delete;

 private:
  bool on_;
};

// What the loss is made of: the outputs of the network, by kind.
struct Ending {
  LayerId logits = -1;         // of a classifier
  std::vector<LayerId> heads;  // of a detector
  int64_t classes = 0;
};

Result<Ending> ending_of(const models::Graph& graph) {
  Ending ending;
  for (const LayerId id : graph.outputs) {
    const models::Layer& layer = graph.layer(id);
    if (const auto* head = std::get_if<models::YoloHead>(&layer.operation)) {
      if (head->new_coords) return unsupported("heads of Scaled-YOLOv4 (new_coords) cannot be trained");
      ending.heads.push_back(id);
      ending.classes = head->classes;
    } else if (layer.output.height == 1 && layer.output.width == 1) {
      // Cross-entropy takes its own logarithm of the softmax.
      ending.logits = std::holds_alternative<models::Softmax>(layer.operation) ? layer.inputs.front() : id;
      ending.classes = layer.output.channels;
    }
  }
  const bool classifier = ending.logits >= 0 && ending.heads.empty() && graph.outputs.size() == 1;
  const bool detector = ending.logits < 0 && ending.heads.size() == graph.outputs.size();
  if (classifier || detector) return ending;
  return unsupported("network " + graph.name +
                     " has no loss: training knows classifiers (one vector) and detectors (YOLO heads)");
}

struct Parameter {
  std::string name;  // "layer1.0.conv1.weight"
  at::Tensor value;
  bool decays = false;
  at::Tensor mean, square;  // the optimizer's: momentum buffer or first moment; second moment
};

class TorchTrainer : public Trainer {
 public:
  TorchTrainer(std::shared_ptr<const models::Graph> graph, Ending ending, const TrainOptions& options)
      : graph_(std::move(graph)), ending_(std::move(ending)), options_(options) {
    weights_ = tensors_of(*graph_, at::kFloat);
    for (size_t id = 0; id < weights_.size(); ++id) {
      const std::string& layer = graph_->layers[id].name;
      LayerWeights& own = weights_[id];
      add(layer + ".weight", own.weight, true);
      add(layer + ".bias", own.bias, false);
      add(layer + ".weight", own.scale, false);
      add(layer + ".bias", own.shift, false);
      if (own.mean.defined()) own.mean = own.mean.clone();
      if (own.variance.defined()) own.variance = own.variance.clone();
    }
    step_ = at::zeros({});
    LoadOptions threads;
    threads.threads_per_session = options.threads;
    threads_ = session_threads(threads);
    generator_ = at::detail::createCPUGenerator(options.seed);
  }

  Result<double> forward(std::span<const float> input, std::span<const Target> targets) override {
    const models::Shape& shape = graph_->input_shape();
    const auto items = static_cast<int64_t>(targets.size());
    if (items == 0 || static_cast<int64_t>(input.size()) != items * shape.elements())
      return Error(ErrorKind::kInternal, "training step: " + std::to_string(input.size()) + " values for " +
                                             std::to_string(items) + " targets");
    STROBE_TRY(check_targets(targets));
    return guarded(ErrorKind::kEngine, [&]() -> Result<double> {
      use_threads(threads_);
      const at::Tensor picture = at::from_blob(const_cast<float*>(input.data()),
                                               {items, shape.channels, shape.height, shape.width}, at::kFloat);
      loss_ = loss_of(run_layers(picture), targets);
      const double value = loss_.item<double>();
      if (!std::isfinite(value))
        return engine_error("torch: the loss became " + std::to_string(value) + "; a lower learning rate may help");
      return value;
    });
  }

  Result<void> backward() override {
    return guarded(ErrorKind::kEngine, [&]() -> Result<void> {
      use_threads(threads_);
      loss_.backward();
      loss_.reset();
      return {};
    });
  }

  Result<void> update(double learning_rate) override {
    return guarded(ErrorKind::kEngine, [&]() -> Result<void> {
      use_threads(threads_);
      const c10::NoGradGuard no_gradients;
      clip();
      step_ += 1;
      for (const bool decays : {true, false}) update_group(decays, learning_rate);
      for (Parameter& parameter : parameters_) parameter.value.mutable_grad().reset();
      return {};
    });
  }

  Result<models::Graph> graph() const override {
    return guarded(ErrorKind::kEngine, [&]() -> Result<models::Graph> {
      models::Graph trained = *graph_;
      trained.trained = true;
      for (size_t id = 0; id < weights_.size(); ++id) {
        const LayerWeights& own = weights_[id];
        models::Operation& operation = trained.layers[id].operation;
        if (auto* convolution = std::get_if<models::Convolution>(&operation)) {
          convolution->weight = copy_of(own.weight);
          convolution->bias = copy_of(own.bias);
        } else if (auto* up = std::get_if<models::TransposedConvolution>(&operation)) {
          up->weight = copy_of(own.weight);
          up->bias = copy_of(own.bias);
        } else if (auto* linear = std::get_if<models::Linear>(&operation)) {
          linear->weight = copy_of(own.weight);
          linear->bias = copy_of(own.bias);
        } else if (auto* norm = std::get_if<models::BatchNorm>(&operation)) {
          norm->scale = copy_of(own.scale);
          norm->shift = copy_of(own.shift);
          norm->mean = copy_of(own.mean);
          norm->variance = copy_of(own.variance);
        }
      }
      return trained;
    });
  }

  Result<std::map<std::string, models::Tensor>> optimizer_state() const override {
    std::map<std::string, models::Tensor> state;
    state["step"] = *copy_of(step_.reshape({1}));
    for (const Parameter& parameter : parameters_) {
      if (parameter.mean.defined()) state[parameter.name + kMean] = *copy_of(parameter.mean);
      if (parameter.square.defined()) state[parameter.name + kSquare] = *copy_of(parameter.square);
    }
    return state;
  }

  Result<void> set_optimizer_state(const std::map<std::string, models::Tensor>& state) override {
    const auto take = [&](const std::string& name, at::Tensor& into) -> Result<void> {
      const auto found = state.find(name);
      if (found == state.end()) return bad_data("no tensor '" + name + "': saved by another optimizer or network?");
      if (static_cast<int64_t>(found->second.values.size()) != into.numel())
        return bad_data("tensor '" + name + "' has another size than the network's");
      into.copy_(at::from_blob(const_cast<float*>(found->second.values.data()), into.sizes(), at::kFloat));
      return {};
    };
    return guarded(ErrorKind::kEngine, [&]() -> Result<void> {
      const c10::NoGradGuard no_gradients;
      STROBE_TRY(take("step", step_));
      for (Parameter& parameter : parameters_) {
        if (parameter.mean.defined()) STROBE_TRY(take(parameter.name + kMean, parameter.mean));
        if (parameter.square.defined()) STROBE_TRY(take(parameter.name + kSquare, parameter.square));
      }
      return {};
    });
  }

 private:
  static constexpr const char* kMean = "#mean";
  static constexpr const char* kSquare = "#square";

  // A private copy that gradients are kept for: the graph's own memory is shared and constant.
  void add(std::string name, at::Tensor& tensor, bool decays) {
    if (!tensor.defined()) return;
    tensor = tensor.clone();
    tensor.set_requires_grad(true);
    Parameter parameter{std::move(name), tensor, decays, at::zeros_like(tensor.detach()), {}};
    if (options_.optimizer == Optimizer::kAdamW) parameter.square = at::zeros_like(tensor.detach());
    parameters_.push_back(std::move(parameter));
  }

  static models::Weights copy_of(const at::Tensor& tensor) {
    if (!tensor.defined()) return nullptr;
    const at::Tensor values = tensor.detach().to(at::kFloat).contiguous();
    const auto* begin = values.const_data_ptr<float>();
    return std::make_shared<const models::Tensor>(
        models::Tensor{values.sizes().vec(), std::vector<float>(begin, begin + values.numel())});
  }

  Result<void> check_targets(std::span<const Target> targets) const {
    const auto check = [&](int class_id) -> Result<void> {
      if (class_id >= 0 && class_id < ending_.classes) return {};
      return usage_error("a target has class " + std::to_string(class_id) + ", the network has " +
                         std::to_string(ending_.classes) + " classes");
    };
    for (const Target& target : targets) {
      if (ending_.heads.empty()) STROBE_TRY(check(target.class_id));
      for (const TargetBox& box : target.boxes) STROBE_TRY(check(box.class_id));
    }
    return {};
  }

  // Every layer's output; those that the backward pass does not need are freed by the automatic differentiation.
  std::vector<at::Tensor> run_layers(const at::Tensor& picture) {
    const MixedPrecision mixed(options_.mixed_precision);
    std::vector<at::Tensor> values(graph_->layers.size());
    std::vector<at::Tensor> arguments;
    for (size_t id = 0; id < values.size(); ++id) {
      const models::Layer& layer = graph_->layers[id];
      arguments.clear();
      if (id == 0) arguments.push_back(picture);
      for (const LayerId source : layer.inputs) arguments.push_back(values[static_cast<size_t>(source)]);
      values[id] = run_layer(id, layer, arguments);
    }
    return values;
  }

  at::Tensor run_layer(size_t id, const models::Layer& layer, std::span<const at::Tensor> inputs) {
    LayerWeights& own = weights_[id];
    if (const auto* norm = std::get_if<models::BatchNorm>(&layer.operation)) {
      // One value a channel has no variance: PyTorch refuses it, and so would the statistics be meaningless.
      const at::Tensor& x = inputs.front();
      const bool several = x.size(0) * x.size(2) * x.size(3) > 1;
      return at::batch_norm(x, own.scale, own.shift, own.mean, own.variance, /*training=*/several, kNormMomentum,
                            norm->epsilon, /*cudnn_enabled=*/false);
    }
    if (const auto* dropout = std::get_if<models::Dropout>(&layer.operation)) {
      const at::Tensor& x = inputs.front();
      const double kept = 1 - dropout->probability;
      return x * at::empty(x.sizes(), x.options()).bernoulli_(kept, generator_) / kept;
    }
    return apply(layer, own, inputs);
  }

  at::Tensor loss_of(const std::vector<at::Tensor>& values, std::span<const Target> targets) const {
    if (ending_.heads.empty()) {
      std::vector<int64_t> classes;
      for (const Target& target : targets) classes.push_back(target.class_id);
      const at::Tensor& logits = values[static_cast<size_t>(ending_.logits)];
      return at::cross_entropy_loss(logits.to(at::kFloat).flatten(1), at::tensor(classes, at::kLong));
    }
    std::vector<HeadMap> heads;
    for (const LayerId id : ending_.heads)
      heads.push_back({&std::get<models::YoloHead>(graph_->layer(id).operation), values[static_cast<size_t>(id)]});
    return yolo_loss(heads, graph_->input_shape(), targets);
  }

  void clip() {
    if (options_.clip_norm <= 0) return;
    std::vector<at::Tensor> gradients;
    for (const Parameter& parameter : parameters_)
      if (parameter.value.grad().defined()) gradients.push_back(parameter.value.grad());
    if (gradients.empty()) return;
    const double norm = at::stack(at::_foreach_norm(gradients)).norm().item<double>();
    if (norm > options_.clip_norm) at::_foreach_mul_(gradients, options_.clip_norm / norm);
  }

  // ATen's fused optimizers: one call for all tensors that share their settings.
  void update_group(bool decays, double learning_rate) {
    std::vector<at::Tensor> values, gradients, means, squares, steps;
    for (const Parameter& parameter : parameters_) {
      if (parameter.decays != decays || !parameter.value.grad().defined()) continue;
      values.push_back(parameter.value);
      gradients.push_back(parameter.value.grad());
      means.push_back(parameter.mean);
      squares.push_back(parameter.square);
      steps.push_back(step_);
    }
    if (values.empty()) return;
    const double decay = decays ? options_.weight_decay : 0;
    if (options_.optimizer == Optimizer::kAdamW) {
      at::_fused_adamw_(values, gradients, means, squares, {}, steps, learning_rate, options_.momentum, kBeta2, decay,
                        kEpsilon, /*amsgrad=*/false, /*maximize=*/false);
    } else {
      const bool first = step_.item<float>() == 1;
      at::_fused_sgd_(values, gradients, means, decay, options_.momentum, learning_rate, /*dampening=*/0,
                      /*nesterov=*/options_.momentum > 0, /*maximize=*/false, /*is_first_step=*/first);
    }
  }

  std::shared_ptr<const models::Graph> graph_;
  Ending ending_;
  TrainOptions options_;
  int threads_ = 1;
  std::vector<LayerWeights> weights_;
  std::vector<Parameter> parameters_;
  at::Tensor step_, loss_;
  at::Generator generator_;
};

}  // namespace

Result<std::unique_ptr<Trainer>> make_trainer(std::shared_ptr<const models::Graph> graph, const TrainOptions& options) {
  STROBE_ASSIGN(Ending ending, ending_of(*graph));
  return guarded(ErrorKind::kEngine, [&]() -> Result<std::unique_ptr<Trainer>> {
    return std::unique_ptr<Trainer>(std::make_unique<TorchTrainer>(std::move(graph), std::move(ending), options));
  });
}

}  // namespace strobe::engines::torch_plugin
