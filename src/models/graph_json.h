// A Graph as a JSON file, its weights as safetensors beside it under the same stem (net.json, net.safetensors). The
// form, with what is checked, stands in docs/pruning.md.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "strobe/base/result.h"
#include "strobe/models/graph.h"

namespace strobe::models {

inline constexpr int64_t kGraphJsonVersion = 1;

struct GraphJsonSize {
  int64_t width = 0, height = 0;  // 0: as the file says; otherwise the shapes that the file names are not compared
};

// One layer a line. The same graph gives the same text.
std::string write_graph_json(const Graph& graph);

// The structure alone: weights are declared, not filled. Errors: kBadData saying the line or the layer and what was
// expected; keys that are not known are refused, too.
Result<Graph> parse_graph_json(std::string_view text, const GraphJsonSize& size = {});
// The same from a file; errors start with its path.
Result<Graph> read_graph_json(const std::filesystem::path& path, const GraphJsonSize& size = {});

// net.json -> net.safetensors
std::filesystem::path weights_beside(const std::filesystem::path& graph_file);

enum class WithWeights : uint8_t { kNo, kYes };
// Both files appear when complete, the weights first. Errors: kIo; kUsage when no weights are to be written but a file
// of that name is there, which would be taken for them.
Result<void> save_graph(const Graph& graph, const std::filesystem::path& path, WithWeights weights);

}  // namespace strobe::models
