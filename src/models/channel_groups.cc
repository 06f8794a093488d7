#include "models/channel_groups.h"

#include <algorithm>
#include <map>
#include <numeric>

namespace strobe::models {
namespace {

using Numbers = std::vector<int32_t>;

class DisjointSets {
 public:
  int32_t add() {
    parent_.push_back(static_cast<int32_t>(parent_.size()));
    return parent_.back();
  }
  int32_t find(int32_t x) {
    while (parent_[static_cast<size_t>(x)] != x) {
      int32_t& up = parent_[static_cast<size_t>(x)];
      up = parent_[static_cast<size_t>(up)];
      x = up;
    }
    return x;
  }
  void unite(int32_t a, int32_t b) {
    a = find(a), b = find(b);
    // The earlier one stays, so that numbers follow the order of the layers.
    if (a != b) parent_[static_cast<size_t>(std::max(a, b))] = std::min(a, b);
  }
  size_t size() const { return parent_.size(); }

 private:
  std::vector<int32_t> parent_;
};

bool has_filters(const Operation& operation) {
  return std::holds_alternative<Convolution>(operation) || std::holds_alternative<TransposedConvolution>(operation) ||
         std::holds_alternative<Linear>(operation);
}

// Channels at the output of one operation, from those at its inputs.
struct Propagation {
  DisjointSets& sets;
  const std::vector<const Numbers*>& inputs;
  const std::vector<Shape>& shapes;  // of the inputs
  const Numbers& in() const { return *inputs.front(); }

  Numbers fresh(int64_t count) const {
    Numbers numbers(static_cast<size_t>(count));
    for (int32_t& number : numbers) number = sets.add();
    return numbers;
  }

  Numbers operator()(const Convolution& op) const {
    if (op.groups == 1) return fresh(op.out_channels);
    const auto groups = static_cast<size_t>(op.groups);
    const size_t in_each = in().size() / groups, out_each = static_cast<size_t>(op.out_channels) / groups;
    Numbers out(static_cast<size_t>(op.out_channels));
    if (in_each == 1) {
      for (size_t i = 0; i < out.size(); ++i) out[i] = in()[i / out_each];
      return out;
    }
    // Every group must keep the same number of channels: those at the same place go together.
    for (size_t i = in_each; i < in().size(); ++i) sets.unite(in()[i % in_each], in()[i]);
    const Numbers first = fresh(static_cast<int64_t>(out_each));
    for (size_t i = 0; i < out.size(); ++i) out[i] = first[i % out_each];
    return out;
  }
  Numbers operator()(const TransposedConvolution& op) const { return fresh(op.out_channels); }
  Numbers operator()(const Linear& op) const { return fresh(op.out_features); }
  Numbers operator()(const Add&) const {
    for (const Numbers* other : inputs)
      for (size_t i = 0; i < in().size(); ++i) sets.unite(in()[i], (*other)[i]);
    return in();
  }
  Numbers operator()(const Concat&) const {
    Numbers all;
    for (const Numbers* one : inputs) all.insert(all.end(), one->begin(), one->end());
    return all;
  }
  Numbers operator()(const Slice& op) const { return {in().begin() + op.begin, in().begin() + op.end}; }
  Numbers operator()(const Flatten&) const {
    const auto pixels = static_cast<size_t>(shapes.front().height * shapes.front().width);
    Numbers features;
    features.reserve(in().size() * pixels);
    for (const int32_t number : in()) features.insert(features.end(), pixels, number);
    return features;
  }
  template <typename PassesOn>
  Numbers operator()(const PassesOn&) const {
    return in();
  }
};

class Mapper {
 public:
  explicit Mapper(const Graph& graph) : graph_(graph) {}

  ChannelMap run() {
    for (size_t i = 0; i < graph_.layers.size(); ++i) map_.channel_of.push_back(channels_of(graph_.layers[i]));
    number_them();
    find_groups();
    return std::move(map_);
  }

 private:
  Numbers channels_of(const Layer& layer) {
    if (layer.inputs.empty()) {
      Numbers numbers;
      for (int64_t i = 0; i < layer.output.channels; ++i) numbers.push_back(sets_.add());
      return numbers;
    }
    std::vector<const Numbers*> inputs;
    std::vector<Shape> shapes;
    for (const LayerId id : layer.inputs) {
      inputs.push_back(&map_.channel_of[static_cast<size_t>(id)]);
      shapes.push_back(graph_.layer(id).output);
    }
    return std::visit(Propagation{sets_, inputs, shapes}, layer.operation);
  }

  // Sets become numbers without gaps.
  void number_them() {
    std::vector<int32_t> number(sets_.size(), -1);
    for (Numbers& channels : map_.channel_of) {
      for (int32_t& channel : channels) {
        int32_t& known = number[static_cast<size_t>(sets_.find(channel))];
        if (known < 0) known = map_.count++;
        channel = known;
      }
    }
  }

  std::vector<bool> fixed_ones() const {
    std::vector<bool> fixed(static_cast<size_t>(map_.count), false);
    const auto fix = [&](size_t layer) {
      for (const int32_t number : map_.channel_of[layer]) fixed[static_cast<size_t>(number)] = true;
    };
    fix(0);
    for (const LayerId id : graph_.outputs) fix(static_cast<size_t>(id));
    for (size_t i = 0; i < graph_.layers.size(); ++i) {
      const Operation& operation = graph_.layers[i].operation;
      if (std::holds_alternative<YoloHead>(operation) || std::holds_alternative<Softmax>(operation)) fix(i);
    }
    return fixed;
  }

  void find_groups() {
    const std::vector<bool> fixed = fixed_ones();
    std::vector<std::vector<LayerId>> layers(fixed.size()), kind(fixed.size());
    std::vector<std::vector<Filter>> filters(fixed.size());
    for (size_t i = 0; i < graph_.layers.size(); ++i) {
      const Operation& operation = graph_.layers[i].operation;
      const auto id = static_cast<LayerId>(i);
      const bool makes = has_filters(operation);
      if (!makes && !std::holds_alternative<Slice>(operation)) continue;
      for (size_t c = 0; c < map_.channel_of[i].size(); ++c) {
        const auto number = static_cast<size_t>(map_.channel_of[i][c]);
        if (makes) filters[number].push_back({id, static_cast<int64_t>(c)});
        if (makes && (layers[number].empty() || layers[number].back() != id)) layers[number].push_back(id);
        if (kind[number].empty() || kind[number].back() != id) kind[number].push_back(id);
      }
    }
    std::map<std::vector<LayerId>, size_t> group_of;
    for (size_t number = 0; number < fixed.size(); ++number) {
      if (fixed[number] || filters[number].empty()) continue;
      const auto [found, is_new] = group_of.emplace(kind[number], map_.groups.size());
      if (is_new) map_.groups.push_back({layers[number], {}});
      map_.groups[found->second].channels.push_back({static_cast<int32_t>(number), std::move(filters[number])});
    }
  }

  const Graph& graph_;
  DisjointSets sets_;
  ChannelMap map_;
};

}  // namespace

ChannelMap map_channels(const Graph& graph) {
  return Mapper(graph).run();
}

}  // namespace strobe::models
