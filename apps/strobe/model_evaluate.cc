#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "ask.h"
#include "base/file.h"
#include "model_command.h"
#include "predict/evaluation.h"
#include "report/figure_page.h"
#include "row_filter_flags.h"

namespace strobe::app {
namespace {

using nlohmann::ordered_json;
using predict::Scores;

ordered_json number(double value) {
  return std::isfinite(value) ? ordered_json(value) : ordered_json();
}

void add_scores(const Scores& scores, ordered_json& object) {
  object["rows"] = scores.rows;
  object["mape_percent"] = number(scores.mape_percent);
  object["median_ape_percent"] = number(scores.median_ape_percent);
  object["coverage_90"] = number(scores.coverage_90);
  object["fit_no_fit_rows"] = scores.fit_rows;
  object["fit_no_fit_accuracy"] = number(scores.fit_no_fit_accuracy);
}

std::vector<Cell> row_of(const std::string& network, const Scores& scores) {
  const auto cell = [](double value) { return std::isfinite(value) ? Cell(value) : Cell(); };
  return {network,
          scores.rows,
          cell(scores.mape_percent),
          cell(scores.median_ape_percent),
          cell(scores.coverage_90),
          scores.fit_rows,
          cell(scores.fit_no_fit_accuracy)};
}

class ModelEvaluate : public Word {
 public:
  const char* name() const override { return "evaluate"; }
  const char* summary() const override { return "How well a kind of model predicts measurements"; }

  void declare(CLI::App& app) override {
    app.add_option("--fit", fit_, "Folder with layers.csv and measurements.csv to fit on")->required();
    app.add_option("--test", test_, "Such a folder to test on (default: the one of --fit)");
    app.add_option("--fit-levels", options_.fit_levels,
                   "Pruning levels to fit on, in percent (default: all; of protocol same 0,30,50,70,90)")
        ->delimiter(',');
    app.add_option("--quantity", quantity_, "latency or memory")->required();
    app.add_option("--model", options_.model, "Kind of model: " + joined_names())->capture_default_str();
    app.add_option(
        "--protocol", protocol_,
        "same (fit on some levels of a network, test on its others), leave-one-out (fit on the other networks) "
        "or unseen (fit on --fit, test on --test); default: unseen with --test, else same");
    declare_row_filter(app, filter_);
    app.add_option("--seed", options_.predictor.seed, "Seed of the fits")->capture_default_str();
    app.add_option("-o,--output", page_, "Also a page (HTML) with predicted against measured");
    app.add_option("--format", format_, "text, csv or json")->capture_default_str();
  }

  Result<int> run() override {
    STROBE_ASSIGN(const report::Format format, report::parse_format(format_));
    STROBE_ASSIGN(const predict::Quantity quantity, predict::parse_quantity(quantity_));
    if (!page_.empty()) STROBE_TRY(check_replaceable(page_));
    if (protocol_.empty()) protocol_ = test_.empty() ? "same" : "unseen";
    STROBE_ASSIGN(options_.protocol, predict::parse_protocol(protocol_));
    if (options_.protocol == predict::Protocol::kUnseen && test_.empty())
      return usage_error("--protocol unseen: expected --test with a folder of other networks");
    STROBE_ASSIGN(const predict::Dataset fit, predict::read_dataset(fit_, quantity, filter_));
    std::optional<predict::Dataset> test;
    if (!test_.empty()) {
      STROBE_ASSIGN(test, predict::read_dataset(test_, quantity, filter_));
    }
    STROBE_ASSIGN(const predict::Evaluation evaluation, predict::evaluate(fit, test ? *test : fit, options_));
    if (!page_.empty()) {
      STROBE_ASSIGN(const std::string page, report::figure_page("Prediction of " + quantity_, table_of(evaluation),
                                                                {figure_of(evaluation, quantity)}));
      STROBE_TRY(write_file(page_, page));
    }
    if (format == report::Format::kJson)
      print_json(evaluation);
    else
      print_table(table_of(evaluation), format);
    return 0;
  }

 private:
  static std::string joined_names() {
    std::string all;
    for (const std::string& kind : predict::predictor_names()) all += (all.empty() ? "" : ", ") + kind;
    return all;
  }

  void print_json(const predict::Evaluation& evaluation) const {
    ordered_json object = {{"model", options_.model}, {"quantity", quantity_}, {"protocol", protocol_}};
    add_scores(evaluation.all, object);
    object["mean_network_mape_percent"] = number(evaluation.mean_network_mape_percent);
    auto& networks = object["by_network"] = ordered_json::object();
    for (const auto& [net, scores] : evaluation.by_network) add_scores(scores, networks[net]);
    object["notes"] = evaluation.notes;
    const std::string text = object.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
    std::fwrite(text.data(), 1, text.size(), stdout);
  }

  // Each measurement against what was said of it, with its interval.
  static report::Figure figure_of(const predict::Evaluation& evaluation, predict::Quantity quantity) {
    const std::string unit(predict::unit_of(quantity));
    report::Figure figure;
    figure.title = "Predicted against measured";
    figure.text =
        "Each point a measurement that the model was not fitted on, bars its 90 % interval; on the dashed line the "
        "prediction is right.";
    figure.x_title = "measured, " + unit;
    figure.y_title = "predicted, " + unit;
    figure.log = true;
    double least = HUGE_VAL, most = 0;
    for (const auto& [net, scores] : evaluation.by_network) {
      report::Series series;
      series.name = net;
      series.colour = static_cast<int>(figure.series.size());
      for (const predict::EvaluatedRow& row : evaluation.rows) {
        if (row.net != net) continue;
        series.x.push_back(row.measured);
        series.y.push_back(row.predicted);
        series.low.push_back(row.low);
        series.high.push_back(row.high);
        series.texts.push_back(fmt::format("level {}, batch {}", row.level, row.batch));
        least = std::min(least, row.measured), most = std::max(most, row.measured);
      }
      figure.series.push_back(std::move(series));
    }
    report::Series right;
    right.name = "right";
    right.x = right.y = {least, most};
    right.lines = right.dashed = true;
    if (most > 0) figure.series.push_back(std::move(right));
    return figure;
  }

  Table table_of(const predict::Evaluation& evaluation) const {
    Table table(options_.model + ", " + quantity_ + ", " + protocol_,
                {{"network", "that was tested", 0},
                 {"rows", "measurements that passed", 0},
                 {"mape_percent", "mean of |predicted - measured| / measured", 2},
                 {"median_ape_percent", "their median", 2},
                 {"coverage_90", "share that lies in its 90 % interval", 3},
                 {"fit_no_fit_rows", "measurements, passed or failed", 0},
                 {"fit_no_fit_accuracy", "share of them of which it told rightly whether they run", 3}});
    for (const auto& [net, scores] : evaluation.by_network) table.add_row(row_of(net, scores));
    table.add_row(row_of("all", evaluation.all));
    table.notes = evaluation.notes;
    return table;
  }

  std::string fit_, test_, quantity_, protocol_, format_ = "text";
  predict::EvaluationOptions options_;
  predict::RowFilter filter_;
  std::string page_;
};

}  // namespace

std::unique_ptr<Word> make_model_evaluate() {
  return std::make_unique<ModelEvaluate>();
}

}  // namespace strobe::app
