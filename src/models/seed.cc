#include "models/seed.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "models/graph_builder.h"
#include "models/shape_inference.h"
#include "models/split_mix.h"

namespace strobe::models {
namespace {

class Random {
 public:
  explicit Random(uint64_t seed) : bits_(seed) {}
  float uniform(float bound) {  // [-bound, bound)
    constexpr float kUnit = 1.0F / (1 << 23);
    return (static_cast<float>(bits_.next() >> 40) * kUnit - 1.0F) * bound;
  }

 private:
  SplitMix64 bits_;
};

template <typename Make>
void fill(Weights& slot, Make make) {
  Tensor tensor{slot->shape, {}};
  tensor.values.resize(static_cast<size_t>(element_count(tensor)));
  for (size_t i = 0; i < tensor.values.size(); ++i) tensor.values[i] = make(i);
  slot = std::make_shared<const Tensor>(std::move(tensor));
}

const YoloHead* head_after(const Graph& graph, LayerId id) {
  for (const Layer& layer : graph.layers) {
    const auto* head = std::get_if<YoloHead>(&layer.operation);
    if (head && layer.inputs.front() == id) return head;
  }
  return nullptr;
}

void seed_layer(Operation& operation, const YoloHead* head, Random& random) {
  for (const WeightSlot& slot : weight_slots(operation)) {
    Weights& tensor = *slot.tensor;
    if (slot.role == "weight") {
      int64_t fan_in = element_count(*tensor) / tensor->shape.front();
      if (const auto* up = std::get_if<TransposedConvolution>(&operation)) {
        // Of the kernel's positions an output pixel sees every stride-th.
        fan_in = std::max<int64_t>(1, element_count(*tensor) / (up->out_channels * up->stride_h * up->stride_w));
      }
      const float gain = head ? 0.5F : 6.0F;  // variance: gain / 3 / fan-in
      const float bound = std::sqrt(gain / static_cast<float>(fan_in));
      fill(tensor, [&](size_t) { return random.uniform(bound); });
    } else if (slot.role == "bias") {
      constexpr float kRareObject = -4.6F;  // logit of 0.01
      const size_t entry = head ? static_cast<size_t>(head->classes) + 5 : 1;
      fill(tensor, [&](size_t i) { return head && i % entry == 4 ? kRareObject : 0.0F; });
    } else {
      const float value = slot.role == "scale" || slot.role == "variance" ? 1.0F : 0.0F;
      fill(tensor, [&](size_t) { return value; });
    }
  }
}

}  // namespace

Result<void> seed_weights(Graph& graph, uint64_t seed) {
  int64_t count = 0;
  for (const Layer& layer : graph.layers) count += weight_count(layer.operation);
  if (count > kMaxElements) {
    return unsupported(fmt::format("{} weights are too many to seed, at most {}", count, kMaxElements));
  }
  Random random(seed);
  for (size_t i = 0; i < graph.layers.size(); ++i) {
    seed_layer(graph.layers[i].operation, head_after(graph, static_cast<LayerId>(i)), random);
  }
  graph.trained = false;
  return {};
}

}  // namespace strobe::models
