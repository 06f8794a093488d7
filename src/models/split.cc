#include "models/split.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/suggest.h"

namespace strobe::models {
namespace {

bool belongs_to(std::string_view layer, std::string_view wanted) {
  return layer == wanted || (layer.size() > wanted.size() && layer.starts_with(wanted) && layer[wanted.size()] == '.');
}

// The tensors that layers behind `last` read from layers up to it.
std::set<LayerId> crossing(const Graph& graph, LayerId last) {
  std::set<LayerId> tensors;
  for (size_t id = static_cast<size_t>(last) + 1; id < graph.layers.size(); ++id) {
    for (const LayerId input : graph.layers[id].inputs) {
      if (input <= last) tensors.insert(input);
    }
  }
  return tensors;
}

bool splits(const Graph& graph, LayerId last) {
  return last > 0 && static_cast<size_t>(last) + 1 < graph.layers.size() && crossing(graph, last).size() == 1;
}

// The right places next to a wrong one, before and behind it.
std::vector<std::string> nearest(const Graph& graph, LayerId wrong) {
  std::vector<std::string> names;
  for (LayerId id = wrong - 1; id > 0; --id) {
    if (!splits(graph, id)) continue;
    names.push_back(graph.layer(id).name);
    break;
  }
  for (LayerId id = wrong + 1; static_cast<size_t>(id) + 1 < graph.layers.size(); ++id) {
    if (!splits(graph, id)) continue;
    names.push_back(graph.layer(id).name);
    break;
  }
  return names;
}

std::vector<std::string> names_and_groups(const Graph& graph) {
  std::set<std::string> names;
  for (size_t id = 1; id < graph.layers.size(); ++id) {
    const Layer& layer = graph.layers[id];
    names.insert(layer.name);
    for (size_t dot = layer.name.find('.'); dot != std::string::npos; dot = layer.name.find('.', dot + 1))
      names.insert(layer.name.substr(0, dot));
  }
  return {names.begin(), names.end()};
}

Result<LayerId> last_of(const Graph& graph, std::string_view wanted) {
  for (size_t id = graph.layers.size(); id-- > 1;) {
    if (belongs_to(graph.layers[id].name, wanted)) return static_cast<LayerId>(id);
  }
  return usage_error(
      fmt::format("{} has no layer '{}'; {}", graph.name, wanted, suggest(wanted, names_and_groups(graph))));
}

}  // namespace

Result<SplitGraph> split_graph(const Graph& graph, std::string_view layer) {
  STROBE_ASSIGN(const LayerId last, last_of(graph, layer));
  const std::set<LayerId> tensors = crossing(graph, last);
  if (tensors.empty())
    return usage_error(
        fmt::format("'{}' ends with the last layer of {}: nothing is left for the second part", layer, graph.name));
  if (tensors.size() > 1) {
    const auto places = nearest(graph, last);
    return usage_error(fmt::format(
        "{} tensors of {} cross behind '{}', a split needs one{}", tensors.size(), graph.name, graph.layer(last).name,
        places.empty() ? "" : fmt::format("; right next to it: {}", fmt::join(places, ", "))));
  }
  const LayerId over = *tensors.begin();

  SplitGraph split;
  split.first = {.name = graph.name + ".first",
                 .layers = {graph.layers.begin(), graph.layers.begin() + last + 1},
                 .outputs = {},
                 .input_rule = graph.input_rule,
                 .labels = graph.labels,
                 .trained = graph.trained};
  split.second = {.name = graph.name + ".second",
                  .layers = {{.name = "split", .operation = Input{}, .inputs = {}, .output = graph.layer(over).output}},
                  .outputs = {},
                  .input_rule = {},
                  .labels = graph.labels,
                  .trained = graph.trained};
  const auto moved = [&](LayerId id) { return id <= last ? LayerId{0} : id - last; };
  for (size_t id = static_cast<size_t>(last) + 1; id < graph.layers.size(); ++id) {
    Layer layer_of_second = graph.layers[id];
    for (LayerId& input : layer_of_second.inputs) input = moved(input);
    split.second.layers.push_back(std::move(layer_of_second));
  }
  for (const LayerId output : graph.outputs) {
    split.from_second.push_back(output > last);
    (output > last ? split.second.outputs : split.first.outputs).push_back(output > last ? moved(output) : output);
  }
  split.first.outputs.push_back(over);
  return split;
}

}  // namespace strobe::models
