#include "kernels.h"

#include <algorithm>
#include <openvino/core/model.hpp>
#include <set>
#include <sstream>

#include "emit.h"
#include "engines/fusion.h"

namespace strobe::engines::openvino_plugin {
namespace {

// Keys of an operation of the runtime model; the wheel's headers leave out the file that names them.
constexpr const char* kType = "layerType";
constexpr const char* kImplementation = "primitiveType";
constexpr const char* kOrder = "execOrder";
constexpr const char* kLayers = "originalLayersNames";

std::string fact(const ov::Node& node, const char* key) {
  const auto& facts = node.get_rt_info();
  const auto found = facts.find(key);
  return found == facts.end() ? std::string() : found->second.as<std::string>();
}

// Whether the operation only makes a constant: it runs once, when the network is compiled.
bool constant(const ov::Node& node) {
  const std::string type = fact(node, kType);
  if (type == "Const" || type == "Constant") return true;
  const auto inputs = node.input_values();
  return !inputs.empty() &&
         std::all_of(inputs.begin(), inputs.end(), [](const auto& input) { return constant(*input.get_node()); });
}

// A reshape without an implementation only names the same memory anew: no run ever counts it.
bool executed(const ov::Node& node) {
  const std::string type = fact(node, kType);
  if (type == "Reshape" && fact(node, kImplementation).starts_with("unknown")) return false;
  return type != "Parameter" && type != "Input" && type != "Result" && type != "Output" && !constant(node);
}

// The layers of a kernel: OpenVINO lists every operation that was fused into it, separated by commas.
std::vector<std::string> layers_of(const std::string& list, bool emitted, const std::set<std::string>& known) {
  std::vector<std::string> layers;
  std::istringstream words(list);
  for (std::string word; std::getline(words, word, ',');) {
    std::string layer = !emitted || known.contains(word) ? word : layer_of(word);
    if (emitted && !known.contains(layer)) continue;
    if (std::find(layers.begin(), layers.end(), layer) == layers.end()) layers.push_back(std::move(layer));
  }
  return layers;
}

}  // namespace

KernelList kernels_of(const ov::CompiledModel& compiled, const models::Graph* graph) {
  std::set<std::string> known;
  if (graph != nullptr) {
    for (const auto& layer : graph->layers) {
      if (!is_identity(layer)) known.insert(layer.name);
    }
  }
  auto nodes = compiled.get_runtime_model()->get_ordered_ops();
  std::erase_if(nodes, [](const auto& node) { return !executed(*node); });
  const auto order = [](const ov::Node& node) {
    const std::string text = fact(node, kOrder);
    return text.empty() ? -1 : std::stoi(text);
  };
  std::stable_sort(nodes.begin(), nodes.end(), [&](const auto& a, const auto& b) { return order(*a) < order(*b); });

  KernelList list;
  for (const auto& node : nodes) {
    Kernel kernel;
    kernel.name = node->get_friendly_name();
    kernel.type = fact(*node, kType);
    kernel.implementation = fact(*node, kImplementation);
    kernel.layers = layers_of(fact(*node, kLayers), graph != nullptr, known);
    list.index.emplace(kernel.name, list.kernels.size());
    list.kernels.push_back(std::move(kernel));
  }
  if (graph != nullptr) complete_fusion(*graph, list.kernels);
  return list;
}

std::vector<KernelTime> last_run(const KernelList& kernels, const std::vector<ov::ProfilingInfo>& counters,
                                 RunningMeans& means) {
  means.next_run();
  std::vector<KernelTime> times;
  for (const ov::ProfilingInfo& counter : counters) {
    const auto kernel = kernels.index.find(counter.node_name);
    if (kernel == kernels.index.end() || counter.status != ov::ProfilingInfo::Status::EXECUTED) continue;
    times.push_back({kernel->second, means.last_run_ns(kernel->second, counter.real_time.count())});
  }
  return times;
}

}  // namespace strobe::engines::openvino_plugin
