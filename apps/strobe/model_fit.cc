#include <fmt/format.h>

#include <string>

#include "base/file.h"
#include "model_command.h"
#include "predict/model.h"
#include "row_filter_flags.h"

namespace strobe::app {
namespace {

class ModelFit : public Word {
 public:
  const char* name() const override { return "fit"; }
  const char* summary() const override { return "Learns a model of latency or memory from measurements"; }

  void declare(CLI::App& app) override {
    app.add_option("folder", folder_, "Folder with layers.csv and measurements.csv")->required();
    app.add_option("--quantity", quantity_, "latency or memory")->required();
    app.add_option("--model", model_, "Kind of model")->capture_default_str();
    app.add_option("-o,--output", output_, "The model's file (JSON)")->required();
    declare_row_filter(app, filter_);
    app.add_option("--seed", options_.seed, "Seed of the fit")->capture_default_str();
  }

  Result<int> run() override {
    STROBE_ASSIGN(const predict::Quantity quantity, predict::parse_quantity(quantity_));
    STROBE_TRY(check_replaceable(output_));
    STROBE_ASSIGN(const predict::Dataset dataset, predict::read_dataset(folder_, quantity, filter_));
    STROBE_ASSIGN(const predict::FittedModel model, predict::fit_model(model_, dataset, options_));
    STROBE_TRY(write_file(output_, predict::format_model(model)));
    fmt::print("{}: {} of {} measurements of {}\n", output_, quantity_, model.rows, fmt::join(model.networks, ", "));
    if (const std::string note = dataset.note(); !note.empty()) fmt::print("note: {}\n", note);
    return 0;
  }

 private:
  std::string folder_, quantity_, model_ = "strobe", output_;
  predict::PredictorOptions options_;
  predict::RowFilter filter_;
};

}  // namespace

std::unique_ptr<Word> make_model_fit() {
  return std::make_unique<ModelFit>();
}

}  // namespace strobe::app
