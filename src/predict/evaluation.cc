#include "predict/evaluation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>

#include "base/statistics.h"

namespace strobe::predict {
namespace {

// What the model said of one measurement.
struct Outcome {
  double ape_percent = 0;
  bool covered = false;
  bool passed = false;
  bool told_rightly = false;  // whether it fits
};

Scores scores_of(std::span<const Outcome> outcomes) {
  Scores scores;
  std::vector<double> errors;
  int64_t covered = 0, right = 0;
  for (const Outcome& outcome : outcomes) {
    right += outcome.told_rightly ? 1 : 0;
    if (!outcome.passed) continue;
    errors.push_back(outcome.ape_percent);
    covered += outcome.covered ? 1 : 0;
  }
  scores.rows = static_cast<int64_t>(errors.size());
  scores.fit_rows = static_cast<int64_t>(outcomes.size());
  scores.mape_percent = errors.empty() ? NAN : mean(errors);
  scores.median_ape_percent = quantile(errors, 0.5);
  scores.coverage_90 = errors.empty() ? NAN : static_cast<double>(covered) / static_cast<double>(scores.rows);
  scores.fit_no_fit_accuracy = static_cast<double>(right) / static_cast<double>(scores.fit_rows);
  return scores;
}

Outcome outcome_of(const Prediction& prediction, const Sample& sample) {
  Outcome outcome;
  outcome.passed = sample.passed;
  outcome.told_rightly = (prediction.fits.value_or(1) >= 0.5) == sample.passed;
  if (!sample.passed) return outcome;
  outcome.ape_percent = 100 * std::abs(prediction.value - sample.value) / sample.value;
  outcome.covered = prediction.low <= sample.value && sample.value <= prediction.high;
  return outcome;
}

using Keep = std::function<bool(const LayerList&)>;

std::vector<Sample> samples_where(const Dataset& dataset, const Keep& keep) {
  std::vector<Sample> kept;
  for (const Sample& sample : dataset.samples)
    if (keep(*sample.layers)) kept.push_back(sample);
  return kept;
}

// One model to fit, and what to ask it.
struct Fold {
  std::vector<Sample> fit, test;
};

class Folds {
 public:
  Folds(const Dataset& fit, const Dataset& test, const EvaluationOptions& options)
      : fit_(fit), test_(test), levels_(options.fit_levels) {
    if (levels_.empty() && options.protocol == Protocol::kSame) levels_ = {0, 30, 50, 70, 90};
  }

  std::vector<Fold> same() const {
    std::vector<Fold> folds;
    for (const std::string& net : test_.networks())
      folds.push_back({samples_where(fit_, [&](const auto& list) { return list.net == net && to_fit(list); }),
                       samples_where(test_, [&](const auto& list) { return list.net == net && !to_fit(list); })});
    return folds;
  }
  std::vector<Fold> leave_one_out() const {
    std::vector<Fold> folds;
    for (const std::string& net : test_.networks())
      folds.push_back({samples_where(fit_, [&](const auto& list) { return list.net != net && to_fit(list); }),
                       samples_where(test_, [&](const auto& list) { return list.net == net; })});
    return folds;
  }
  std::vector<Fold> unseen() const {
    Fold fold;
    fold.fit = samples_where(fit_, [&](const auto& list) { return to_fit(list); });
    std::set<std::pair<std::string_view, int64_t>> seen;
    for (const Sample& sample : fold.fit) seen.emplace(sample.layers->net, sample.layers->level);
    fold.test = samples_where(test_, [&](const auto& list) { return !seen.contains({list.net, list.level}); });
    return {std::move(fold)};
  }

 private:
  bool to_fit(const LayerList& list) const {
    return levels_.empty() || std::find(levels_.begin(), levels_.end(), list.level) != levels_.end();
  }
  const Dataset& fit_;
  const Dataset& test_;
  std::vector<int64_t> levels_;
};

std::vector<Fold> folds_of(const Dataset& fit, const Dataset& test, const EvaluationOptions& options) {
  const Folds folds(fit, test, options);
  switch (options.protocol) {
    case Protocol::kSame:
      return folds.same();
    case Protocol::kLeaveOneOut:
      return folds.leave_one_out();
    case Protocol::kUnseen:
      return folds.unseen();
  }
  return {};
}

}  // namespace

std::string_view to_string(Protocol protocol) {
  return protocol == Protocol::kSame ? "same" : protocol == Protocol::kLeaveOneOut ? "leave-one-out" : "unseen";
}

Result<Protocol> parse_protocol(const std::string& name) {
  for (const Protocol protocol : {Protocol::kSame, Protocol::kLeaveOneOut, Protocol::kUnseen})
    if (name == to_string(protocol)) return protocol;
  return usage_error(fmt::format("protocol '{}', expected same, leave-one-out or unseen", name));
}

Result<Evaluation> evaluate(const Dataset& fit, const Dataset& test, const EvaluationOptions& options) {
  if (fit.quantity != test.quantity) return internal_error("a model of one quantity was to be held against another");
  Evaluation evaluation;
  std::vector<Outcome> all;
  std::vector<std::pair<std::string, std::vector<Outcome>>> by_network;
  for (const std::string& net : test.networks()) by_network.push_back({net, {}});
  for (const Fold& fold : folds_of(fit, test, options)) {
    if (fold.test.empty()) continue;
    if (fold.fit.empty())
      return bad_data(fmt::format("nothing to fit on for {} (protocol {})", fold.test.front().layers->net,
                                  to_string(options.protocol)));
    STROBE_ASSIGN(const std::unique_ptr<Predictor> predictor, make_predictor(options.model, options.predictor));
    STROBE_TRY(predictor->fit(fit.quantity, fold.fit));
    for (const Sample& sample : fold.test) {
      const Prediction prediction = predictor->predict(*sample.layers, sample.batch);
      all.push_back(outcome_of(prediction, sample));
      if (sample.passed)
        evaluation.rows.push_back({sample.layers->net, sample.layers->level, sample.batch, sample.value,
                                   prediction.value, prediction.low, prediction.high});
      const auto place = std::find_if(by_network.begin(), by_network.end(),
                                      [&](const auto& network) { return network.first == sample.layers->net; });
      place->second.push_back(all.back());
    }
  }
  if (all.empty())
    return bad_data(fmt::format("nothing to test on: every level is among those fitted on (protocol {})",
                                to_string(options.protocol)));

  evaluation.all = scores_of(all);
  std::vector<double> network_errors;
  for (const auto& [net, outcomes] : by_network) {
    if (outcomes.empty()) {
      evaluation.notes.push_back(net + ": every level is among those fitted on");
      continue;
    }
    evaluation.by_network.emplace_back(net, scores_of(outcomes));
    const Scores& scores = evaluation.by_network.back().second;
    if (scores.rows > 0) network_errors.push_back(scores.mape_percent);
  }
  evaluation.mean_network_mape_percent = network_errors.empty() ? NAN : mean(network_errors);
  if (const std::string note = test.note(); !note.empty()) evaluation.notes.push_back(note);
  return evaluation;
}

}  // namespace strobe::predict
