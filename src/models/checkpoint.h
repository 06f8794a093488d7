// A network in the middle of its training, in one safetensors file: the weights under their own names, what the
// optimizer remembers under "optimizer." + its names, and "step" and "network" in the metadata.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "strobe/base/result.h"
#include "strobe/models/graph.h"

namespace strobe::models {

struct Checkpoint {
  Graph graph;
  std::map<std::string, Tensor> optimizer;
  int64_t step = 0;  // steps done
};

// The file appears when complete. Errors: kIo.
Result<void> write_checkpoint(const Checkpoint& checkpoint, const std::filesystem::path& path);
// graph: the network whose checkpoint it is, for its structure. Errors: kNotFound, kBadData (another network's, or no
// checkpoint).
Result<Checkpoint> read_checkpoint(const Graph& graph, const std::filesystem::path& path);

}  // namespace strobe::models
