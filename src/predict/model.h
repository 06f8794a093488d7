// A model of one quantity: learned from measurements, asked about networks, kept as JSON. Kinds of models register by
// name in model.cc.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "predict/measurements.h"
#include "strobe/base/result.h"

namespace strobe::predict {

struct Prediction {
  double value = 0;            // in unit_of() the quantity
  double low = 0, high = 0;    // interval that holds the truth in 90 of 100 cases
  std::optional<double> fits;  // chance (0..1) that the batch runs at all; nothing where no failure was ever seen
};

struct PredictorOptions {
  uint64_t seed = 1;
  int threads = 0;  // to fit with; 0: as many as the machine has. Results do not depend on it
};

class Predictor {
 public:
  virtual ~Predictor() = default;
  // Of the formulas by which it sees a network: raised whenever one of them changes, so that a model that was fitted on
  // other formulas is refused.
  virtual int feature_version() const = 0;
  // Samples that failed say what does not fit. Errors: kBadData where too few passed.
  virtual Result<void> fit(Quantity quantity, std::span<const Sample> samples) = 0;
  // Only once fitted or read.
  virtual Prediction predict(const LayerList& layers, int64_t batch) const = 0;
  virtual nlohmann::json to_json() const = 0;
  // Errors: kBadData saying which part is not as expected.
  virtual Result<void> from_json(const nlohmann::json& json) = 0;
};

// "paper", ...
std::vector<std::string> predictor_names();
// Errors: kUsage naming those that are there.
Result<std::unique_ptr<Predictor>> make_predictor(const std::string& name, const PredictorOptions& options = {});

struct FittedModel {
  std::string name;  // of the kind of model
  Quantity quantity = Quantity::kLatency;
  std::vector<std::string> networks;  // that it was fitted on
  int64_t rows = 0;                   // measurements that it was fitted on
  std::unique_ptr<Predictor> predictor;
};

// Errors: those of make_predictor() and of the fit.
Result<FittedModel> fit_model(const std::string& name, const Dataset& dataset, const PredictorOptions& options = {});

inline constexpr int kModelSchemaVersion = 1;
std::string format_model(const FittedModel& model);
// Errors: kBadData: no such JSON, another schema or feature version than this program's (naming both), damaged.
Result<FittedModel> parse_model(std::string_view text);
// Errors: those, after the path; kNotFound, kIo.
Result<FittedModel> read_model(const std::filesystem::path& path);

}  // namespace strobe::predict
