// One step of a network on an engine: a training step or an inference, on random input.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "measure/profile_config.h"
#include "strobe/base/result.h"
#include "strobe/engines/engine.h"
#include "strobe/models/graph.h"

namespace strobe::measure {

// The network of a choice at a pruning level. Errors: as models::open_graph; kUnsupported (cannot be pruned).
Result<models::Graph> open_at_level(const NetworkChoice& choice, int level, const ProfileConfig& config);

class NetworkStep {
 public:
  virtual ~NetworkStep() = default;
  // Returns when the device has done it.
  // Training: forward, loss (cross-entropy of a classifier), gradients cleared, backward, SGD update with momentum 0.9
  // and weight decay 5e-4, float32. Inference: one batch. Errors: kEngine.
  virtual Result<void> run() = 0;
};

// Loads it; the first run may still compile. Errors: as Engine::load and Engine::train.
Result<std::unique_ptr<NetworkStep>> load_step(engines::Engine& engine, models::Graph graph, Stage stage, int64_t batch,
                                               int threads, const std::string& device = "cpu");

// config.threads, or the allowed cores.
int thread_count(const ProfileConfig& config);

}  // namespace strobe::measure
