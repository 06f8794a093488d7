#include "train.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>
#include <ATen/autocast_mode.h>
#include <c10/core/AutogradState.h>
#include <c10/core/GradMode.h>

#include <cmath>
#include <mutex>
#include <optional>
#include <utility>

#include "device.h"
#include "engines/request.h"
#include "error.h"
#include "lidar_loss.h"
#include "threads.h"
#include "trained_graph.h"
#include "yolo_loss.h"

namespace strobe::engines::torch_plugin {
namespace {

using models::LayerId;

constexpr double kBeta2 = 0.999, kEpsilon = 1e-8;

// bfloat16 in those operators that ATen thinks safe on that kind of device, for as long as this lives.
class MixedPrecision {
 public:
  MixedPrecision(bool on, c10::DeviceType device) : on_(on), device_(device) {
    if (!on_) return;
    at::autocast::set_autocast_dtype(device_, at::kBFloat16);
    at::autocast::set_autocast_enabled(device_, true);
  }
  ~MixedPrecision() {
    if (!on_) return;
    at::autocast::set_autocast_enabled(device_, false);
    at::autocast::clear_cache();
  }
  MixedPrecision(const MixedPrecision&) = delete;
  MixedPrecision& operator=(const MixedPrecision&) = delete;

 private:
  bool on_;
  c10::DeviceType device_;
};

// The backward pass on the thread that asks for it, for as long as this lives. ATen has threads of its own for GPUs:
// what they launched would belong to no range of ours.
class OnThisThread {
 public:
  OnThisThread() { state().set_multithreading_enabled(false); }
  ~OnThisThread() { state().set_multithreading_enabled(before_); }
  OnThisThread(const OnThisThread&) = delete;
  OnThisThread& operator=(const OnThisThread&) = delete;

 private:
  static c10::AutogradState& state() { return c10::AutogradState::get_tls_state(); }
  const bool before_ = state().get_multithreading_enabled();
};

// Random numbers of the device's own kind, apart from everybody else's.
at::Generator generator_of(c10::Device device, uint64_t seed) {
  if (device.is_cpu()) return at::detail::createCPUGenerator(seed);
  at::Generator own = at::globalContext().defaultGenerator(device).clone();
  const std::lock_guard lock(own.mutex());
  own.set_current_seed(seed);
  return own;
}

// What the loss is made of: the outputs of the network, by kind.
struct Ending {
  LayerId logits = -1;         // of a classifier
  std::vector<LayerId> heads;  // of a detector
  int64_t classes = 0;
  AnchorHead anchors;  // of a LiDAR detector
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

class TorchTrainer : public Trainer {
 public:
  TorchTrainer(std::shared_ptr<const models::Graph> graph, Ending ending, const TrainOptions& options,
               c10::Device device)
      : lane_(device, 0), ending_(std::move(ending)), options_(options) {
    const auto stream = lane_.guard();
    const bool keeps_square = options.optimizer == Optimizer::kAdamW;
    if (options.pillar_net) pillar_net_.emplace(options.pillar_net, keeps_square, device, parameters_);
    network_.emplace(std::move(graph), keeps_square, device, parameters_);
    step_ = at::zeros({}, at::TensorOptions(at::kFloat).device(device));
    LoadOptions threads;
    threads.threads_per_session = options.threads;
    threads_ = session_threads(threads);
    generator_ = generator_of(device, options.seed);
    lane_.wait();
  }

  Result<double> forward(std::span<const float> input, std::span<const Target> targets) override {
    const models::Shape& shape = (pillar_net_ ? *pillar_net_ : *network_).graph().input_shape();
    const auto items = static_cast<int64_t>(targets.size());
    if (items == 0 || static_cast<int64_t>(input.size()) != items * shape.elements())
      return Error(ErrorKind::kInternal, "training step: " + std::to_string(input.size()) + " values for " +
                                             std::to_string(items) + " targets");
    STROBE_TRY(check_targets(targets));
    loss_.reset();  // of a step that was not finished: what it holds is in the way of this one
    return on_device([&]() -> Result<double> {
      loss_ = loss_of(run_networks(input, shape, targets), targets);
      const double value = loss_.item<double>();
      if (!std::isfinite(value))
        return engine_error("torch: the loss became " + std::to_string(value) + "; a lower learning rate may help");
      return value;
    });
  }

  Result<void> backward() override {
    auto done = on_device([&]() -> Result<void> {
      const OnThisThread one;
      std::exchange(loss_, {}).backward();
      lane_.wait();
      return {};
    });
    if (!done) forget_gradients();  // what is there is a part of them
    return done;
  }

  Result<void> update(double learning_rate) override {
    return on_device([&]() -> Result<void> {
      const c10::NoGradGuard no_gradients;
      clip();
      step_ += 1;
      for (const bool decays : {true, false}) update_group(decays, learning_rate);
      first_update_ = false;
      forget_gradients();
      lane_.wait();
      return {};
    });
  }

  Result<models::Graph> graph() const override {
    return on_device([&]() -> Result<models::Graph> { return network_->with_weights(); });
  }

  Result<std::vector<models::Graph>> graphs() const override {
    return on_device([&]() -> Result<std::vector<models::Graph>> {
      std::vector<models::Graph> all;
      if (pillar_net_) all.push_back(pillar_net_->with_weights());
      all.push_back(network_->with_weights());
      return all;
    });
  }

  Result<std::map<std::string, models::Tensor>> optimizer_state() const override {
    return on_device([&]() -> Result<std::map<std::string, models::Tensor>> {
      std::map<std::string, models::Tensor> state;
      state["step"] = *copy_of(step_.reshape({1}));
      for (const Parameter& parameter : parameters_) {
        if (parameter.mean.defined()) state[parameter.name + kMean] = *copy_of(parameter.mean);
        if (parameter.square.defined()) state[parameter.name + kSquare] = *copy_of(parameter.square);
      }
      return state;
    });
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
    return on_device([&]() -> Result<void> {
      const c10::NoGradGuard no_gradients;
      STROBE_TRY(take("step", step_));
      first_update_ = state.at("step").values[0] == 0;
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

  // Calls `action` with the threads and in the stream of this trainer.
  template <typename Action>
  auto on_device(Action&& action) const -> decltype(action()) {
    auto done = guarded(ErrorKind::kEngine, [&]() -> decltype(action()) {
      use_threads(threads_);
      const auto stream = lane_.guard();
      return action();
    });
    if (!done) lane_.settle();
    return done;
  }

  Result<void> check_targets(std::span<const Target> targets) const {
    const auto check = [&](int class_id) -> Result<void> {
      if (class_id >= 0 && class_id < ending_.classes) return {};
      return usage_error("a target has class " + std::to_string(class_id) + ", the network has " +
                         std::to_string(ending_.classes) + " classes");
    };
    for (const Target& target : targets) {
      if (pillar_net_) {
        STROBE_TRY(check_lidar_target(ending_.anchors, network_->graph(), pillar_net_->graph(), target));
        continue;
      }
      if (ending_.heads.empty()) STROBE_TRY(check(target.class_id));
      for (const TargetBox& box : target.boxes) STROBE_TRY(check(box.class_id));
    }
    return {};
  }

  // Every layer's output of the network that the loss is of.
  std::vector<at::Tensor> run_networks(std::span<const float> input, const models::Shape& shape,
                                       std::span<const Target> targets) {
    const MixedPrecision mixed(options_.mixed_precision, lane_.device().type());
    if (!pillar_net_) {
      const auto items = static_cast<int64_t>(targets.size());
      return network_->run(lane_.bring(input.data(), {items, shape.channels, shape.height, shape.width}), generator_);
    }
    const auto layers = pillar_net_->run(lane_.bring(joined_pillars(input, shape, targets)), generator_);
    const at::Tensor& pillars = layers[static_cast<size_t>(pillar_net_->graph().outputs.front())];
    return network_->run(scattered(pillars, network_->graph().input_shape(), targets), generator_);
  }

  at::Tensor loss_of(const std::vector<at::Tensor>& values, std::span<const Target> targets) const {
    const models::Graph& graph = network_->graph();
    if (pillar_net_) {
      const auto output = [&](size_t i) { return values[static_cast<size_t>(graph.outputs[i])]; };
      return anchor_loss(ending_.anchors, output(0), output(1), output(2), targets);
    }
    if (ending_.heads.empty()) {
      std::vector<int64_t> classes;
      for (const Target& target : targets) classes.push_back(target.class_id);
      const at::Tensor& logits = values[static_cast<size_t>(ending_.logits)];
      return at::cross_entropy_loss(logits.to(at::kFloat).flatten(1), brought(classes, lane_.device()));
    }
    std::vector<HeadMap> heads;
    for (const LayerId id : ending_.heads)
      heads.push_back({&std::get<models::YoloHead>(graph.layer(id).operation), values[static_cast<size_t>(id)]});
    return yolo_loss(heads, graph.input_shape(), targets);
  }

  void forget_gradients() {
    for (Parameter& parameter : parameters_) parameter.value.mutable_grad().reset();
  }

  void clip() {
    if (options_.clip_norm <= 0) return;
    std::vector<at::Tensor> gradients;
    for (const Parameter& parameter : parameters_)
      if (parameter.value.grad().defined()) gradients.push_back(parameter.value.grad());
    if (gradients.empty()) return;
    const at::Tensor norm = at::stack(at::_foreach_norm(gradients)).norm();
    if (!lane_.device().is_cpu()) {  // without asking the device how much it is
      at::_foreach_mul_(gradients, (options_.clip_norm / norm).clamp_max(1));
    } else if (const auto value = norm.item<double>(); value > options_.clip_norm) {
      at::_foreach_mul_(gradients, options_.clip_norm / value);
    }
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
      if (options_.momentum == 0) means.clear();  // ATen takes none without momentum
      at::_fused_sgd_(values, gradients, means, decay, options_.momentum, learning_rate, /*dampening=*/0,
                      /*nesterov=*/options_.momentum > 0, /*maximize=*/false, /*is_first_step=*/first_update_);
    }
  }

  Lane lane_;
  std::optional<TrainedGraph> pillar_net_, network_;  // the latter always
  Ending ending_;
  TrainOptions options_;
  int threads_ = 1;
  std::vector<Parameter> parameters_;
  at::Tensor step_, loss_;
  bool first_update_ = true;
  at::Generator generator_;
};

}  // namespace

Result<std::unique_ptr<Trainer>> make_trainer(std::shared_ptr<const models::Graph> graph, const TrainOptions& options,
                                              c10::Device device) {
  Ending ending;
  if (options.pillar_net) {
    STROBE_ASSIGN(ending.anchors, anchor_head_of(*graph, *options.pillar_net));
  } else {
    STROBE_ASSIGN(ending, ending_of(*graph));
  }
  return guarded(ErrorKind::kEngine, [&]() -> Result<std::unique_ptr<Trainer>> {
    return std::unique_ptr<Trainer>(
        std::make_unique<TorchTrainer>(std::move(graph), std::move(ending), options, device));
  });
}

}  // namespace strobe::engines::torch_plugin
