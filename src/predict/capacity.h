// Whether a batch runs at all: from what a training step holds of the device's memory against a threshold that is
// learned from what ran and what did not.
#pragma once

#include <optional>
#include <span>

#include "predict/layer_list.h"

namespace strobe::predict {

// Logarithm of the bytes that a step needs, whatever the device: activations as the allocator holds them (reserved, of
// training_step_memory()) and parameters with their gradients and momentum.
double log_footprint(const LayerList& layers, double reserved);

struct Trial {
  double log_footprint = 0;
  bool passed = false;
};

struct Capacity {
  double log_threshold = 0;
  double width = 0.05;  // of the logistic function around it

  double chance(double log_footprint) const;  // that it runs
};

// The threshold that tells most trials rightly (the middle of the best gap), and the width that makes them likeliest.
// Nothing where none failed or none passed.
std::optional<Capacity> learn_capacity(std::span<const Trial> trials);

}  // namespace strobe::predict
