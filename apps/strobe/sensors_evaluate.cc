// `strobe sensors evaluate`: the nuScenes detection metrics of a result file, and its accuracy as it came.
#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/table.h"
#include "report/table_format.h"
#include "sensors/detection_metrics.h"
#include "sensors/detection_metrics_input.h"
#include "sensors_command.h"
#include "streaming_table.h"

namespace strobe::app {

namespace {

using Json = nlohmann::ordered_json;
using namespace strobe::sensors;

// The names of the means in nuScenes' publications, in the order of kTruePositiveErrors.
constexpr std::array<const char*, kTruePositiveErrors.size()> kMeans = {"mATE", "mASE", "mAOE", "mAVE", "mAAE"};
constexpr std::array<const char*, kTruePositiveErrors.size()> kMeanings = {
    "translation error, m", "scale error, 1 - IoU", "orientation error, rad", "velocity error, m/s",
    "attribute error, 1 - accuracy"};

Json finite(double value) {
  return std::isfinite(value) ? Json(value) : Json(nullptr);
}

Cell cell(const std::optional<double>& value) {
  return value ? Cell(*value) : Cell();
}

Json counts_json(const FilterCounts& counts) {
  return {{"boxes", counts.boxes},
          {"in_range", counts.in_range},
          {"with_points", counts.with_points},
          {"kept", counts.kept}};
}

std::string distance_name(double distance) {
  return fmt::format("{:.1f}", distance);
}

// The keys of the development kit's metrics_summary.json, and the means under their published names.
Json as_json(const DetectionInput& input, const DetectionMetrics& metrics, double seconds) {
  Json out = {{"split", input.split}, {"scenes", input.scenes}, {"samples", input.samples}};
  out["mAP"] = metrics.mean_ap;
  for (size_t e = 0; e < kMeans.size(); ++e) out[kMeans[e]] = finite(metrics.errors[e]);
  out["NDS"] = metrics.nds;
  for (const char* key : {"label_aps", "mean_dist_aps"}) out[key] = Json::object();
  out["mean_ap"] = metrics.mean_ap;
  for (const char* key : {"label_tp_errors", "tp_errors", "tp_scores", "classes"}) out[key] = Json::object();
  for (size_t cls = 0; cls < kDetectionClasses; ++cls) {
    const ClassMetrics& figures = metrics.classes[cls];
    const std::string name(kDetectionClassTable[cls].name);
    for (size_t d = 0; d < kDetectionDistances.size(); ++d)
      out["label_aps"][name][distance_name(kDetectionDistances[d])] = figures.ap[d];
    out["mean_dist_aps"][name] = figures.mean_ap;
    for (size_t e = 0; e < kTruePositiveErrors.size(); ++e)
      out["label_tp_errors"][name][std::string(kTruePositiveErrors[e])] =
          figures.errors[e] ? finite(*figures.errors[e]) : Json(nullptr);
    out["classes"][name] = {
        {"range", kDetectionClassTable[cls].range}, {"truths", figures.truths}, {"predictions", figures.predictions}};
  }
  for (size_t e = 0; e < kTruePositiveErrors.size(); ++e) {
    out["tp_errors"][std::string(kTruePositiveErrors[e])] = finite(metrics.errors[e]);
    out["tp_scores"][std::string(kTruePositiveErrors[e])] = metrics.scores[e];
  }
  out["nd_score"] = metrics.nds;
  out["filters"] = {{"truths", counts_json(input.truth_counts)}, {"predictions", counts_json(input.prediction_counts)}};
  out["meta"] = Json::object();
  for (const auto& [key, value] : input.meta) out["meta"][key] = value;
  if (input.by_sample_data) {
    out["skipped"] = input.skipped;
    out["absent"] = input.absent;
  }
  out["eval_time"] = seconds;
  return out;
}

std::vector<std::string> notes_of(const DetectionInput& input) {
  std::vector<std::string> notes;
  if (input.skipped > 0)
    notes.push_back(fmt::format("{} lists are of no key frame, without annotations, and are skipped", input.skipped));
  if (input.absent > 0)
    notes.push_back(
        fmt::format("{} key frames of these scenes have no list in the file, and do not count", input.absent));
  return notes;
}

Table means_table(const DetectionInput& input, const DetectionMetrics& metrics) {
  Table table(
      fmt::format("nuScenes detection, split {}: {} scenes, {} samples", input.split, input.scenes, input.samples),
      {{"measure", "", 0}, {"value", "", 4}, {"of", "", 0, true}});
  table.notes = notes_of(input);
  table.add_row({std::string("mAP"), metrics.mean_ap, std::string("mean over classes and 0.5, 1, 2, 4 m")});
  for (size_t e = 0; e < kMeans.size(); ++e)
    table.add_row({std::string(kMeans[e]), metrics.errors[e], std::string(kMeanings[e])});
  table.add_row({std::string("NDS"), metrics.nds, std::string("(5 mAP + the scores of the five errors) / 10")});
  return table;
}

Table classes_table(const DetectionMetrics& metrics) {
  Table table("By class", {{"class", "", 0},
                           {"truths", "", 0},
                           {"predictions", "", 0},
                           {"AP", "", 4},
                           {"ATE", "", 4},
                           {"ASE", "", 4},
                           {"AOE", "", 4},
                           {"AVE", "", 4},
                           {"AAE", "", 4}});
  for (size_t cls = 0; cls < kDetectionClasses; ++cls) {
    const ClassMetrics& figures = metrics.classes[cls];
    std::vector<Cell> row = {std::string(kDetectionClassTable[cls].name), int64_t{figures.truths},
                             int64_t{figures.predictions}, figures.mean_ap};
    for (const auto& error : figures.errors) row.push_back(cell(error));
    table.add_row(std::move(row));
  }
  return table;
}

class SensorsEvaluate : public Word {
 public:
  const char* name() const override { return "evaluate"; }
  const char* summary() const override { return "nuScenes' detection metrics of a result file"; }

  void declare(CLI::App& app) override {
    app.add_option("results", results_, "Result file in nuScenes' submission format, or lidar_pred_<i>.json of a run")
        ->required();
    app.add_option("--root", root_, "Folder of the nuScenes data set")->required();
    app.add_option("--version", version_, "Folder of its tables, such as v1.0-mini (default: the one there is)");
    app.add_option("--split", split_,
                   "val, train, mini_val, mini_train, test, all or one of splits.json (default: the smallest one "
                   "that holds every sample of the file)");
    app.add_option("--delays", delays_,
                   "delays_<i>.csv of a run: the results (by tokens of sample_data, as a run writes them) are held "
                   "against the truth of the moment when each was ready, too");
    app.add_option("--tenant", tenant_, "Whose rows of the delays: a tenant or a model")->needs("--delays");
    app.add_option("--format", format_, "text, csv or json")->capture_default_str();
  }

  Result<int> run() override {
    STROBE_ASSIGN(const report::Format format, report::parse_format(format_));
    if (!delays_.empty()) return run_streaming(format);
    const auto start = std::chrono::steady_clock::now();
    STROBE_ASSIGN(NuScenes database, NuScenes::open(root_, version_, nuscenes::Detail::kKeyFrames));
    STROBE_ASSIGN(const bool by_sample_data, is_by_sample_data(results_, database));
    if (by_sample_data) {
      STROBE_ASSIGN(database, NuScenes::open(root_, version_));
    }
    STROBE_ASSIGN(const DetectionInput input, read_detection_input(results_, database, split_));
    auto metrics = detection_metrics(input.truths, input.predictions, database.samples.size());
    if (!metrics) return std::move(metrics).error().at(results_);
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
    if (format == report::Format::kJson) {
      fmt::print("{}\n", as_json(input, *metrics, taken.count()).dump(2, ' ', false, Json::error_handler_t::replace));
      return 0;
    }
    if (format == report::Format::kCsv)
      for (const std::string& note : notes_of(input)) fmt::print(stderr, "note: {}\n", note);
    fmt::print("{}\n{}", report::format_table(means_table(input, *metrics), format),
               report::format_table(classes_table(*metrics), format));
    return 0;
  }

 private:
  Result<int> run_streaming(report::Format format) {
    if (!split_.empty()) return usage_error("--split and --delays exclude each other: the delays say what was run");
    STROBE_ASSIGN(const DelaysFile delays, read_delays(delays_, tenant_));
    STROBE_ASSIGN(const NuScenes database, NuScenes::open(root_, version_));
    STROBE_ASSIGN(const StreamingAccuracy accuracy, streaming_accuracy(results_, database, delays.results));
    if (accuracy.without_boxes == accuracy.results)
      return not_found(fmt::format("none of the {} results of {} is in the file", accuracy.results, delays.tenant))
          .at(results_);
    if (format == report::Format::kCsv)
      for (const std::string& note : streaming_notes(delays, accuracy)) fmt::print(stderr, "note: {}\n", note);
    fmt::print("{}", streaming_text(delays, accuracy, format));
    return 0;
  }

  std::string results_, root_, version_, split_, delays_, tenant_, format_ = "text";
};

}  // namespace

std::unique_ptr<Word> make_sensors_evaluate() {
  return std::make_unique<SensorsEvaluate>();
}

}  // namespace strobe::app
