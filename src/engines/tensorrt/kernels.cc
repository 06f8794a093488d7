#include "kernels.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <set>

#include "base/tensorrt_layers.h"
#include "engines/fusion.h"
#include "log.h"

namespace strobe::engines::tensorrt_plugin {
namespace {

// Layers of the graph that the ONNX nodes belong to: a node is its layer, or "<layer>#<what>" (models/onnx.h).
std::vector<std::string> layers_of(const std::vector<std::string>& nodes, const std::set<std::string>& known) {
  std::vector<std::string> layers;
  for (const std::string& node : nodes) {
    const std::string layer = known.contains(node) ? node : node.substr(0, node.rfind('#'));
    if (known.contains(layer) && std::find(layers.begin(), layers.end(), layer) == layers.end())
      layers.push_back(layer);
  }
  return layers;
}

}  // namespace

Result<KernelList> kernels_of(nvinfer1::ICudaEngine& engine, const models::Graph* graph) {
  const Listening said;
  const std::unique_ptr<nvinfer1::IEngineInspector> inspector(engine.createEngineInspector());
  const char* told =
      inspector == nullptr ? nullptr : inspector->getEngineInformation(nvinfer1::LayerInformationFormat::kJSON);
  if (told == nullptr) return engine_error("TensorRT's inspector: " + said.errors());
  std::string text = told;
  const size_t size = text.size();
  text.append(16, '\0');  // what the scanner may read beyond
  TensorrtLayerScan scan(std::string_view(text).substr(0, size));
  std::set<std::string> known;
  if (graph != nullptr) {
    for (const models::Layer& layer : graph->layers)
      if (!is_identity(layer)) known.insert(layer.name);
  }
  KernelList list;
  while (auto layer = scan.next()) {
    list.index[layer->name].push_back(list.kernels.size());
    Kernel kernel;
    kernel.layers = graph == nullptr ? layer->sources : layers_of(layer->sources, known);
    kernel.name = std::move(layer->name);
    kernel.type = std::move(layer->type);
    kernel.implementation = std::move(layer->tactic);
    list.kernels.push_back(std::move(kernel));
  }
  if (!scan.found() || scan.broken_at()) return engine_error("TensorRT's inspector gives no JSON that can be read");
  if (graph != nullptr) complete_fusion(*graph, list.kernels);
  return list;
}

void LayerTimes::begin_run() {
  times_.clear();
  reported_.clear();
  unknown_ = 0;
}

void LayerTimes::reportLayerTime(const char* layer, float ms) noexcept {
  try {
    const auto kernel = kernels_.index.find(layer);
    if (kernel == kernels_.index.end()) {
      ++unknown_;
      return;
    }
    constexpr double kNsPerMs = 1e6;
    const size_t nth = std::min(reported_[layer]++, kernel->second.size() - 1);
    times_.push_back({kernel->second[nth], std::llround(double{ms} * kNsPerMs)});
  } catch (const std::exception&) {
    ++unknown_;
  }
}

}  // namespace strobe::engines::tensorrt_plugin
