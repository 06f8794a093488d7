#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "ask.h"
#include "base/file.h"
#include "model_command.h"
#include "predict/few_shot.h"
#include "report/figure_page.h"
#include "row_filter_flags.h"

namespace strobe::app {
namespace {

using nlohmann::ordered_json;
using predict::TransferCurve;

class ModelTransfer : public Word {
 public:
  const char* name() const override { return "transfer"; }
  const char* summary() const override { return "How many measurements of an unseen network or device a model needs"; }

  void declare(CLI::App& app) override {
    app.add_option("--fit", fit_, "Folder with layers.csv and measurements.csv to fit on")->required();
    app.add_option("--test", test_,
                   "Such a folder of the other networks or device (default: the one of --fit, each network in turn)");
    app.add_option("--quantity", quantity_, "latency or memory")->required();
    declare_row_filter(app, filter_);
    app.add_option("--counts", options_.counts, "Numbers of new measurements")->delimiter(',')->capture_default_str();
    app.add_option("--repetitions", options_.repetitions, "Of the choice at random")
        ->capture_default_str()
        ->check(CLI::Range(1, 1000));
    app.add_option("--seed", options_.predictor.seed, "Seed of the choice at random")->capture_default_str();
    app.add_option("-o,--output", page_, "Also a page (HTML) with the curves");
    app.add_option("--format", format_, "text, csv or json")->capture_default_str();
  }

  Result<int> run() override {
    STROBE_ASSIGN(const report::Format format, report::parse_format(format_));
    STROBE_ASSIGN(const predict::Quantity quantity, predict::parse_quantity(quantity_));
    if (!page_.empty()) STROBE_TRY(check_replaceable(page_));
    STROBE_ASSIGN(const predict::Dataset fit, predict::read_dataset(fit_, quantity, filter_));
    std::optional<predict::Dataset> test;
    if (!test_.empty()) {
      STROBE_ASSIGN(test, predict::read_dataset(test_, quantity, filter_));
    }
    STROBE_ASSIGN(const std::vector<TransferCurve> curves, predict::transfer_curves(fit, test ? *test : fit, options_));
    if (!page_.empty()) {
      STROBE_ASSIGN(const std::string page,
                    report::figure_page("Transfer of " + quantity_, table_of(curves), {figure_of(curves)}));
      STROBE_TRY(write_file(page_, page));
    }
    if (format == report::Format::kJson)
      print_json(curves);
    else
      print_table(table_of(curves), format);
    return 0;
  }

 private:
  void print_json(const std::vector<TransferCurve>& curves) const {
    ordered_json object = {{"quantity", quantity_}};
    auto& networks = object["by_network"] = ordered_json::object();
    for (const TransferCurve& curve : curves) {
      auto& points = networks[curve.net] = ordered_json::array();
      for (const predict::TransferPoint& point : curve.points)
        points.push_back({{"measurements", point.measurements},
                          {"active_mape_percent", point.active_mape_percent},
                          {"random_mape_percent", point.random_mape_percent}});
    }
    const std::string text = object.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
    std::fwrite(text.data(), 1, text.size(), stdout);
  }

  static report::Figure figure_of(const std::vector<TransferCurve>& curves) {
    report::Figure figure;
    figure.title = "Error against the number of new measurements";
    figure.text =
        "Of each network that was not fitted on: whole lines where the next measurement is chosen to tell most, dashed "
        "where it is chosen at random.";
    figure.x_title = "measurements";
    figure.y_title = "mean error of the rest, %";
    for (const TransferCurve& curve : curves)
      for (const bool random : {false, true}) {
        report::Series series;
        series.name = curve.net + (random ? ", at random" : ", chosen");
        series.lines = true;
        series.colour = static_cast<int>(&curve - curves.data());
        series.dashed = random;
        for (const predict::TransferPoint& point : curve.points) {
          series.x.push_back(static_cast<double>(point.measurements));
          series.y.push_back(random ? point.random_mape_percent : point.active_mape_percent);
        }
        figure.series.push_back(std::move(series));
      }
    return figure;
  }

  Table table_of(const std::vector<TransferCurve>& curves) const {
    Table table(
        "Transfer, " + quantity_,
        {{"network", "that was not fitted on", 0},
         {"measurements", "of it that were then learned from", 0},
         {"active_mape_percent", "mean of |predicted - measured| / measured on the rest, chosen to tell most", 2},
         {"random_mape_percent", "the same, chosen at random", 2}});
    for (const TransferCurve& curve : curves) {
      for (const predict::TransferPoint& point : curve.points)
        table.add_row({curve.net, point.measurements, point.active_mape_percent, point.random_mape_percent});
    }
    return table;
  }

  std::string fit_, test_, quantity_, format_ = "text";
  predict::TransferOptions options_;
  predict::RowFilter filter_;
  std::string page_;
};

}  // namespace

std::unique_ptr<Word> make_model_transfer() {
  return std::make_unique<ModelTransfer>();
}

}  // namespace strobe::app
