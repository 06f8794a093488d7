// The surgery: what is left of each layer without some coupled channels.
#include <fmt/format.h>

#include <algorithm>

#include "models/channel_groups.h"
#include "models/graph_builder.h"

namespace strobe::models {
namespace {

using Kept = std::vector<size_t>;

int64_t count_of(const Kept& kept) {
  return static_cast<int64_t>(kept.size());
}

// tensor[rows, columns, ...]; columns: null for all, or for a vector.
Weights gathered(const Weights& tensor, const Kept& rows, const Kept* columns = nullptr) {
  Tensor result{tensor->shape, {}};
  result.shape[0] = count_of(rows);
  if (columns != nullptr) result.shape[1] = count_of(*columns);
  if (tensor->values.empty()) return std::make_shared<const Tensor>(std::move(result));
  size_t block = 1;  // numbers of one row, or of one column of a row
  for (size_t i = columns == nullptr ? 1 : 2; i < tensor->shape.size(); ++i)
    block *= static_cast<size_t>(tensor->shape[i]);
  result.values.reserve(static_cast<size_t>(element_count(result)));
  const auto copy = [&](size_t at) {
    const auto begin = tensor->values.begin() + static_cast<std::ptrdiff_t>(at * block);
    result.values.insert(result.values.end(), begin, begin + static_cast<std::ptrdiff_t>(block));
  };
  for (const size_t row : rows) {
    if (columns == nullptr) {
      copy(row);
    } else {
      for (const size_t column : *columns) copy(row * static_cast<size_t>(tensor->shape[1]) + column);
    }
  }
  return std::make_shared<const Tensor>(std::move(result));
}

struct Surgery {
  const Kept& in;   // channels of the first input that stay
  const Kept& out;  // channels of the output that stay
  const Shape& in_shape;

  void operator()(Convolution& op) const {
    // Where there are groups, all of those that stay keep the same places (or their only one).
    const int64_t in_each = in_shape.channels / op.groups;
    Kept places;
    const size_t first_group = in.empty() ? 0 : in.front() / static_cast<size_t>(in_each);
    for (const size_t channel : in)
      if (channel / static_cast<size_t>(in_each) == first_group)
        places.push_back(channel % static_cast<size_t>(in_each));
    if (op.groups > 1 && in_each == 1) op.groups = count_of(in);
    op.out_channels = count_of(out);
    op.weight = gathered(op.weight, out, &places);
    if (op.bias) op.bias = gathered(op.bias, out);
  }
  void operator()(TransposedConvolution& op) const {
    op.out_channels = count_of(out);
    op.weight = gathered(op.weight, in, &out);
    if (op.bias) op.bias = gathered(op.bias, out);
  }
  void operator()(Linear& op) const {
    op.out_features = count_of(out);
    op.weight = gathered(op.weight, out, &in);
    if (op.bias) op.bias = gathered(op.bias, out);
  }
  void operator()(BatchNorm& op) const {
    for (Weights* tensor : {&op.scale, &op.shift, &op.mean, &op.variance}) *tensor = gathered(*tensor, in);
  }
  void operator()(Slice& op) const {
    const auto begin = static_cast<size_t>(op.begin);
    op.begin = std::count_if(in.begin(), in.end(), [&](size_t channel) { return channel < begin; });
    op.end = op.begin + count_of(out);
  }
  template <typename Unchanged>
  void operator()(Unchanged&) const {}
};

}  // namespace

Result<Graph> remove_channels(const Graph& graph, const ChannelMap& map, const std::vector<bool>& removed) {
  std::vector<Kept> kept(graph.layers.size());
  for (size_t i = 0; i < kept.size(); ++i) {
    for (size_t c = 0; c < map.channel_of[i].size(); ++c)
      if (!removed[static_cast<size_t>(map.channel_of[i][c])]) kept[i].push_back(c);
    if (kept[i].empty()) return bad_data("no channel of it is left").at("layer " + graph.layers[i].name);
  }
  if (count_of(kept.front()) != graph.input_shape().channels) return bad_data("the input must keep its channels");

  GraphBuilder builder(graph.name);
  STROBE_TRY(builder.input(graph.input_shape(), graph.input_rule, graph.layers.front().name));
  for (size_t i = 1; i < graph.layers.size(); ++i) {
    const Layer& layer = graph.layers[i];
    const auto first = static_cast<size_t>(layer.inputs.front());
    Operation operation = layer.operation;
    const bool untouched =
        kept[i].size() == map.channel_of[i].size() && kept[first].size() == map.channel_of[first].size();
    if (!untouched) std::visit(Surgery{kept[first], kept[i], graph.layers[first].output}, operation);
    STROBE_TRY(builder.append(layer.name, std::move(operation), layer.inputs));
    // What is left of the map and what the operations make of it are two ways to the same shape.
    const Shape& shape = builder.shape(static_cast<LayerId>(i));
    if (shape.channels != count_of(kept[i]) || shape.height != layer.output.height || shape.width != layer.output.width)
      return internal_error(fmt::format("{} channels are left, its shape became {}", kept[i].size(), shape.to_string()))
          .at("layer " + layer.name);
  }
  for (const LayerId output : graph.outputs) builder.add_output(output);
  STROBE_ASSIGN(Graph pruned, std::move(builder).finish());
  pruned.labels = graph.labels;
  pruned.trained = graph.trained;
  return pruned;
}

}  // namespace strobe::models
