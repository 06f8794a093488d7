#include "predict/few_shot.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <random>

namespace strobe::predict {
namespace {

std::vector<Sample> at(std::span<const Sample> samples, std::span<const size_t> places) {
  std::vector<Sample> chosen;
  for (const size_t i : places) chosen.push_back(samples[i]);
  return chosen;
}

// The error on what is not among the measured ones, once the model has learned from these.
Result<double> error_after(StrobeModel& model, std::span<const Sample> samples, std::span<const size_t> measured) {
  STROBE_TRY(model.adapt(at(samples, measured)));
  std::vector<bool> known(samples.size(), false);
  for (const size_t i : measured) known[i] = true;
  double sum = 0;
  size_t count = 0;
  for (size_t i = 0; i < samples.size(); ++i) {
    if (known[i]) continue;
    const double value = model.predict(*samples[i].layers, samples[i].batch).value;
    sum += 100 * std::abs(value - samples[i].value) / samples[i].value;
    ++count;
  }
  return sum / static_cast<double>(count);
}

// The first `count` of a shuffle, the same on every machine.
std::vector<size_t> at_random(size_t of, size_t count, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<size_t> places(of);
  for (size_t i = 0; i < of; ++i) places[i] = i;
  for (size_t i = 0; i < count; ++i) std::swap(places[i], places[i + random() % (of - i)]);
  places.resize(count);
  return places;
}

std::vector<Sample> passed_of(const Dataset& dataset, const std::string& net, bool of_net) {
  std::vector<Sample> samples;
  for (const Sample& sample : dataset.samples) {
    if (sample.passed && (sample.layers->net == net) == of_net) samples.push_back(sample);
  }
  return samples;
}

}  // namespace

std::vector<size_t> choose_measurements(const StrobeModel& model, std::span<const Sample> candidates, size_t count) {
  const size_t n = candidates.size();
  std::vector<double> covariance = model.adaptation_covariance(candidates);
  const double noise = model.adaptation_noise() * model.adaptation_noise();
  std::vector<size_t> chosen;
  std::vector<bool> taken(n, false);
  while (chosen.size() < std::min(count, n)) {
    size_t best = n;
    double most = -1;
    for (size_t j = 0; j < n; ++j) {
      if (taken[j]) continue;
      double gain = 0;
      for (size_t i = 0; i < n; ++i) gain += covariance[i * n + j] * covariance[i * n + j];
      gain /= covariance[j * n + j] + noise;
      if (gain > most) {
        most = gain;
        best = j;
      }
    }
    chosen.push_back(best);
    taken[best] = true;
    // What is left of the covariances once it is known.
    std::vector<double> column(n);
    for (size_t i = 0; i < n; ++i) column[i] = covariance[i * n + best];
    const double variance = column[best] + noise;
    for (size_t i = 0; i < n; ++i) {
      for (size_t j = 0; j < n; ++j) covariance[i * n + j] -= column[i] * column[j] / variance;
    }
  }
  return chosen;
}

Result<std::vector<TransferCurve>> transfer_curves(const Dataset& fit, const Dataset& test,
                                                   const TransferOptions& options) {
  if (fit.quantity != test.quantity) return internal_error("a model of one quantity was to be held against another");
  if (options.counts.empty()) return usage_error("numbers of measurements: expected one or more");
  for (const int64_t count : options.counts) {
    if (count < 0) return usage_error(fmt::format("number of measurements {}, expected 0 or more", count));
  }
  const auto largest = static_cast<size_t>(*std::max_element(options.counts.begin(), options.counts.end()));
  std::vector<TransferCurve> curves;
  for (const std::string& net : test.networks()) {
    const std::vector<Sample> samples = passed_of(test, net, true);
    if (samples.size() <= largest)
      return bad_data(fmt::format("{}: {} measurements passed, expected more than {}", net, samples.size(), largest));
    std::vector<Sample> others;
    for (const Sample& sample : fit.samples) {
      if (sample.layers->net != net) others.push_back(sample);
    }
    if (others.empty()) return bad_data(fmt::format("nothing to fit on but {} itself", net));
    StrobeModel model(options.predictor);
    STROBE_TRY(model.fit(fit.quantity, others));
    const std::vector<size_t> order = choose_measurements(model, samples, largest);
    TransferCurve curve;
    curve.net = net;
    for (const int64_t wanted : options.counts) {
      const auto count = static_cast<size_t>(wanted);
      TransferPoint point;
      point.measurements = wanted;
      STROBE_ASSIGN(point.active_mape_percent, error_after(model, samples, std::span(order).first(count)));
      for (int round = 0; round < options.repetitions; ++round) {
        const auto places = at_random(samples.size(), count, options.predictor.seed + static_cast<uint64_t>(round));
        STROBE_ASSIGN(const double error, error_after(model, samples, places));
        point.random_mape_percent += error / options.repetitions;
      }
      curve.points.push_back(point);
    }
    curves.push_back(std::move(curve));
  }
  return curves;
}

}  // namespace strobe::predict
