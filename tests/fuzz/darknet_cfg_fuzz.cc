// Links: strobe_models
// Any bytes as a Darknet .cfg: an error of one line, or a sound graph. Nothing is allocated for declared weights.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "models/cost.h"
#include "models/darknet.h"
#include "models/graph_builder.h"
#include "models/seed.h"
#include "models/yolo.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace strobe::models;
  auto graph = parse_darknet({reinterpret_cast<const char*>(data), size}, "fuzz");
  if (!graph) {
    const std::string line = graph.error().to_string();
    if (line.empty() || line.find('\n') != std::string::npos) std::abort();
    return 0;
  }
  const Cost cost = graph_cost(*graph);
  if (cost.flop < 0 || cost.bytes < 0 || cost.parameters < 0 || network_stride(*graph) < 1) std::abort();
  (void)YoloDecoder::create(*graph, {});
  constexpr int64_t kSmall = 1 << 16;
  if (cost.parameters < kSmall && graph->layers.size() < 200) {
    if (!seed_weights(*graph, 1) || !validate(*graph)) std::abort();
  }
  return 0;
}
