// Links: strobe_models
// Any bytes as the weights of a small network: an error, or a graph with all of its weights.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "models/darknet.h"
#include "models/darknet_weights.h"
#include "models/graph_builder.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace strobe::models;
  static const Graph structure = *parse_darknet(
      "[net]\nwidth=2\nheight=2\nchannels=1\n"
      "[convolutional]\nfilters=2\nbatch_normalize=1\nactivation=linear\n"
      "[convolutional]\nfilters=1\nactivation=linear\n"
      "[connected]\noutput=2\nactivation=linear\n",
      "fuzz");
  Graph graph = structure;
  const auto loaded = load_darknet_weights(graph, {reinterpret_cast<const char*>(data), size});
  if (loaded ? !validate(graph) : loaded.error().to_string().empty()) std::abort();
  return 0;
}
