// StrobeModel as JSON and back:
//   {"quantity": "memory", "stage": "training", "host": false, "parameters": {NAME: number, ...}, "residuals": PROCESS,
//   "interval_90": {"near", "far"},
//    "levels": {"share": number, "networks": [{"net", "level", "features": [...], "batches": [...], "log_values":
//    [...]}]}, "capacity": {"log_threshold", "width"}, "adaptation": {"parameters": ..., "residuals": PROCESS}}
// with parameters as the physical model has them (logarithms, mostly) and
//   PROCESS = {"networks": [[FEATURE, ...], ...], "points": [[NETWORK, LOG_BATCH, WEIGHT], ...]}
#include <fmt/format.h>

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "predict/strobe_model.h"

namespace strobe::predict {
namespace {

using nlohmann::json;

constexpr size_t kFeatures = 2;

json parameters_to_json(std::span<const std::string_view> names, std::span<const double> values) {
  json object = json::object();
  for (size_t i = 0; i < names.size(); ++i) object[std::string(names[i])] = values[i];
  return object;
}

Result<double> number_in(const json& object, std::string_view key) {
  const auto found = object.is_object() ? object.find(std::string(key)) : object.end();
  if (!object.is_object() || found == object.end() || !found->is_number() || !std::isfinite(found->get<double>()))
    return bad_data(fmt::format("{}: expected a number", key));
  return found->get<double>();
}

Result<std::vector<double>> parameters_in(const json& object, std::span<const std::string_view> names) {
  const auto found = object.find("parameters");
  if (found == object.end()) return bad_data("parameters: expected an object of numbers");
  std::vector<double> values;
  for (const std::string_view name : names) {
    auto value = number_in(*found, name);
    if (!value) return std::move(value).error().at("parameters");
    values.push_back(*value);
  }
  return values;
}

json process_to_json(const ResidualProcess& process) {
  std::map<std::vector<double>, size_t> index;
  json networks = json::array(), points = json::array();
  for (size_t i = 0; i < process.points().size(); ++i) {
    const ProcessPoint& point = process.points()[i];
    const auto [place, added] = index.emplace(point.features, index.size());
    if (added) networks.push_back(point.features);
    points.push_back({place->second, point.log_batch, process.weights()[i]});
  }
  return {{"networks", std::move(networks)}, {"points", std::move(points)}};
}

bool is_numbers(const json& list, size_t count) {
  if (!list.is_array() || list.size() != count) return false;
  for (const json& value : list) {
    if (!value.is_number() || !std::isfinite(value.get<double>())) return false;
  }
  return true;
}

Result<ResidualProcess> process_in(const json& object, const ProcessScale& scale) {
  const auto found = object.find("residuals");
  if (found == object.end() || !found->is_object()) return bad_data("residuals: expected an object");
  const auto networks = found->find("networks"), points = found->find("points");
  if (networks == found->end() || !networks->is_array()) return bad_data("residuals: networks: expected a list");
  if (points == found->end() || !points->is_array()) return bad_data("residuals: points: expected a list");
  for (const json& features : *networks) {
    if (!is_numbers(features, kFeatures))
      return bad_data(fmt::format("residuals: networks: expected {} numbers of each", kFeatures));
  }
  std::vector<ProcessPoint> places;
  std::vector<double> weights;
  for (const json& point : *points) {
    if (!is_numbers(point, 3) || !point[0].is_number_unsigned() || point[0].get<size_t>() >= networks->size())
      return bad_data("residuals: points: expected [network, log batch, weight] of each");
    places.push_back({(*networks)[point[0].get<size_t>()].get<std::vector<double>>(), point[1].get<double>()});
    weights.push_back(point[2].get<double>());
  }
  return ResidualProcess::restore(scale, std::move(places), std::move(weights));
}

json curves_to_json(const LevelCurves& curves) {
  json list = json::array();
  for (const auto& [net, levels] : curves.networks()) {
    for (const auto& [level, curve] : levels) {
      json batches = json::array(), log_values = json::array();
      for (const auto& [batch, log_value] : curve.log_values) {
        batches.push_back(batch);
        log_values.push_back(log_value);
      }
      list.push_back({{"net", net},
                      {"level", level},
                      {"features", curve.features},
                      {"batches", std::move(batches)},
                      {"log_values", std::move(log_values)}});
    }
  }
  return list;
}

Result<LevelCurves> curves_in(const json& list) {
  LevelCurves curves;
  for (const json& item : list) {
    const auto part = [&](const char* key) { return item.is_object() ? item.value(key, json()) : json(); };
    const json net = part("net"), level = part("level"), features = part("features"), batches = part("batches"),
               log_values = part("log_values");
    if (!net.is_string() || !level.is_number_integer() || !is_numbers(features, kFeatures) || !batches.is_array() ||
        batches.empty() || !is_numbers(batches, batches.size()) || !is_numbers(log_values, batches.size()))
      return bad_data("levels: networks: expected net, level, features, batches and log_values of each");
    std::vector<std::pair<int64_t, double>> values;
    for (size_t i = 0; i < batches.size(); ++i) {
      if (!batches[i].is_number_integer() || batches[i].get<int64_t>() < 1)
        return bad_data("levels: networks: batches: expected whole numbers from 1");
      values.emplace_back(batches[i].get<int64_t>(), log_values[i].get<double>());
    }
    curves.set({net.get<std::string>(), level.get<int64_t>(), features.get<std::vector<double>>()}, values);
  }
  return curves;
}

}  // namespace

json StrobeModel::to_json() const {
  const auto names = physics_->parameter_names();
  json object = {{"quantity", to_string(quantity_)},
                 {"stage", to_string(setting_.stage)},
                 {"host", setting_.host},
                 {"parameters", parameters_to_json(names, parameters_)},
                 {"residuals", process_to_json(process_)},
                 {"levels", {{"share", curve_share_}, {"networks", curves_to_json(curves_)}}},
                 {"interval_90", {{"near", spread_.near}, {"far", spread_.far}}}};
  if (capacity_) object["capacity"] = {{"log_threshold", capacity_->log_threshold}, {"width", capacity_->width}};
  if (adaptation_) {
    object["adaptation"] = {{"parameters", parameters_to_json(names, adaptation_->parameters)},
                            {"residuals", process_to_json(adaptation_->process)}};
  }
  return object;
}

Result<void> StrobeModel::from_json(const json& object) {
  if (!object.is_object()) return bad_data("expected an object");
  const auto quantity = object.find("quantity");
  if (quantity == object.end() || !quantity->is_string()) return bad_data("quantity: expected latency or memory");
  STROBE_ASSIGN(const Quantity known, parse_quantity(quantity->get<std::string>()));
  const std::string stage = object.contains("stage") && object["stage"].is_string() ? object["stage"] : json("");
  if (stage != to_string(Stage::kTraining) && stage != to_string(Stage::kInference))
    return bad_data("stage: expected training or inference");
  if (!object.contains("host") || !object["host"].is_boolean()) return bad_data("host: expected true or false");
  set_target(known, {stage == to_string(Stage::kInference) ? Stage::kInference : Stage::kTraining,
                     object["host"].get<bool>()});
  STROBE_ASSIGN(parameters_, parameters_in(object, physics_->parameter_names()));
  STROBE_ASSIGN(process_, process_in(object, process_scale()));
  const auto levels = object.find("levels");
  if (levels == object.end() || !levels->is_object() || !levels->contains("networks") ||
      !levels->at("networks").is_array())
    return bad_data("levels: expected share and networks");
  STROBE_ASSIGN(curve_share_, number_in(*levels, "share"));
  if (!(curve_share_ >= 0 && curve_share_ <= 1)) return bad_data("levels: share: expected 0 .. 1");
  STROBE_ASSIGN(curves_, curves_in(levels->at("networks")));
  const auto interval = object.find("interval_90");
  if (interval == object.end()) return bad_data("interval_90: expected near and far");
  for (const auto& [key, place] : {std::pair("near", &spread_.near), std::pair("far", &spread_.far)}) {
    auto error = number_in(*interval, key);
    if (!error) return std::move(error).error().at("interval_90");
    if (!(*error >= 0 && *error < 100)) return bad_data(fmt::format("interval_90: {}: expected 0 .. 100", key));
    *place = *error;
  }
  capacity_.reset();
  if (const auto found = object.find("capacity"); found != object.end()) {
    Capacity capacity;
    STROBE_ASSIGN(capacity.log_threshold, number_in(*found, "log_threshold"));
    STROBE_ASSIGN(capacity.width, number_in(*found, "width"));
    if (!(capacity.width > 0)) return bad_data("capacity: width: expected a number above 0");
    capacity_ = capacity;
  }
  adaptation_.reset();
  if (const auto found = object.find("adaptation"); found != object.end()) {
    if (!found->is_object()) return bad_data("adaptation: expected an object");
    Adaptation adaptation;
    STROBE_ASSIGN(adaptation.parameters, parameters_in(*found, physics_->parameter_names()));
    STROBE_ASSIGN(adaptation.process, process_in(*found, adaptation_scale()));
    adaptation_ = std::move(adaptation);
  }
  return {};
}

}  // namespace strobe::predict
