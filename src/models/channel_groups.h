// Which channels of a network can only be removed together. An addition ties the channels of its inputs to each other,
// a depthwise convolution its outputs to its inputs, a grouped convolution the channels at the same place of its
// groups; everything else (batch norm, activation, pool, upsampling, concatenation, slice, flattening) passes channels
// on. Such dependency graphs: Fang et al. 2023, DepGraph, arXiv:2301.12900.
#pragma once

#include <cstdint>
#include <vector>

#include "strobe/base/result.h"
#include "strobe/models/graph.h"

namespace strobe::models {

// One output channel of a layer with weights (a convolution of any kind, a linear layer).
struct Filter {
  LayerId layer = 0;
  int64_t channel = 0;
};

// The filters that go together, and the number under which ChannelMap::channel_of knows them.
struct CoupledChannel {
  int32_t number = 0;
  std::vector<Filter> filters;
};

// Coupled channels with filters in the same layers, which pass the same slices: they are alike, and one of them has to
// stay, so that no layer and no slice is left without channels.
struct ChannelGroup {
  std::vector<LayerId> layers;  // whose filters these are, ascending
  std::vector<CoupledChannel> channels;
};

struct ChannelMap {
  // By layer, by output channel (of a vector: by feature): the coupled channel that it is part of, 0 <= number < count.
  std::vector<std::vector<int32_t>> channel_of;
  int32_t count = 0;
  // What may be pruned, in the order of the layers. Channels of the network's input, of its outputs, of YOLO heads and
  // of a softmax may not.
  std::vector<ChannelGroup> groups;
};

// graph: sound (models/graph_builder.h).
ChannelMap map_channels(const Graph& graph);

// The graph without those coupled channels: filters, the weights that read them, batch norms, slices. Layers keep their
// names and order. removed: by number; never all channels of a group. Weights that are only declared stay so.
// Errors: kBadData naming the layer (something that must stay was removed).
Result<Graph> remove_channels(const Graph& graph, const ChannelMap& map, const std::vector<bool>& removed);

}  // namespace strobe::models
