#include "models/model.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/file.h"
#include "models/darknet.h"
#include "models/darknet_weights.h"
#include "models/graph_builder.h"
#include "models/graph_json.h"
#include "models/safetensors.h"
#include "models/seed.h"
#include "models/zoo.h"

namespace strobe::models {
namespace {

namespace fs = std::filesystem;

bool is_graph_json(const std::string& name) {
  return !find_in_zoo(name) && fs::path(name).extension() == ".json";
}

Result<Graph> structure(const std::string& name, const DarknetOptions& size) {
  if (const ZooEntry* entry = find_in_zoo(name)) return entry->make({size.width, size.height});
  if (is_graph_json(name)) return read_graph_json(name, {size.width, size.height});
  return read_darknet(name, size);
}

Result<void> check_known(const std::string& name) {
  std::error_code ignored;
  const bool exists = fs::exists(name, ignored);
  if (find_in_zoo(name) || (exists && (is_graph_json(name) || fs::path(name).extension() == ".cfg"))) return {};
  const std::string what =
      exists ? "is neither a Darknet .cfg nor a network's .json" : "is no built-in network and no file";
  return not_found(fmt::format(
      "model '{}' {}; built in: {}; files: Darknet .cfg with .weights or .safetensors, .json as strobe model prune "
      "writes",
      name, what, fmt::join(builtin_names(), ", ")));
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    std::string line = text.substr(begin, end - begin);
    begin = end + 1;
    while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) line.pop_back();
    lines.push_back(std::move(line));
  }
  while (!lines.empty() && lines.back().empty()) lines.pop_back();
  return lines;
}

// A size that the network's strides do not divide would leave maps that no longer fit each other.
Result<void> check_size(const char* side, int64_t asked, int64_t stride, const std::string& name) {
  if (asked == 0 || (asked > 0 && asked % stride == 0)) return {};
  return usage_error(fmt::format("{} {} does not suit {}: expected a multiple of its stride {}, such as {}", side,
                                 asked, name, stride, std::max(stride, (asked + stride / 2) / stride * stride)));
}

int64_t class_count(const Graph& graph) {
  int64_t classes = 0;
  for (const Layer& layer : graph.layers) {
    if (const auto* head = std::get_if<YoloHead>(&layer.operation)) classes = std::max(classes, head->classes);
  }
  return classes;
}

Result<void> add_labels(Graph& graph, const fs::path& path) {
  const int64_t classes = class_count(graph);
  if (path.empty()) {
    if (classes == 80 && graph.labels.empty()) graph.labels = coco_names();
    return {};
  }
  STROBE_ASSIGN(graph.labels, read_labels(path));
  if (classes == 0 || static_cast<int64_t>(graph.labels.size()) == classes) return {};
  return bad_data(fmt::format("{} class names, the network has {} classes", graph.labels.size(), classes))
      .at(path.string());
}

// Weights that bring their class names along, as those that strobe trained do.
Result<void> take_weights(Graph& graph, Safetensors content) {
  const auto labels = content.metadata.find("labels");
  if (labels != content.metadata.end()) graph.labels = lines_of(labels->second);
  return set_weights(graph, std::move(content));
}

Result<void> add_weights_file(Graph& graph, const fs::path& path) {
  STROBE_ASSIGN(const std::string bytes, read_file(path));
  const auto load = [&]() -> Result<void> {
    if (path.extension() != ".safetensors") return load_darknet_weights(graph, bytes);
    STROBE_ASSIGN(Safetensors content, read_safetensors(bytes));
    return take_weights(graph, std::move(content));
  };
  auto loaded = load();
  if (!loaded) return std::move(loaded).error().at(path.string());
  return {};
}

Result<void> add_weights(Graph& graph, const std::string& name, const OpenOptions& options) {
  if (!options.weights.empty()) return add_weights_file(graph, options.weights);
  if (is_graph_json(name) && !options.seeded) {
    std::error_code ignored;
    if (!fs::exists(weights_beside(name), ignored)) return seed_weights(graph, options.seed);
    const bool trained = graph.trained;  // seeded weights that were saved do not become trained ones
    STROBE_TRY(add_weights_file(graph, weights_beside(name)));
    graph.trained = trained;
    return {};
  }
  const ZooEntry* entry = find_in_zoo(name);
  if (options.seeded || !entry || !entry->weights) return seed_weights(graph, options.seed);
  STROBE_ASSIGN(Safetensors content, read_safetensors(entry->weights()));
  return take_weights(graph, std::move(content));
}
}  // namespace

Result<std::vector<std::string>> read_labels(const fs::path& path) {
  STROBE_ASSIGN(const std::string text, read_file(path));
  if (text.find('\0') != std::string::npos) return bad_data("binary data, expected one class name a line").at(path);
  return lines_of(text);
}

Result<Graph> open_graph(const std::string& name, const OpenOptions& options) {
  STROBE_TRY(check_known(name));
  STROBE_ASSIGN(Graph graph, structure(name, {}));
  if (options.width != 0 || options.height != 0) {
    const int64_t stride = network_stride(graph);
    STROBE_TRY(check_size("width", options.width, stride, graph.name));
    STROBE_TRY(check_size("height", options.height, stride, graph.name));
    STROBE_ASSIGN(graph, structure(name, {options.width, options.height}));
  }
  STROBE_TRY(add_weights(graph, name, options));
  STROBE_TRY(add_labels(graph, options.labels));
  return graph;
}

std::vector<std::string> builtin_names() {
  std::vector<std::string> names;
  for (const ZooEntry& entry : zoo()) names.emplace_back(entry.name);
  return names;
}

}  // namespace strobe::models
