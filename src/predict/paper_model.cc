#include "predict/paper_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "predict/extra_trees.h"
#include "predict/paper_features.h"

namespace strobe::predict {
namespace {

using nlohmann::json;

constexpr int kFeatureVersion = 1;
constexpr int kTrees = 300;
constexpr int kTreesOfHelpers = 100;  // of the fits that only tell how far off others are
constexpr double kCoverage = 0.9;

// Rows of features and what was measured.
struct Table {
  std::vector<double> rows, targets;

  void add(std::span<const double> row, double target) {
    rows.insert(rows.end(), row.begin(), row.end());
    targets.push_back(target);
  }
  Result<ExtraTrees> fit(const PredictorOptions& options, int trees) const {
    return ExtraTrees::fit(rows, paper_feature_names().size(), targets,
                           {.trees = trees, .seed = options.seed, .threads = options.threads});
  }
};

std::vector<double> features_of(const Sample& sample) {
  return paper_features(*sample.layers, static_cast<double>(sample.batch));
}

// What is held back together: networks, where there are several, else levels.
std::string group_of(const Sample& sample, bool by_network) {
  return by_network ? sample.layers->net : std::to_string(sample.layers->level);
}

class PaperModel : public Predictor {
 public:
  explicit PaperModel(const PredictorOptions& options) : options_(options) {}

  int feature_version() const override { return kFeatureVersion; }

  Result<void> fit(Quantity quantity, std::span<const Sample> samples) override {
    Table measured, ran;
    std::vector<std::vector<double>> features;
    for (const Sample& sample : samples) {
      features.push_back(features_of(sample));
      ran.add(features.back(), sample.passed ? 1 : 0);
      if (sample.passed) measured.add(features.back(), sample.value);
    }
    if (measured.targets.size() < 2)
      return bad_data(fmt::format("{} measurements of {} passed, expected 2 or more to fit a model",
                                  measured.targets.size(), to_string(quantity)));
    STROBE_ASSIGN(value_, measured.fit(options_, kTrees));
    fits_.reset();
    if (measured.targets.size() < ran.targets.size()) {
      STROBE_ASSIGN(fits_, ran.fit(options_, kTreesOfHelpers));
    }
    return measure_spread(samples, features);
  }

  Prediction predict(const LayerList& layers, int64_t batch) const override {
    const std::vector<double> row = paper_features(layers, static_cast<double>(batch));
    Prediction prediction;
    prediction.value = value_->predict(row);
    prediction.low = prediction.value * std::exp(-log_error_);
    prediction.high = prediction.value * std::exp(log_error_);
    if (fits_) prediction.fits = fits_->predict(row);
    return prediction;
  }

  json to_json() const override {
    json object = {{"value", value_->to_json()}, {"log_error_90", log_error_}};
    if (fits_) object["fits"] = fits_->to_json();
    return object;
  }

  Result<void> from_json(const json& object) override {
    if (!object.is_object()) return bad_data("expected an object with value and log_error_90");
    const auto log_error = object.find("log_error_90");
    if (log_error == object.end() || !log_error->is_number() || !(log_error->get<double>() >= 0) ||
        !std::isfinite(std::exp(log_error->get<double>())))
      return bad_data("log_error_90: expected a number, 0 or more");
    log_error_ = log_error->get<double>();
    STROBE_ASSIGN(value_, trees_in(object, "value"));
    fits_.reset();
    if (object.contains("fits")) {
      STROBE_ASSIGN(fits_, trees_in(object, "fits"));
    }
    return {};
  }

 private:
  static Result<std::optional<ExtraTrees>> trees_in(const json& object, const char* key) {
    const auto found = object.find(key);
    if (found == object.end()) return bad_data(fmt::format("{}: expected trees", key));
    auto trees = ExtraTrees::from_json(*found);
    if (!trees) return std::move(trees).error().at(key);
    if (trees->features() != paper_feature_names().size())
      return bad_data(
          fmt::format("{}: trees on {} features, expected {}", key, trees->features(), paper_feature_names().size()));
    return std::optional(std::move(*trees));
  }

  // How far off the trees are, as |log(measured / predicted)|, on networks (or levels) that they have not seen: each is
  // held back in turn (cross-conformal, Vovk 2015); the interval is that which would have covered 90 % of them.
  Result<void> measure_spread(std::span<const Sample> samples, std::span<const std::vector<double>> features) {
    std::set<std::string> networks;
    for (const Sample& sample : samples)
      if (sample.passed) networks.insert(sample.layers->net);
    const bool by_network = networks.size() > 1;
    std::map<std::string, std::vector<size_t>> groups;
    for (size_t i = 0; i < samples.size(); ++i)
      if (samples[i].passed) groups[group_of(samples[i], by_network)].push_back(i);

    std::vector<double> errors;
    for (const auto& [held_back, tested] : groups) {
      Table others;
      for (const auto& [group, members] : groups)
        if (group != held_back)
          for (const size_t i : members) others.add(features[i], samples[i].value);
      if (others.targets.empty()) break;  // a single group: nothing to hold it against
      STROBE_ASSIGN(const ExtraTrees trees, others.fit(options_, kTreesOfHelpers));
      for (const size_t i : tested) errors.push_back(std::abs(std::log(samples[i].value / trees.predict(features[i]))));
    }
    std::sort(errors.begin(), errors.end());
    const auto rank = static_cast<size_t>(std::ceil(kCoverage * static_cast<double>(errors.size() + 1)));
    log_error_ = errors.empty() ? 0 : errors[std::min(rank, errors.size()) - 1];
    return {};
  }

  PredictorOptions options_;
  std::optional<ExtraTrees> value_, fits_;
  double log_error_ = 0;
};

}  // namespace

std::unique_ptr<Predictor> make_paper_model(const PredictorOptions& options) {
  return std::make_unique<PaperModel>(options);
}

}  // namespace strobe::predict
