#include "predict/strobe_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <functional>
#include <map>
#include <string>
#include <thread>

#include "predict/conformal.h"
#include "predict/training_memory.h"

namespace strobe::predict {
namespace {

// Raised with every change of training_memory, memory_model, latency_model or features_of().
constexpr int kFeatureVersion = 2;

constexpr double kLargestResidual =
    0.5;  // of log(measured / modelled): what is further off is no property of a network
constexpr double kLeastSensitivity = 0.1;  // of a prediction to the network, for the scale of its errors
// Where a single network was fitted on, nobody knows how far off others are; this many times what its own levels are.
constexpr double kFarOfSingle = 2;
constexpr double kAdaptationShare = 0.3;  // of the priors' deviations

struct Tuning {
  // Of a row, in the fit of the parameters. Rows of a network share what it has of its own, so that each counts less
  // where there are several.
  double noise_of_one, noise_of_several;
  ProcessScale process, adaptation;
};

// Chosen by leaving out one and two of four networks (docs/prediction-models.md).
const Tuning& tuning_of(Quantity quantity) {
  static const Tuning latency = {
      .noise_of_one = 0.1,
      .noise_of_several = 0.25,
      .process = {.batch = 0.1, .network = 0.06, .both = 0.05, .noise = 0.04},
      .adaptation = {.batch = 0.03, .network = 0.1, .both = 0.05, .noise = 0.04, .network_length = 1}};
  static const Tuning memory = {
      .noise_of_one = 0.03,
      .noise_of_several = 0.03,
      .process = {.batch = 0.03, .network = 0.04, .both = 0.03, .noise = 0.025},
      .adaptation = {.batch = 0.02, .network = 0.06, .both = 0.03, .noise = 0.025, .network_length = 1}};
  return quantity == Quantity::kLatency ? latency : memory;
}

std::unique_ptr<Physics> make_physics(Quantity quantity, const Setting& setting) {
  return quantity == Quantity::kLatency ? make_latency_physics(setting) : make_memory_physics(setting);
}

// A network as the residual process sees it.
std::vector<double> features_of(const LayerList& layers) {
  return {std::log(std::max(parameter_bytes(layers), 1.0)), std::log(std::max(saved_bytes(layers), 1.0))};
}

LevelPlace place_of(const LayerList& layers) {
  return {layers.net, layers.level, features_of(layers)};
}

ProcessPoint point_of(const LayerList& layers, int64_t batch) {
  return {features_of(layers), std::log(static_cast<double>(batch))};
}

std::vector<ProcessPoint> points_of(std::span<const Sample* const> samples) {
  std::vector<ProcessPoint> points;
  for (const Sample* sample : samples) points.push_back(point_of(*sample->layers, sample->batch));
  return points;
}

// log(measured / modelled), without what is wild.
std::vector<double> residuals_of(std::span<const ObservedRow> rows, std::span<const double> modelled) {
  std::vector<double> residuals;
  for (size_t i = 0; i < rows.size(); ++i)
    residuals.push_back(std::clamp(std::log(rows[i].value) - modelled[i], -kLargestResidual, kLargestResidual));
  return residuals;
}

std::vector<PhysicsRow> inputs_of(std::span<const ObservedRow> rows) {
  std::vector<PhysicsRow> inputs;
  for (const ObservedRow& row : rows) inputs.push_back(row.row);
  return inputs;
}

std::vector<double> fit_parameters(const Physics& physics, std::span<const ObservedRow> rows,
                                   std::span<const Prior> priors, std::span<const double> offsets, double noise) {
  const std::vector<PhysicsRow> inputs = inputs_of(rows);
  std::vector<double> observed;
  for (size_t i = 0; i < rows.size(); ++i)
    observed.push_back(std::log(rows[i].value) - (offsets.empty() ? 0 : offsets[i]));
  return fit_robustly({.priors = priors,
                       .observed = observed,
                       .model = [&](std::span<const double> at,
                                    std::span<double> predicted) { physics.predict(at, inputs, predicted); },
                       .noise = noise});
}

double noise_of(Quantity quantity, std::span<const Sample* const> samples) {
  const bool several = std::any_of(samples.begin(), samples.end(), [&](const Sample* sample) {
    return sample->layers->net != samples.front()->layers->net;
  });
  return several ? tuning_of(quantity).noise_of_several : tuning_of(quantity).noise_of_one;
}

// jobs(i) for i below count, on as many threads as are asked for (0: as there are cores).
void in_parallel(size_t count, int threads, const std::function<void(size_t)>& job) {
  const size_t cores = threads > 0 ? static_cast<size_t>(threads) : std::max(1U, std::thread::hardware_concurrency());
  std::atomic<size_t> next = 0;
  const auto work = [&] {
    for (size_t i = next++; i < count; i = next++) job(i);
  };
  std::vector<std::jthread> others;
  for (size_t i = 1; i < std::min(cores, count); ++i) others.emplace_back(work);
  work();
}

}  // namespace

int StrobeModel::feature_version() const {
  return kFeatureVersion;
}

void StrobeModel::set_target(Quantity quantity, const Setting& setting) {
  quantity_ = quantity;
  setting_ = setting;
  physics_ = make_physics(quantity, setting);
}

const ProcessScale& StrobeModel::process_scale() const {
  return tuning_of(quantity_).process;
}

const ProcessScale& StrobeModel::adaptation_scale() const {
  return tuning_of(quantity_).adaptation;
}

PhysicsRow StrobeModel::row_of(const LayerList& layers, int64_t batch) const {
  return {physics_->terms(layers), static_cast<double>(batch), held_bytes(setting_, layers, batch)};
}

std::vector<double> StrobeModel::log_physics(std::span<const double> parameters,
                                             std::span<const PhysicsRow> rows) const {
  std::vector<double> values(rows.size());
  physics_->predict(parameters, rows, values);
  return values;
}

double StrobeModel::scale_of_error(std::span<const double> parameters, const PhysicsRow& row) const {
  return std::hypot(kLeastSensitivity, physics_->sensitivity(parameters, row));
}

Result<void> StrobeModel::fit(Quantity quantity, std::span<const Sample> samples) {
  set_target(quantity, samples.empty() ? Setting{} : samples.front().setting);
  adaptation_.reset();

  // Repeated measurements and the batches of a network share what they are computed from.
  std::map<const LayerList*, std::shared_ptr<const NetworkTerms>> terms;
  std::map<std::pair<const LayerList*, int64_t>, double> held;
  std::vector<const Sample*> passed;
  std::vector<ObservedRow> rows;
  std::vector<Trial> trials;
  for (const Sample& sample : samples) {
    const LayerList* layers = sample.layers.get();
    if (!terms.contains(layers)) terms[layers] = physics_->terms(*layers);
    const auto place = std::pair(layers, sample.batch);
    if (!held.contains(place)) held[place] = held_bytes(setting_, *layers, sample.batch);
    trials.push_back({log_footprint(*layers, held[place]), sample.passed});
    if (!sample.passed) continue;
    if (!(sample.value > 0)) return bad_data(fmt::format("a measurement of {} is not positive", layers->net));
    passed.push_back(&sample);
    rows.push_back({{terms[layers], static_cast<double>(sample.batch), held[place]}, sample.value});
  }
  if (passed.size() < 2)
    return bad_data(fmt::format("{} measurements of {} passed, expected 2 or more to fit a model", passed.size(),
                                to_string(quantity)));
  const bool failed = passed.size() < samples.size();
  parameters_ = fit_parameters(*physics_, rows, physics_->priors(rows, failed), {}, noise_of(quantity, passed));
  process_ = ResidualProcess(tuning_of(quantity).process, points_of(passed),
                             residuals_of(rows, log_physics(parameters_, inputs_of(rows))));
  capacity_ = learn_capacity(trials);
  learn_levels(passed, rows);
  calibrate_near(passed, rows);
  calibrate_far(passed, rows, failed);
  return {};
}

void StrobeModel::learn_levels(std::span<const Sample* const> passed, std::span<const ObservedRow> rows) {
  curves_ = {};
  std::map<const LayerList*, std::vector<std::pair<int64_t, double>>> measured;
  for (size_t i = 0; i < rows.size(); ++i)
    measured[passed[i]->layers.get()].emplace_back(passed[i]->batch, std::log(rows[i].value));
  for (const auto& [layers, log_values] : measured) curves_.set(place_of(*layers), log_values);
}

std::optional<double> StrobeModel::interpolated(const LayerList& layers, int64_t batch,
                                                std::optional<int64_t> without) const {
  return curves_.residual(
      place_of(layers), batch,
      [&](int64_t at) {
        const PhysicsRow row = row_of(layers, at);
        return log_physics(parameters_, std::span(&row, 1)).front();
      },
      without);
}

// Each level is withheld from the process and from the curves: how much either counts, and how far off the two are.
void StrobeModel::calibrate_near(std::span<const Sample* const> passed, std::span<const ObservedRow> rows) {
  std::map<const LayerList*, std::vector<size_t>> levels;
  std::vector<size_t> level_of(rows.size());
  std::map<const LayerList*, size_t> numbers;
  for (size_t i = 0; i < rows.size(); ++i) {
    const LayerList* layers = passed[i]->layers.get();
    level_of[i] = numbers.emplace(layers, numbers.size()).first->second;
    levels[layers].push_back(i);
  }
  const std::vector<double> residuals = residuals_of(rows, log_physics(parameters_, inputs_of(rows)));
  const std::vector<double> said = process_.without_group(level_of);
  std::vector<std::optional<double>> between(rows.size());
  std::vector<LevelErrors> errors;
  for (const auto& [layers, members] : levels) {
    LevelErrors level;
    for (const size_t i : members) {
      between[i] = interpolated(*layers, passed[i]->batch, layers->level);
      if (!between[i]) break;  // no row of a level at the end has neighbours on both sides
      level.model.push_back(residuals[i] - said[i]);
      level.interpolation.push_back(residuals[i] - *between[i]);
    }
    if (level.model.size() == members.size()) errors.push_back(std::move(level));
  }
  curve_share_ = interpolation_share(errors);
  std::vector<double> near;
  for (size_t i = 0; i < rows.size(); ++i) {
    const double share = between[i] ? curve_share_ : 0;
    const double off = residuals[i] - (1 - share) * said[i] - share * between[i].value_or(0);
    near.push_back(std::abs(off) / scale_of_error(parameters_, rows[i].row));
  }
  spread_.near = conformal_quantile(near);
}

// Each network is withheld from the parameters and the process.
void StrobeModel::calibrate_far(std::span<const Sample* const> passed, std::span<const ObservedRow> rows, bool failed) {
  std::map<std::string, std::vector<size_t>> networks;
  for (size_t i = 0; i < rows.size(); ++i) networks[passed[i]->layers->net].push_back(i);
  if (networks.size() < 2) {
    spread_.far = kFarOfSingle * spread_.near;
    return;
  }
  std::vector<const std::vector<size_t>*> held_back;
  for (const auto& [name, members] : networks) held_back.push_back(&members);
  std::vector<std::vector<double>> errors(held_back.size());
  in_parallel(held_back.size(), options_.threads, [&](size_t fold) {
    std::vector<bool> out(rows.size(), false);
    for (const size_t i : *held_back[fold]) out[i] = true;
    std::vector<ObservedRow> others;
    std::vector<const Sample*> their_samples;
    for (size_t i = 0; i < rows.size(); ++i) {
      if (out[i]) continue;
      others.push_back(rows[i]);
      their_samples.push_back(passed[i]);
    }
    const auto parameters =
        fit_parameters(*physics_, others, physics_->priors(others, failed), {}, noise_of(quantity_, their_samples));
    const ResidualProcess process(tuning_of(quantity_).process, points_of(their_samples),
                                  residuals_of(others, log_physics(parameters, inputs_of(others))));
    for (const size_t i : *held_back[fold]) {
      const double log_value = log_physics(parameters, std::span(&rows[i].row, 1)).front() +
                               process.mean(point_of(*passed[i]->layers, passed[i]->batch));
      errors[fold].push_back(std::abs(std::log(rows[i].value) - log_value) / scale_of_error(parameters, rows[i].row));
    }
  });
  std::vector<double> far;
  for (const auto& fold : errors) far.insert(far.end(), fold.begin(), fold.end());
  spread_.far = conformal_quantile(far);
}

Prediction StrobeModel::predict(const LayerList& layers, int64_t batch) const {
  const PhysicsRow row = row_of(layers, batch);
  const ProcessPoint point = point_of(layers, batch);
  const std::vector<double>& parameters = adaptation_ ? adaptation_->parameters : parameters_;
  double residual = process_.mean(point);
  double closeness = process_.closeness(point);
  if (adaptation_) {
    residual += adaptation_->process.mean(point);
    closeness = std::max(closeness, adaptation_->process.closeness(point));
  } else if (curve_share_ > 0) {
    if (const auto between = interpolated(layers, batch)) {
      residual = (1 - curve_share_) * residual + curve_share_ * *between;
      closeness = 1;  // nearer than the levels that told how far off this is
    }
  }
  const double log_value = log_physics(parameters, std::span(&row, 1)).front() + residual;
  const double error = (closeness * spread_.near + (1 - closeness) * std::max(spread_.far, spread_.near)) *
                       scale_of_error(parameters, row);
  Prediction prediction;
  prediction.value = std::exp(log_value);
  prediction.low = std::exp(log_value - error);
  prediction.high = std::exp(log_value + error);
  if (capacity_) prediction.fits = capacity_->chance(log_footprint(layers, row.held));
  return prediction;
}

std::vector<Prior> StrobeModel::adaptation_priors() const {
  // The deviations do not depend on the rows.
  const std::vector<ObservedRow> none = {{{physics_->terms({}), 1, 0}, 1}};
  std::vector<Prior> priors = physics_->priors(none, capacity_.has_value());
  for (size_t i = 0; i < priors.size(); ++i) priors[i] = {parameters_[i], priors[i].deviation * kAdaptationShare};
  return priors;
}

Result<void> StrobeModel::adapt(std::span<const Sample> samples) {
  adaptation_.reset();
  std::vector<ObservedRow> rows;
  std::vector<ProcessPoint> points;
  std::vector<double> offsets;
  for (const Sample& sample : samples) {
    if (!sample.passed) continue;
    if (!(sample.value > 0)) return bad_data(fmt::format("a measurement of {} is not positive", sample.layers->net));
    rows.push_back({row_of(*sample.layers, sample.batch), sample.value});
    points.push_back(point_of(*sample.layers, sample.batch));
    offsets.push_back(process_.mean(points.back()));
  }
  if (rows.empty()) return {};
  const ProcessScale& scale = adaptation_scale();
  // What the new network has of its own shows in every row alike, so the parameters trust them only as far.
  std::vector<double> parameters =
      fit_parameters(*physics_, rows, adaptation_priors(), offsets, std::hypot(scale.noise, scale.network));
  std::vector<double> modelled = log_physics(parameters, inputs_of(rows));
  for (size_t i = 0; i < rows.size(); ++i) modelled[i] += offsets[i];
  ResidualProcess process(scale, std::move(points), residuals_of(rows, modelled));
  adaptation_ = Adaptation{std::move(parameters), std::move(process)};
  return {};
}

double StrobeModel::adaptation_noise() const {
  return adaptation_scale().noise;
}

std::vector<double> StrobeModel::adaptation_covariance(std::span<const Sample> samples) const {
  constexpr double kStep = 1e-5;
  const size_t n = samples.size();
  std::vector<PhysicsRow> rows;
  std::vector<ProcessPoint> points;
  for (const Sample& sample : samples) {
    rows.push_back(row_of(*sample.layers, sample.batch));
    points.push_back(point_of(*sample.layers, sample.batch));
  }
  const ResidualProcess unknowing(adaptation_scale(), {}, {});
  std::vector<double> covariance(n * n);
  for (size_t i = 0; i < n; ++i) {
    for (size_t j = 0; j < n; ++j) covariance[i * n + j] = unknowing.covariance(points[i], points[j]);
  }
  const std::vector<double> here = log_physics(parameters_, rows);
  const std::vector<Prior> priors = adaptation_priors();
  std::vector<double> moved = parameters_;
  for (size_t k = 0; k < priors.size(); ++k) {
    moved[k] = parameters_[k] + kStep;
    std::vector<double> slope = log_physics(moved, rows);
    moved[k] = parameters_[k];
    for (size_t i = 0; i < n; ++i) slope[i] = (slope[i] - here[i]) / kStep * priors[k].deviation;
    for (size_t i = 0; i < n; ++i) {
      for (size_t j = 0; j < n; ++j) covariance[i * n + j] += slope[i] * slope[j];
    }
  }
  return covariance;
}

std::unique_ptr<Predictor> make_strobe_model(const PredictorOptions& options) {
  return std::make_unique<StrobeModel>(options);
}

}  // namespace strobe::predict
