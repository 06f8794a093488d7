// The suite's own model of memory and latency: a physical model of few parameters (memory_model.cc, latency_model.cc),
// a Gaussian process on what it leaves over, interpolation between the levels of a network that was measured, intervals
// from networks that were held back. docs/prediction-models.md.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <vector>

#include "predict/capacity.h"
#include "predict/level_curves.h"
#include "predict/model.h"
#include "predict/physics.h"
#include "predict/residual_process.h"

namespace strobe::predict {

class StrobeModel : public Predictor {
 public:
  explicit StrobeModel(const PredictorOptions& options) : options_(options) {}

  int feature_version() const override;
  Result<void> fit(Quantity quantity, std::span<const Sample> samples) override;
  Prediction predict(const LayerList& layers, int64_t batch) const override;
  nlohmann::json to_json() const override;
  Result<void> from_json(const nlohmann::json& json) override;

  // Learns from a few measurements of another device or an unseen network: the parameters may move by a share of their
  // priors, and what is left over goes into a process of its own. What failed is passed over. Only once fitted or read;
  // each call starts again from what was fitted. Errors: kBadData where a passed value is not positive.
  Result<void> adapt(std::span<const Sample> samples);
  // Covariances of the logarithms of these samples' predictions by what the parameters and the adaptation's process may
  // still do, before adapt(): samples x samples in rows. Values of the samples are not looked at.
  std::vector<double> adaptation_covariance(std::span<const Sample> samples) const;
  double adaptation_noise() const;  // standard deviation of a measurement, in its logarithm

 private:
  struct Spread {
    double near = 0, far = 0;  // errors that 90 of 100 stay below: of networks that were fitted on, of others
  };
  struct Adaptation {
    std::vector<double> parameters;
    ResidualProcess process;
  };

  void set_target(Quantity quantity, const Setting& setting);  // and the physical model of it; forgets nothing else
  const ProcessScale& process_scale() const;
  const ProcessScale& adaptation_scale() const;
  PhysicsRow row_of(const LayerList& layers, int64_t batch) const;
  std::vector<double> log_physics(std::span<const double> parameters, std::span<const PhysicsRow> rows) const;
  std::vector<Prior> adaptation_priors() const;
  // log(value / physics) between the measured levels of the network; nothing where there are none around this one.
  std::optional<double> interpolated(const LayerList& layers, int64_t batch,
                                     std::optional<int64_t> without = std::nullopt) const;
  void learn_levels(std::span<const Sample* const> passed, std::span<const ObservedRow> rows);
  double scale_of_error(std::span<const double> parameters, const PhysicsRow& row) const;
  void calibrate_near(std::span<const Sample* const> passed, std::span<const ObservedRow> rows);
  void calibrate_far(std::span<const Sample* const> passed, std::span<const ObservedRow> rows, bool failed);

  PredictorOptions options_;
  Quantity quantity_ = Quantity::kLatency;
  Setting setting_;
  std::unique_ptr<Physics> physics_;
  std::vector<double> parameters_;
  ResidualProcess process_;
  LevelCurves curves_;
  double curve_share_ = 0;  // of curves_ beside the process
  Spread spread_;
  std::optional<Capacity> capacity_;
  std::optional<Adaptation> adaptation_;
};

std::unique_ptr<Predictor> make_strobe_model(const PredictorOptions& options);

}  // namespace strobe::predict
