// A physical model of one quantity of a training step or an inference: few parameters, each with a meaning, a prior and
// a unit. What it does not explain is left to a ResidualProcess (strobe_model.h).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "predict/layer_list.h"
#include "predict/measurements.h"
#include "predict/robust_fit.h"

namespace strobe::predict {

// What a model needs to know of a network, whatever the batch.
struct NetworkTerms {
  virtual ~NetworkTerms() = default;
};

// What it needs to know of a network with a batch.
struct PhysicsRow {
  std::shared_ptr<const NetworkTerms> network;
  double batch = 1;
  double held = 0;  // bytes of activations: held_bytes()
};

// A row that was measured.
struct ObservedRow {
  PhysicsRow row;
  double value = 0;
};

class Physics {
 public:
  virtual ~Physics() = default;
  virtual std::shared_ptr<const NetworkTerms> terms(const LayerList& layers) const = 0;
  // Of the parameters, in the order in which the other functions take them; all are logarithms unless said otherwise.
  virtual std::span<const std::string_view> parameter_names() const = 0;
  // Centres and deviations for a device of which these rows were measured; failed: whether some did not run there.
  virtual std::vector<Prior> priors(std::span<const ObservedRow> rows, bool failed) const = 0;
  // Logarithm of the quantity. Rows of the same network that follow each other share its work.
  virtual void predict(std::span<const double> parameters, std::span<const PhysicsRow> rows,
                       std::span<double> log_values) const = 0;
  // How much of a relative error in what a network costs shows in the quantity: 1, or less where something else bounds
  // it (a floor, a capacity).
  virtual double sensitivity(std::span<const double> parameters, const PhysicsRow& row) const = 0;
};

// Of activations and what goes with them, in a step of the setting's stage: what a caching allocator reserves for them,
// or, in the host's memory, what of them lives at once.
double held_bytes(const Setting& setting, const LayerList& layers, int64_t batch);

std::unique_ptr<Physics> make_memory_physics(const Setting& setting = {});   // memory_model.cc
std::unique_ptr<Physics> make_latency_physics(const Setting& setting = {});  // latency_model.cc

}  // namespace strobe::predict
