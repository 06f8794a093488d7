// Opening a network by what a user types: a built-in name or a file.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "strobe/base/result.h"
#include "strobe/models/graph.h"

namespace strobe::models {

struct OpenOptions {
  std::filesystem::path
      weights;  // Darknet's, or *.safetensors; empty: a built-in network's own, or seeded ones (graph.trained = false)
  bool seeded = false;            // seeded weights even where the network has its own
  std::filesystem::path labels;   // one class name a line; empty: COCO's 80 names when the network has 80 classes
  int64_t width = 0, height = 0;  // 0: the network's own input size
  uint64_t seed = 1;
};

// name: a built-in network ("yolov4-tiny", "resnet18"), a path of a Darknet .cfg or of a graph's .json, which brings
// the weights of the .safetensors beside it, if there is one (models/graph_json.h). Errors: kNotFound (lists the
// built-in names and what files are read), kBadData (file, line or layer, what was expected), kUnsupported (layer
// type).
Result<Graph> open_graph(const std::string& name, const OpenOptions& options);
std::vector<std::string> builtin_names();

// Class names, one a line. Errors: kNotFound, kIo, kBadData.
Result<std::vector<std::string>> read_labels(const std::filesystem::path& path);

}  // namespace strobe::models
