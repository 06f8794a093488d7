// Links: strobe_models
// Any bytes as a network's .json: an error of one line, or a sound graph that is written and read again as it is.
// Nothing is allocated for declared weights.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "models/cost.h"
#include "models/graph_builder.h"
#include "models/graph_json.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace strobe::models;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto graph = parse_graph_json(text);
  // At another size it may be refused for other reasons, or be another graph.
  if (const auto resized = parse_graph_json(text, {64, 32}); resized && graph_cost(*resized).flop < 0) std::abort();
  if (!graph) {
    if (graph.error().exit_code() != 2) std::abort();
    return 0;
  }
  if (graph->layers.empty() || graph->outputs.empty() || graph_cost(*graph).bytes < 0) std::abort();
  const std::string written = write_graph_json(*graph);
  const auto again = parse_graph_json(written);
  if (!again || write_graph_json(*again) != written) std::abort();
  return 0;
}
