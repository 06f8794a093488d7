#include "models/prune.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <tuple>
#include <utility>

#include "models/cost.h"
#include "models/graph_builder.h"
#include "models/split_mix.h"

namespace strobe::models {
namespace {

// Of a convolution's or a linear layer's weights those that make one channel; a transposed convolution has its output
// channels second.
double magnitude(const Operation& operation, int64_t channel) {
  Operation copy = operation;
  for (const WeightSlot& slot : weight_slots(copy)) {
    if (slot.role != "weight") continue;
    const Tensor& tensor = **slot.tensor;
    const bool second = std::holds_alternative<TransposedConvolution>(operation);
    const int64_t rows = second ? tensor.shape[0] : 1;
    const int64_t filters = tensor.shape[second ? 1 : 0];
    const int64_t block = static_cast<int64_t>(tensor.values.size()) / (rows * filters);
    double sum = 0;
    for (int64_t row = 0; row < rows; ++row) {
      const float* values = tensor.values.data() + (row * filters + channel) * block;
      for (int64_t i = 0; i < block; ++i) sum += std::abs(values[i]);
    }
    // What is not a number is kept as if it were large: an order needs comparable values.
    return std::isnan(sum) ? std::numeric_limits<double>::infinity() : sum;
  }
  return 0;
}

template <typename Kind, size_t Count>
Result<Kind> one_of(const char* what, const std::string& name, const std::pair<const char*, Kind> (&known)[Count]) {
  std::string names;
  for (const auto& [text, kind] : known) {
    if (name == text) return kind;
    names += (names.empty() ? "" : ", ") + std::string(text);
  }
  return usage_error(fmt::format("{} '{}': expected one of {}", what, name, names));
}

size_t kept_of(size_t channels, double share) {
  const double left = std::floor(static_cast<double>(channels) * (1 - share) + 0.5);
  return std::clamp<size_t>(static_cast<size_t>(left), 1, channels);
}

Graph without_weights(Graph graph) {
  for (Layer& layer : graph.layers)
    for (const WeightSlot& slot : weight_slots(layer.operation)) *slot.tensor = declared_tensor((*slot.tensor)->shape);
  return graph;
}

}  // namespace

Result<PruneMethod> parse_prune_method(const std::string& name) {
  static constexpr std::pair<const char*, PruneMethod> kKnown[] = {
      {"uniform", PruneMethod::kUniform}, {"random", PruneMethod::kRandom}, {"l1", PruneMethod::kL1}};
  return one_of("method", name, kKnown);
}

Result<PruneShare> parse_prune_share(const std::string& name) {
  static constexpr std::pair<const char*, PruneShare> kKnown[] = {{"channels", PruneShare::kChannels},
                                                                  {"parameters", PruneShare::kParameters}};
  return one_of("share of", name, kKnown);
}

Pruner::Pruner(const Graph& graph, const PruneOptions& options)
    : graph_(&graph), options_(options), map_(map_channels(graph)), bare_(without_weights(graph)) {
  SplitMix64 random(options.seed);
  for (const ChannelGroup& group : map_.groups) {
    std::vector<double> score;  // the lowest goes first
    for (const CoupledChannel& channel : group.channels) {
      prunable_ += static_cast<int64_t>(channel.filters.size());
      double sum = 0;
      if (options.method == PruneMethod::kL1) {
        for (const Filter& filter : channel.filters)
          sum += magnitude(graph.layer(filter.layer).operation, filter.channel);
      } else {
        sum = static_cast<double>(random.next() >> 11);
      }
      score.push_back(sum);
    }
    std::vector<size_t> order(score.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return score[a] < score[b]; });
    order_.push_back(std::move(order));
  }
}

Result<Pruner> Pruner::create(const Graph& graph, const PruneOptions& options) {
  Pruner pruner(graph, options);
  if (pruner.map_.groups.empty())
    return unsupported(
        fmt::format("{} has no channels that could be removed: all belong to its input or outputs", graph.name));
  return pruner;
}

Pruner::Removed Pruner::share_of_groups(double share) const {
  Removed removed(static_cast<size_t>(map_.count), false);
  for (size_t g = 0; g < order_.size(); ++g) {
    const size_t count = order_[g].size();
    for (size_t i = 0; i + kept_of(count, share) < count; ++i)
      removed[static_cast<size_t>(map_.groups[g].channels[order_[g][i]].number)] = true;
  }
  return removed;
}

Pruner::Removed Pruner::first_in_order(const std::vector<const CoupledChannel*>& order, size_t count) const {
  Removed removed(static_cast<size_t>(map_.count), false);
  for (size_t i = 0; i < count; ++i) removed[static_cast<size_t>(order[i]->number)] = true;
  return removed;
}

// Every filter draws a number; a coupled channel goes as soon as the first of its filters would.
std::vector<const CoupledChannel*> Pruner::random_order(int level) const {
  SplitMix64 random(SplitMix64(options_.seed * (kMostPruned + 1) + static_cast<uint64_t>(level)).next());
  struct Drawn {
    uint64_t number;
    size_t group, channel;
  };
  std::vector<Drawn> drawn;
  for (size_t g = 0; g < map_.groups.size(); ++g) {
    for (size_t c = 0; c < map_.groups[g].channels.size(); ++c) {
      uint64_t first = std::numeric_limits<uint64_t>::max();
      for (size_t i = 0; i < map_.groups[g].channels[c].filters.size(); ++i) first = std::min(first, random.next());
      drawn.push_back({first, g, c});
    }
  }
  std::sort(drawn.begin(), drawn.end(), [](const Drawn& a, const Drawn& b) {
    return std::tie(a.number, a.group, a.channel) < std::tie(b.number, b.group, b.channel);
  });
  // Where many layers share their channels these would be all but gone before the others have lost half: such a group
  // keeps a part.
  std::vector<size_t> may_go;
  for (const ChannelGroup& group : map_.groups) {
    const size_t count = group.channels.size();
    const double least_kept = group.layers.size() < 2 ? 0 : std::min(level, 100 - level) / 100.0;
    may_go.push_back(count -
                     std::max<size_t>(1, static_cast<size_t>(std::ceil(static_cast<double>(count) * least_kept))));
  }
  std::vector<const CoupledChannel*> order;
  for (const Drawn& one : drawn) {
    if (may_go[one.group] == 0) continue;
    --may_go[one.group];
    order.push_back(&map_.groups[one.group].channels[one.channel]);
  }
  return order;
}

Result<double> Pruner::parameters_without(const Removed& removed) const {
  STROBE_ASSIGN(const Graph pruned, remove_channels(bare_, map_, removed));
  return static_cast<double>(graph_cost(pruned).parameters) / static_cast<double>(graph_cost(bare_).parameters);
}

Result<Pruner::Removed> Pruner::uniform_at(int level) const {
  if (options_.share == PruneShare::kChannels) return share_of_groups(level / 100.0);
  const double wanted = 1 - level / 100.0;
  double low = 0, high = 1;  // shares of the channels
  constexpr int kHalvings = 20;
  for (int i = 0; i < kHalvings; ++i) {
    const double middle = (low + high) / 2;
    STROBE_ASSIGN(const double left, parameters_without(share_of_groups(middle)));
    (left > wanted ? low : high) = middle;
  }
  STROBE_ASSIGN(const double above, parameters_without(share_of_groups(low)));
  STROBE_ASSIGN(const double below, parameters_without(share_of_groups(high)));
  return share_of_groups(above - wanted < wanted - below ? low : high);
}

Result<Pruner::Removed> Pruner::random_at(int level) const {
  const auto order = random_order(level);
  if (options_.share == PruneShare::kChannels) {
    const double wanted = static_cast<double>(prunable_) * level / 100;
    double gone = 0;
    size_t count = 0;
    for (; count < order.size(); ++count) {
      const auto next = static_cast<double>(order[count]->filters.size());
      if (gone + next / 2 > wanted) break;  // nearer without it
      gone += next;
    }
    return first_in_order(order, count);
  }
  const double wanted = 1 - level / 100.0;
  size_t low = 0, high = order.size();  // the parameters of `low` are not yet below what is wanted
  while (high - low > 1) {
    const size_t middle = low + (high - low) / 2;
    STROBE_ASSIGN(const double left, parameters_without(first_in_order(order, middle)));
    (left >= wanted ? low : high) = middle;
  }
  STROBE_ASSIGN(const double above, parameters_without(first_in_order(order, low)));
  STROBE_ASSIGN(const double below, parameters_without(first_in_order(order, high)));
  return first_in_order(order, above - wanted < wanted - below ? low : high);
}

Result<Graph> Pruner::at(int level) const {
  if (level < 0 || level > kMostPruned)
    return usage_error(fmt::format("level {}: expected 0 to {} percent", level, kMostPruned));
  Graph pruned = *graph_;
  if (level > 0) {
    STROBE_ASSIGN(const Removed removed,
                  options_.method == PruneMethod::kRandom ? random_at(level) : uniform_at(level));
    STROBE_ASSIGN(pruned, remove_channels(*graph_, map_, removed));
  }
  pruned.name = fmt::format("{}_{}", graph_->name, level);
  return pruned;
}

}  // namespace strobe::models
