// `strobe model prune`: a family of smaller networks made of one.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "ask.h"
#include "base/file.h"
#include "model_command.h"
#include "models/cost.h"
#include "models/graph_json.h"
#include "models/model.h"
#include "models/prune.h"
#include "predict/layer_list.h"

namespace strobe::app {
namespace {

namespace fs = std::filesystem;

constexpr double kGiga = 1e9, kMega = 1e6;
constexpr int64_t kBytesPerWeight = 4;

// Of those that could be removed.
int64_t filters_left(const models::Pruner& pruner, const models::Graph& graph, const models::Graph& pruned) {
  std::set<models::LayerId> layers;
  for (const models::ChannelGroup& group : pruner.channels().groups)
    layers.insert(group.layers.begin(), group.layers.end());
  int64_t left = pruner.prunable_filters();
  for (const models::LayerId id : layers) left -= graph.layer(id).output.channels - pruned.layer(id).output.channels;
  return left;
}

class ModelPrune : public Word {
 public:
  const char* name() const override { return "prune"; }
  const char* summary() const override { return "A family of structurally pruned networks"; }

  void declare(CLI::App& app) override {
    app.add_option("network", network_, "Built-in network, or a file of one")->required();
    app.add_option("-l,--levels", levels_, "Percent to remove: 0,10,...,90 or 0:90:10 or a list; at most 95")
        ->required();
    app.add_option("-m,--method", method_, "uniform, random or l1")->capture_default_str();
    app.add_option("--of", share_, "What a level counts: channels or parameters")->capture_default_str();
    app.add_option("--seed", options_.seed, "Of what is drawn, and of seeded weights")->capture_default_str();
    app.add_option("-o,--output", output_, "Folder for NET_LEVEL.json and .safetensors")->required();
    app.add_flag("--no-weights", no_weights_, "The structure alone; weights are seeded when it is opened");
    app.add_option("--weights", open_.weights, "Weights of the network (.weights, .safetensors)");
    app.add_option("--width", open_.width, "Width of the input (default: the network's own)");
    app.add_option("--height", open_.height, "Height of the input (default: the network's own)");
    app.add_option("--format", format_, "text, csv or json")->capture_default_str();
  }

  Result<int> run() override {
    STROBE_ASSIGN(const report::Format format, report::parse_format(format_));
    STROBE_ASSIGN(const std::vector<int> levels, models::parse_levels(levels_));
    STROBE_ASSIGN(options_.method, models::parse_prune_method(method_));
    STROBE_ASSIGN(options_.share, models::parse_prune_share(share_));
    open_.seed = options_.seed;
    STROBE_ASSIGN(const models::Graph graph, models::open_graph(network_, open_));
    STROBE_ASSIGN(const models::Pruner pruner, models::Pruner::create(graph, options_));
    STROBE_TRY(make_writable_folder(output_));

    Table table = empty_table(graph);
    const fs::path lists_file = fs::path(output_) / "layers.csv";
    std::vector<predict::LayerList> lists;
    if (fs::exists(lists_file)) {
      STROBE_ASSIGN(lists, predict::read_layer_lists(lists_file));
    }
    for (const int level : levels) {
      STROBE_ASSIGN(models::Graph pruned, pruner.at(level));
      const std::string file = fs::path(pruned.name).filename().string() + ".json";
      const auto weights = no_weights_ ? models::WithWeights::kNo : models::WithWeights::kYes;
      STROBE_TRY(models::save_graph(pruned, fs::path(output_) / file, weights));
      add_row(table, graph, pruned, pruner, level, file);
      // Those of other networks and levels in the same folder stay.
      std::erase_if(lists, [&](const auto& list) { return list.net == graph.name && list.level == level; });
      lists.push_back(predict::from_graph(pruned, level));
      lists.back().net = graph.name;
    }
    STROBE_TRY(write_file(lists_file, predict::format_layer_lists(lists)));
    add_notes(table, graph);
    print_table(table, format);
    return 0;
  }

 private:
  Table empty_table(const models::Graph& graph) const {
    return Table(fmt::format("{}, {} pruned", graph.name, method_),
                 {{"level", "percent of the " + share_ + " to remove", 0},
                  {"file", "in the folder given", 0},
                  {"filters", "output channels of the layers that could lose some", 0},
                  {"parameters", "numbers that it has learned", 0},
                  {"gflop", "1e9 operations for one item; a multiply-add counts 2", 4},
                  {"weight_mbyte", "1e6 bytes of the parameters, float32", 3},
                  {"filters_left", "share of the original's", 4},
                  {"parameters_left", "share of the original's", 4},
                  {"gflop_left", "share of the original's", 4}});
  }

  void add_row(Table& table, const models::Graph& graph, const models::Graph& pruned, const models::Pruner& pruner,
               int level, const std::string& file) {
    const models::Cost whole = models::graph_cost(graph), rest = models::graph_cost(pruned);
    const int64_t all_filters = pruner.prunable_filters(), left = filters_left(pruner, graph, pruned);
    const auto share = [](int64_t part, int64_t of) { return static_cast<double>(part) / static_cast<double>(of); };
    const bool channels = options_.share == models::PruneShare::kChannels;
    const double reached = 100 * (1 - (channels ? share(left, all_filters) : share(rest.parameters, whole.parameters)));
    constexpr double kNear = 1;  // percent
    if (reached < level - kNear) short_of_.push_back(fmt::format("{}: {:.1f}", level, reached));
    table.add_row({int64_t{level}, file, left, rest.parameters, static_cast<double>(rest.flop) / kGiga,
                   static_cast<double>(rest.parameters * kBytesPerWeight) / kMega, share(left, all_filters),
                   share(rest.parameters, whole.parameters), share(rest.flop, whole.flop)});
  }

  void add_notes(Table& table, const models::Graph& graph) const {
    if (!short_of_.empty())
      table.notes.push_back(
          fmt::format("not reached, since outputs keep their channels and every layer some ({}): "
                      "percent removed at level {}",
                      share_, fmt::join(short_of_, ", ")));
    if (!graph.trained && !no_weights_) table.notes.emplace_back("the weights are seeded, not trained");
  }

  std::string network_, levels_, method_ = "uniform", share_ = "channels", output_, format_ = "text";
  bool no_weights_ = false;
  models::OpenOptions open_;
  models::PruneOptions options_;
  std::vector<std::string> short_of_;
};

}  // namespace

std::unique_ptr<Word> make_model_prune() {
  return std::make_unique<ModelPrune>();
}

}  // namespace strobe::app
