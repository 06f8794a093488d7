#include "frames_evaluate.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/table.h"
#include "models/average_precision.h"
#include "report/table_format.h"

namespace strobe::app {

namespace {

using Json = nlohmann::ordered_json;
using models::AveragePrecision;

Cell cell(const std::optional<double>& value) {
  return value ? Cell(*value) : Cell();
}
Json json(const std::optional<double>& value) {
  return value ? Json(*value) : Json(nullptr);
}

struct Measure {
  const char* name;
  const char* meaning;
  std::optional<double> AveragePrecision::*value;
};
constexpr Measure kMeasures[] = {
    {"AP", "mean over overlaps 0.50:0.95", &AveragePrecision::ap},
    {"AP50", "overlap 0.50", &AveragePrecision::ap50},
    {"AP75", "overlap 0.75", &AveragePrecision::ap75},
    {"AP_small", "area up to 32^2", &AveragePrecision::ap_small},
    {"AP_medium", "area up to 96^2", &AveragePrecision::ap_medium},
    {"AP_large", "area above 96^2", &AveragePrecision::ap_large},
    {"AR1", "recall, 1 detection a picture", &AveragePrecision::ar1},
    {"AR10", "recall, 10 detections a picture", &AveragePrecision::ar10},
    {"AR100", "recall, 100 detections a picture", &AveragePrecision::ar100},
    {"AR_small", "recall, area up to 32^2", &AveragePrecision::ar_small},
    {"AR_medium", "recall, area up to 96^2", &AveragePrecision::ar_medium},
    {"AR_large", "recall, area above 96^2", &AveragePrecision::ar_large},
};

Json as_json(const AveragePrecision& result, const std::vector<std::string>& notes) {
  Json all = {{"measures", Json::object()}, {"categories", Json::array()}, {"notes", notes}};
  for (const Measure& measure : kMeasures) all["measures"][measure.name] = json(result.*measure.value);
  for (const auto& category : result.categories)
    all["categories"].push_back({{"id", category.id},
                                 {"name", category.name},
                                 {"truths", category.truths},
                                 {"detections", category.detections},
                                 {"AP", json(category.ap)},
                                 {"AP50", json(category.ap50)},
                                 {"AP75", json(category.ap75)},
                                 {"AR100", json(category.ar100)}});
  return all;
}

Table measures_table(const AveragePrecision& result, const std::vector<std::string>& notes) {
  Table table("Average precision and recall", {{"measure", "", 0}, {"value", "", 4}, {"of", "", 0, true}});
  for (const Measure& measure : kMeasures)
    table.add_row({std::string(measure.name), cell(result.*measure.value), std::string(measure.meaning)});
  table.notes = notes;
  return table;
}

Table categories_table(const AveragePrecision& result) {
  Table table("By category", {{"category", "", 0},
                              {"truths", "", 0},
                              {"detections", "", 0},
                              {"AP", "", 4},
                              {"AP50", "", 4},
                              {"AP75", "", 4},
                              {"AR100", "", 4}});
  for (const auto& category : result.categories)
    if (category.truths > 0 || category.detections > 0)
      table.add_row({category.name, category.truths, category.detections, cell(category.ap), cell(category.ap50),
                     cell(category.ap75), cell(category.ar100)});
  return table;
}

}  // namespace

Result<int> evaluate_detections(const EvaluateFlags& flags) {
  STROBE_ASSIGN(const report::Format format, report::parse_format(flags.format));
  STROBE_ASSIGN(const models::CocoDataset truth, models::read_coco(flags.truth));
  if (truth.is_result_list)
    return bad_data(flags.truth + ": a list of results; the truth is a dataset with images and categories");
  STROBE_ASSIGN(const models::CocoDataset detections, models::read_coco(flags.detections));
  auto aligned = models::align_detections(truth, detections);
  if (!aligned) return std::move(aligned).error().at(flags.detections);
  const AveragePrecision result = models::average_precision(truth, aligned->annotations);
  if (format == report::Format::kJson) {
    fmt::print("{}\n", as_json(result, aligned->notes).dump(2, ' ', false, Json::error_handler_t::replace));
    return 0;
  }
  fmt::print("{}\n{}", report::format_table(measures_table(result, aligned->notes), format),
             report::format_table(categories_table(result), format));
  return 0;
}

}  // namespace strobe::app
