#include "engines/fusion.h"

#include <algorithm>
#include <map>
#include <optional>

namespace strobe::engines {
namespace {

using models::LayerId;

struct Folding {
  const models::Graph& graph;
  std::vector<std::optional<size_t>> kernel_of;  // by layer; the last kernel that names it, which makes its output
  std::vector<std::vector<LayerId>> readers;
  std::vector<bool> is_output;

  // Whether nothing but one layer reads the layer: only then can that one have taken its place.
  bool read_once(LayerId id) const {
    const auto at = static_cast<size_t>(id);
    return readers[at].size() == 1 && !is_output[at];
  }

  const models::Layer& layer(LayerId id) const { return graph.layer(id); }

  // What engines fold into the kernel beside it. Another layer without a kernel is a hole in the report, not a fusion.
  static bool foldable(const models::Layer& layer) {
    return std::holds_alternative<models::BatchNorm>(layer.operation) ||
           std::holds_alternative<models::Activation>(layer.operation) ||
           std::holds_alternative<models::Add>(layer.operation);
  }

  // Of several inputs the one whose kernel runs last: a sum cannot be part of a kernel that runs before the others.
  std::optional<size_t> above(LayerId id) const {
    std::optional<size_t> last;
    for (const LayerId source : layer(id).inputs) {
      if (!read_once(source)) continue;
      auto kernel = kernel_of[static_cast<size_t>(source)];
      if (!kernel && (foldable(layer(source)) || is_identity(layer(source)))) kernel = above(source);
      if (kernel && (!last || *kernel > *last)) last = kernel;
    }
    return last;
  }

  std::optional<size_t> below(LayerId id) const {
    if (!read_once(id)) return std::nullopt;
    return kernel_of[static_cast<size_t>(readers[static_cast<size_t>(id)].front())];
  }

  static bool weighted(const models::Layer& layer) {
    return std::holds_alternative<models::Convolution>(layer.operation) ||
           std::holds_alternative<models::TransposedConvolution>(layer.operation) ||
           std::holds_alternative<models::Linear>(layer.operation);
  }
  bool has_weighted(size_t kernel) const {
    for (size_t id = 0; id < kernel_of.size(); ++id) {
      if (kernel_of[id] == kernel && weighted(graph.layers[id])) return true;
    }
    return false;
  }

  // A convolution whose weights were multiplied by the batch norm behind it runs under that one's name.
  std::optional<size_t> renamed(LayerId id) const {
    if (!read_once(id)) return std::nullopt;
    const LayerId next = readers[static_cast<size_t>(id)].front();
    if (!foldable(layer(next))) return std::nullopt;
    const auto kernel = kernel_of[static_cast<size_t>(next)];
    return kernel && !has_weighted(*kernel) ? kernel : std::nullopt;
  }

  std::optional<size_t> home(LayerId id) const {
    if (weighted(layer(id))) return renamed(id);
    if (!foldable(layer(id))) return std::nullopt;
    const auto kernel = above(id);
    return kernel ? kernel : below(id);
  }
};

}  // namespace

bool is_identity(const models::Layer& layer) {
  if (const auto* activation = std::get_if<models::Activation>(&layer.operation)) {
    return activation->kind == models::ActivationKind::kLinear;
  }
  return std::holds_alternative<models::Input>(layer.operation) ||
         std::holds_alternative<models::Dropout>(layer.operation) ||
         std::holds_alternative<models::YoloHead>(layer.operation);
}

void complete_fusion(const models::Graph& graph, std::vector<Kernel>& kernels) {
  Folding folding{graph, {}, {}, std::vector<bool>(graph.layers.size())};
  for (const LayerId output : graph.outputs) folding.is_output[static_cast<size_t>(output)] = true;
  folding.kernel_of.resize(graph.layers.size());
  folding.readers.resize(graph.layers.size());
  std::map<std::string_view, size_t> ids;
  for (size_t id = 0; id < graph.layers.size(); ++id) {
    ids.emplace(graph.layers[id].name, id);
    for (const LayerId input : graph.layers[id].inputs) {
      folding.readers[static_cast<size_t>(input)].push_back(static_cast<LayerId>(id));
    }
  }
  for (size_t k = 0; k < kernels.size(); ++k) {
    for (const auto& name : kernels[k].layers) {
      const auto found = ids.find(name);
      if (found != ids.end()) folding.kernel_of[found->second] = k;
    }
  }
  // A layer may find its place by a neighbour that has just found its own.
  for (bool settled = true; settled;) {
    settled = false;
    for (size_t id = 0; id < graph.layers.size(); ++id) {
      if (folding.kernel_of[id] || is_identity(graph.layers[id])) continue;
      const auto kernel = folding.home(static_cast<LayerId>(id));
      if (!kernel) continue;
      folding.kernel_of[id] = kernel;
      kernels[*kernel].layers.push_back(graph.layers[id].name);
      settled = true;
    }
  }
  const auto position = [&](const std::string& name) {
    const auto found = ids.find(name);
    return found == ids.end() ? graph.layers.size() : found->second;
  };
  for (auto& kernel : kernels) {
    std::stable_sort(kernel.layers.begin(), kernel.layers.end(),
                     [&](const auto& a, const auto& b) { return position(a) < position(b); });
  }
}

}  // namespace strobe::engines
