// Weights in the safetensors format: 8 bytes little-endian length of a JSON header, the header ({"name": {"dtype",
// "shape", "data_offsets": [begin, end]}, ..., "__metadata__": {text: text}}), then the tensors without gaps,
// row-major.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "strobe/base/result.h"
#include "strobe/models/graph.h"

namespace strobe::models {

struct Safetensors {
  std::map<std::string, Tensor, std::less<>> tensors;
  std::map<std::string, std::string, std::less<>> metadata;
};

// F64, F32, F16 and BF16 become float32; tensors of other types (counters of batches) are left out. Errors: kBadData
// naming the tensor and what was expected; nothing is allocated that the file does not hold.
Result<Safetensors> read_safetensors(std::string_view bytes);
// As F32, tensors in the order of their names, the data aligned to 8 bytes.
std::string write_safetensors(const Safetensors& content);

// Fills a graph's weights from tensors named as PyTorch's modules name them: layer's name + ".weight", ".bias",
// ".running_mean", ".running_var". Every weight must be there with its shape, and nothing else but what a classifier
// does not need ("num_batches_tracked", the auxiliary heads "aux1", "aux2"). Errors: kBadData naming the tensor.
Result<void> set_weights(Graph& graph, Safetensors content);
Safetensors weights_of(const Graph& graph);

}  // namespace strobe::models
