// A network cut in two, so that its parts can run one after the other, on different devices or on the same.
#pragma once

#include <string_view>

#include "strobe/base/result.h"
#include "strobe/models/graph.h"

namespace strobe::models {

struct SplitGraph {
  Graph first;   // its last output is what crosses over; before it, those of the whole network that it computes
  Graph second;  // reads what crosses over; its outputs are the rest of the whole network's
  // By output of the whole network: whether the second part gives it.
  std::vector<bool> from_second;
};

// Cuts behind `layer`: a layer's name, or the first parts of names ("layer3" of resnet18 is everything that begins with
// "layer3."); the last such layer is the first part's last one. Exactly one tensor may cross. Errors: kUsage (no such
// layer: suggests one; nothing left behind it; several tensors cross there: names the nearest places that are right).
Result<SplitGraph> split_graph(const Graph& graph, std::string_view layer);

}  // namespace strobe::models
