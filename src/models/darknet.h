// Darknet networks: a .cfg text becomes a Graph. What is read, and how, stands in docs/models.md.
//
// One Darknet layer may become several layers of the graph, all named after Darknet's own layer number:
// "003_convolutional", "003_convolutional.bn", "003_convolutional.leaky". A route to one layer becomes none.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "strobe/base/result.h"
#include "strobe/models/graph.h"

namespace strobe::models {

struct DarknetOptions {
  int64_t width = 0, height = 0;  // 0: as the file says
};

// The structure alone: weights are declared, not filled (see graph_builder.h). Errors start with "line N": kBadData
// says what was expected, kUnsupported names the layer type or key.
Result<Graph> parse_darknet(std::string_view cfg, std::string name, const DarknetOptions& options = {});

// The same from a file; errors start with its path.
Result<Graph> read_darknet(const std::filesystem::path& cfg, const DarknetOptions& options = {});

}  // namespace strobe::models
