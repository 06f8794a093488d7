#include <fmt/format.h>

#include <string>

#include "ask.h"
#include "model_command.h"
#include "models/cost.h"
#include "models/graph_builder.h"
#include "models/model.h"

namespace strobe::app {
namespace {

constexpr double kGiga = 1e9, kMega = 1e6, kBytesPerNumber = 4;

Cell per_byte(const models::Cost& cost) {
  if (cost.bytes == 0) return {};
  return static_cast<double>(cost.flop) / static_cast<double>(cost.bytes);
}

// What a batch needs: work and activations once an item, weights once.
std::string batch_note(const models::Graph& graph, int64_t batch) {
  int64_t weights = 0;
  for (const models::Layer& layer : graph.layers) weights += models::weight_count(layer.operation);
  const models::ActivationPeak peak = models::activation_peak(graph);
  const auto items = static_cast<double>(batch);
  return fmt::format(
      "batch {}: {:.4g} GFLOP; weights {:.4g} MB; tensors alive at once at most {:.4g} MB, while {} runs", batch,
      items * static_cast<double>(models::graph_cost(graph).flop) / kGiga,
      static_cast<double>(weights) * kBytesPerNumber / kMega, items * static_cast<double>(peak.bytes) / kMega,
      graph.layer(peak.layer).name);
}

Table layer_table(const models::Graph& graph) {
  Table table(graph.name, {{"layer", "index, in order of execution", 0},
                           {"name", "of the layer", 0},
                           {"type", "its operation", 0},
                           {"inputs", "indices of the layers it reads", 0},
                           {"output", "channels x height x width of one item", 0},
                           {"parameters", "numbers that it has learned", 0},
                           {"gflop", "1e9 operations for one item; a multiply-add counts 2", 4},
                           {"mbyte", "1e6 bytes for one item: inputs, weights and outputs moved once, float32", 3},
                           {"flop_per_byte", "arithmetic intensity", 2}});
  for (size_t i = 0; i < graph.layers.size(); ++i) {
    const models::Layer& layer = graph.layers[i];
    const models::Cost cost = models::layer_cost(graph, static_cast<models::LayerId>(i));
    std::string inputs;
    for (const models::LayerId input : layer.inputs) inputs += (inputs.empty() ? "" : " ") + std::to_string(input);
    table.add_row({static_cast<int64_t>(i), layer.name, std::string(type_name(layer.operation)), inputs,
                   layer.output.to_string(), cost.parameters, static_cast<double>(cost.flop) / kGiga,
                   static_cast<double>(cost.bytes) / kMega, per_byte(cost)});
  }
  const models::Cost cost = models::graph_cost(graph);
  table.add_row({Cell{}, std::string("total"), Cell{}, Cell{}, Cell{}, cost.parameters,
                 static_cast<double>(cost.flop) / kGiga, static_cast<double>(cost.bytes) / kMega, per_byte(cost)});
  if (!graph.trained) table.notes.emplace_back("the weights are seeded, not trained");
  return table;
}

class ModelShow : public Word {
 public:
  const char* name() const override { return "show"; }
  const char* summary() const override { return "Layers of a network: shapes, parameters, FLOP, bytes"; }

  void declare(CLI::App& app) override {
    app.add_option("network", network_, "Built-in network, or a file of one")->required();
    app.add_option("--width", options_.width, "Width of the input (default: the network's own)");
    app.add_option("--height", options_.height, "Height of the input (default: the network's own)");
    app.add_option("--batch", batch_, "Items of the totals in the note")
        ->capture_default_str()
        ->check(CLI::Range(int64_t{1}, int64_t{1} << 16));
    app.add_option("--weights", options_.weights, "Weights of the network (.weights, .safetensors)");
    app.add_option("--format", format_, "text, csv or json")->capture_default_str();
  }

  Result<int> run() override {
    STROBE_ASSIGN(const report::Format format, report::parse_format(format_));
    STROBE_ASSIGN(const models::Graph graph, models::open_graph(network_, options_));
    Table table = layer_table(graph);
    table.notes.push_back(batch_note(graph, batch_));
    print_table(table, format);
    return 0;
  }

 private:
  std::string network_, format_ = "text";
  int64_t batch_ = 1;
  models::OpenOptions options_;
};

}  // namespace

std::unique_ptr<Word> make_model_show() {
  return std::make_unique<ModelShow>();
}

}  // namespace strobe::app
