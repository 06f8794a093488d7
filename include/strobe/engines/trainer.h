// Training of a network, step by step: what an engine that can train gives beside inference.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "strobe/base/result.h"
#include "strobe/models/anchor_targets.h"
#include "strobe/models/graph.h"

namespace strobe::engines {

enum class Optimizer : uint8_t { kSgd, kAdamW };

struct TrainOptions {
  int64_t batch = 1;           // of every step; a shorter last one is allowed
  int threads = 0;             // 0: the allowed cores
  std::string device = "cpu";  // where it trains: "cpu", or "cuda:N"
  // Convolutions and linear layers compute in bfloat16, the weights and their updates stay float32.
  bool mixed_precision = false;
  Optimizer optimizer = Optimizer::kAdamW;
  double momentum = 0.9;       // of kSgd, with Nesterov's correction; beta1 of kAdamW
  double weight_decay = 5e-4;  // of weights, not of biases and norms
  double clip_norm = 10;       // gradients are scaled down to this global norm; 0: never
  uint64_t seed = 1;           // of dropout
  // Of a LiDAR detector: the net whose pillars are put onto the input of the trained network; trained with it.
  std::shared_ptr<const models::Graph> pillar_net;
};

// A box in pixels of the network's input, by its centre.
struct TargetBox {
  int class_id = 0;
  float x = 0, y = 0, width = 0, height = 0;
};
// What one item of a batch shows: its class, for a classifier; its boxes, for a detector with YOLO heads; for a LiDAR
// detector the cells that its pillars go to (row * columns + column, one a pillar) and what its anchors learn.
struct Target {
  int class_id = -1;
  std::vector<TargetBox> boxes = {};
  std::vector<int32_t> cells = {};
  models::AnchorTargets anchors = {};
};

// A network being trained. Used by one thread at a time. A step is forward, backward, update, in this order: apart so
// that each has its own place on the timeline. On a GPU each returns when its work there is done, and does not end in
// the next one's time. All tensors here are in host memory, wherever the network is trained, so that what one device
// has learned goes on on another.
class Trainer {
 public:
  virtual ~Trainer() = default;
  // input: items x channels x height x width, of the pillar net where there is one; it stays as it is until backward
  // has returned. Returns the mean loss over the items: cross-entropy of a classifier; of a detector the sum of box,
  // objectness (of a LiDAR detector: direction) and class loss over the assigned anchors. Errors: kUsage (a class the
  // network does not have, targets that do not fit it), kEngine, kUnsupported (the device's memory is full); a loss
  // that is not finite is an error, since nothing after it means anything.
  virtual Result<double> forward(std::span<const float> input, std::span<const Target> targets) = 0;
  virtual Result<void> backward() = 0;
  virtual Result<void> update(double learning_rate) = 0;

  // The network with the weights as they are now.
  virtual Result<models::Graph> graph() const = 0;
  // Every network that is trained: the pillar net first, where there is one.
  virtual Result<std::vector<models::Graph>> graphs() const = 0;
  // What the optimizer remembers, by tensor name: kept beside the weights to go on later as if nothing had happened.
  virtual Result<std::map<std::string, models::Tensor>> optimizer_state() const = 0;
  virtual Result<void> set_optimizer_state(const std::map<std::string, models::Tensor>& state) = 0;
};

}  // namespace strobe::engines
