#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "ask.h"
#include "base/suggest.h"
#include "model_command.h"
#include "models/model.h"
#include "models/zoo.h"
#include "predict/model.h"

namespace strobe::app {
namespace {

using nlohmann::ordered_json;

struct Answer {
  int64_t batch;
  predict::Prediction prediction;
};

class ModelPredict : public Word {
 public:
  const char* name() const override { return "predict"; }
  const char* summary() const override { return "Latency or memory of a network, by a fitted model"; }

  void declare(CLI::App& app) override {
    app.add_option("model", model_, "File that strobe model fit wrote")->required();
    app.add_option("--network", network_, "Built-in network, a file of one, or with --layers a name in that file")
        ->required();
    app.add_option("--layers", layers_, "layers.csv that has the network");
    app.add_option("--level", level_, "Pruning level in that file, in percent (default: 0, or its only one)");
    app.add_option("--width", open_.width, "Width of the input (default: the network's own)");
    app.add_option("--height", open_.height, "Height of the input (default: the network's own)");
    app.add_option("--batch", batches_, "Items at once; several may be given")->delimiter(',')->capture_default_str();
    app.add_option("--format", format_, "text, csv or json")->capture_default_str();
  }

  Result<int> run() override {
    STROBE_ASSIGN(const report::Format format, report::parse_format(format_));
    for (const int64_t batch : batches_)
      if (batch < 1) return usage_error(fmt::format("--batch {}: expected 1 or more", batch));
    STROBE_ASSIGN(const predict::LayerList list, layers());
    STROBE_ASSIGN(const predict::FittedModel model, predict::read_model(model_));
    std::vector<Answer> answers;
    for (const int64_t batch : batches_) answers.push_back({batch, model.predictor->predict(list, batch)});
    if (format == report::Format::kJson)
      print_json(model, answers);
    else
      print_table(table_of(model, answers), format);
    return 0;
  }

 private:
  Result<predict::LayerList> layers() const {
    if (layers_.empty() && level_) return usage_error("--level: expected --layers with the file that has the level");
    if (!layers_.empty()) return layers_of_file();
    if (const models::ZooEntry* entry = models::find_in_zoo(network_)) {
      // Its shapes alone are asked for: no weights need be made.
      STROBE_ASSIGN(const models::Graph graph, entry->make({.width = open_.width, .height = open_.height}));
      return predict::from_graph(graph);
    }
    STROBE_ASSIGN(const models::Graph graph, models::open_graph(network_, open_));
    return predict::from_graph(graph);
  }

  Result<predict::LayerList> layers_of_file() const {
    STROBE_ASSIGN(const std::vector<predict::LayerList> lists, predict::read_layer_lists(layers_));
    std::vector<std::string> names;
    std::vector<const predict::LayerList*> of_network;
    for (const predict::LayerList& list : lists) {
      if (std::find(names.begin(), names.end(), list.net) == names.end()) names.push_back(list.net);
      if (list.net == network_) of_network.push_back(&list);
    }
    if (of_network.empty())
      return not_found(fmt::format("{}: no network '{}'; {}", layers_, network_, suggest(network_, names)));
    if (of_network.size() == 1 && !level_) return *of_network.front();
    std::string levels;
    for (const predict::LayerList* list : of_network) {
      if (list->level == level_.value_or(0)) return *list;
      levels += fmt::format("{}{}", levels.empty() ? "" : ", ", list->level);
    }
    return not_found(
        fmt::format("{}: no level {} of {}; there are: {}", layers_, level_.value_or(0), network_, levels));
  }

  void print_json(const predict::FittedModel& model, const std::vector<Answer>& answers) const {
    const auto object_of = [&](const Answer& answer) {
      ordered_json object = {{"batch", answer.batch},
                             {"value", answer.prediction.value},
                             {"unit", predict::unit_of(model.quantity)},
                             {"interval90", {answer.prediction.low, answer.prediction.high}}};
      if (answer.prediction.fits) object["fits_probability"] = *answer.prediction.fits;
      return object;
    };
    ordered_json object = {
        {"network", network_}, {"quantity", predict::to_string(model.quantity)}, {"model", model.name}};
    if (answers.size() == 1)
      object.update(object_of(answers.front()));
    else
      for (const Answer& answer : answers) object["predictions"].push_back(object_of(answer));
    const std::string text = object.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
    std::fwrite(text.data(), 1, text.size(), stdout);
  }

  Table table_of(const predict::FittedModel& model, const std::vector<Answer>& answers) const {
    const std::string unit = model.quantity == predict::Quantity::kLatency ? "_ms" : "_mib";
    const std::string quantity(predict::to_string(model.quantity));
    Table table(network_ + ", predicted", {{"batch", "items at once", 0},
                                           {quantity + unit, "of one step", 1},
                                           {"low" + unit, "of the 90 % interval", 1},
                                           {"high" + unit, "of the 90 % interval", 1},
                                           {"fits_probability", "chance that the batch runs at all", 2}});
    for (const Answer& answer : answers) {
      const predict::Prediction& said = answer.prediction;
      std::vector<Cell> row = {answer.batch, said.value, said.low, said.high};
      row.emplace_back();
      if (said.fits) row.back() = *said.fits;
      table.add_row(std::move(row));
    }
    table.notes.push_back(fmt::format("model {}, fitted on {} measurements of {}", model.name, model.rows,
                                      fmt::join(model.networks, ", ")));
    return table;
  }

  std::string model_, network_, layers_, format_ = "text";
  std::optional<int64_t> level_;
  models::OpenOptions open_;
  std::vector<int64_t> batches_ = {1};
};

}  // namespace

std::unique_ptr<Word> make_model_predict() {
  return std::make_unique<ModelPredict>();
}

}  // namespace strobe::app
