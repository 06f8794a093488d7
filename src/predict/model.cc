#include "predict/model.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/suggest.h"
#include "predict/paper_model.h"
#include "predict/strobe_model.h"

namespace strobe::predict {
namespace {

using nlohmann::json;

struct Kind {
  const char* name;
  std::unique_ptr<Predictor> (*make)(const PredictorOptions& options);
};
constexpr Kind kKinds[] = {{"strobe", make_strobe_model}, {"paper", make_paper_model}};

constexpr const char* kSchema = "strobe-prediction-model";

Result<std::string> text_in(const json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_string()) return bad_data(fmt::format("{}: expected a text", key));
  return found->get<std::string>();
}

Result<int64_t> integer_in(const json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_number_integer())
    return bad_data(fmt::format("{}: expected a whole number", key));
  return found->get<int64_t>();
}

Result<json> parse_object(std::string_view text) {
  json object = json::parse(text, nullptr, false);
  if (!object.is_object()) return bad_data("not a model: expected a JSON object, as strobe model fit writes it");
  const auto schema = object.find("schema");
  if (schema == object.end() || *schema != kSchema)
    return bad_data(fmt::format("not a model: expected \"schema\": \"{}\"", kSchema));
  STROBE_ASSIGN(const int64_t version, integer_in(object, "schema_version"));
  if (version != kModelSchemaVersion)
    return bad_data(
        fmt::format("schema version {}, this program reads {}; fit the model again", version, kModelSchemaVersion));
  return object;
}

Result<std::vector<std::string>> networks_in(const json& object) {
  const auto found = object.find("networks");
  const auto is_text = [](const json& value) { return value.is_string(); };
  if (found == object.end() || !found->is_array() || !std::all_of(found->begin(), found->end(), is_text))
    return bad_data("networks: expected a list of names");
  return found->get<std::vector<std::string>>();
}

}  // namespace

std::vector<std::string> predictor_names() {
  std::vector<std::string> names;
  for (const Kind& kind : kKinds) names.emplace_back(kind.name);
  return names;
}

Result<std::unique_ptr<Predictor>> make_predictor(const std::string& name, const PredictorOptions& options) {
  for (const Kind& kind : kKinds)
    if (name == kind.name) return kind.make(options);
  return usage_error(fmt::format("no model '{}'; {}", name, suggest(name, predictor_names())));
}

Result<FittedModel> fit_model(const std::string& name, const Dataset& dataset, const PredictorOptions& options) {
  FittedModel model;
  model.name = name;
  model.quantity = dataset.quantity;
  model.networks = dataset.networks();
  model.rows = static_cast<int64_t>(dataset.samples.size());
  STROBE_ASSIGN(model.predictor, make_predictor(name, options));
  STROBE_TRY(model.predictor->fit(dataset.quantity, dataset.samples));
  return model;
}

std::string format_model(const FittedModel& model) {
  nlohmann::ordered_json object;
  object["schema"] = kSchema;
  object["schema_version"] = kModelSchemaVersion;
  object["model"] = model.name;
  object["feature_version"] = model.predictor->feature_version();
  object["quantity"] = to_string(model.quantity);
  object["unit"] = unit_of(model.quantity);
  object["networks"] = model.networks;
  object["rows"] = model.rows;
  object["parameters"] = model.predictor->to_json();
  // Names come from files: what is no UTF-8 in them is replaced.
  return object.dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
}

Result<FittedModel> parse_model(std::string_view text) {
  STROBE_ASSIGN(const json object, parse_object(text));
  FittedModel model;
  STROBE_ASSIGN(model.name, text_in(object, "model"));
  STROBE_ASSIGN(const std::string quantity, text_in(object, "quantity"));
  if (quantity != to_string(Quantity::kLatency) && quantity != to_string(Quantity::kMemory))
    return bad_data("quantity: expected latency or memory");
  model.quantity = *parse_quantity(quantity);
  const auto known = predictor_names();
  if (std::find(known.begin(), known.end(), model.name) == known.end())
    return bad_data(fmt::format("model: '{}' is not known to this program, which has {}", model.name, joined(known)));
  STROBE_ASSIGN(model.predictor, make_predictor(model.name));
  STROBE_ASSIGN(const int64_t version, integer_in(object, "feature_version"));
  if (version != model.predictor->feature_version())
    return bad_data(fmt::format("fitted on feature version {} of model {}, this program has {}; fit the model again",
                                version, model.name, model.predictor->feature_version()));
  STROBE_ASSIGN(model.networks, networks_in(object));
  STROBE_ASSIGN(model.rows, integer_in(object, "rows"));
  const auto parameters = object.find("parameters");
  if (parameters == object.end()) return bad_data("parameters: expected what the model has learned");
  auto read = model.predictor->from_json(*parameters);
  if (!read) return std::move(read).error().at("parameters");
  return model;
}

Result<FittedModel> read_model(const std::filesystem::path& path) {
  STROBE_ASSIGN(const std::string text, read_file(path));
  auto model = parse_model(text);
  if (!model) return std::move(model).error().at(path.string());
  return model;
}

}  // namespace strobe::predict
