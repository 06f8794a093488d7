// A network in which some channels are zero everywhere: without them it must compute the same.
#pragma once

#include "models/channel_groups.h"
#include "models/graph_builder.h"

namespace strobe::test {

// Filters, biases, and scale and shift of batch norms of the removed coupled channels become 0.
inline models::Graph zeroed(const models::Graph& graph, const models::ChannelMap& map,
                            const std::vector<bool>& removed) {
  models::Graph result = graph;
  for (size_t i = 0; i < result.layers.size(); ++i) {
    models::Operation& operation = result.layers[i].operation;
    const bool transposed = std::holds_alternative<models::TransposedConvolution>(operation);
    for (const auto& slot : models::weight_slots(operation)) {
      if (slot.role == "mean" || slot.role == "variance") continue;
      models::Tensor tensor = **slot.tensor;
      const bool second = transposed && slot.role == "weight";
      const size_t channels = map.channel_of[i].size();
      const size_t rows = second ? static_cast<size_t>(tensor.shape[0]) : 1;
      const size_t block = tensor.values.size() / (rows * channels);
      for (size_t at = 0; at < tensor.values.size(); ++at) {
        const size_t channel = at / block % channels;
        if (removed[static_cast<size_t>(map.channel_of[i][channel])]) tensor.values[at] = 0;
      }
      *slot.tensor = std::make_shared<const models::Tensor>(std::move(tensor));
    }
  }
  return result;
}

}  // namespace strobe::test
