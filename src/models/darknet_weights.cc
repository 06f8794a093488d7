#include "models/darknet_weights.h"

#include <fmt/format.h>

#include <bit>
#include <cstdint>
#include <cstring>

#include "models/graph_builder.h"

namespace strobe::models {
namespace {

static_assert(std::endian::native == std::endian::little, "Darknet weights are little-endian");

// One run of numbers in the file.
struct Blob {
  LayerId layer;
  std::string_view role;
  Weights* tensor;
  bool transposable = false;  // of fully connected layers
};

struct Header {
  size_t bytes = 0;
  bool transposed = false;
};

// int32 major, minor, revision, then the number of pictures seen: 64 bits wide since version 0.2.
Result<Header> read_header(std::string_view bytes) {
  int32_t version[3] = {};
  if (bytes.size() < sizeof version) {
    return bad_data(fmt::format("{} bytes, too short for the header of a Darknet weights file", bytes.size()));
  }
  std::memcpy(version, bytes.data(), sizeof version);
  const int64_t major = version[0];
  const int64_t minor = version[1];
  if (major < 0 || minor < 0 || version[2] < 0) {
    return bad_data(fmt::format("version {}.{}.{} in its first bytes: no Darknet weights file", version[0], version[1],
                                version[2]));
  }
  const bool wide = major * 10 + minor >= 2 && major < 1000 && minor < 1000;
  const Header header{sizeof version + (wide ? 8 : 4), major > 1000 || minor > 1000};
  if (bytes.size() < header.bytes) {
    return bad_data(fmt::format("{} bytes, too short for the header of a Darknet weights file", bytes.size()));
  }
  return header;
}

BatchNorm* batch_norm_after(Graph& graph, LayerId id) {
  const auto next = static_cast<size_t>(id) + 1;
  if (next >= graph.layers.size() || graph.layers[next].inputs != std::vector<LayerId>{id}) return nullptr;
  return std::get_if<BatchNorm>(&graph.layers[next].operation);
}

// The order of numbers in the file. A batch norm belongs to the layer before it: its shift is Darknet's bias.
std::vector<Blob> file_order(Graph& graph) {
  std::vector<Blob> blobs;
  for (LayerId id = 0; id < static_cast<LayerId>(graph.layers.size()); ++id) {
    Operation& operation = graph.layers[static_cast<size_t>(id)].operation;
    auto* conv = std::get_if<Convolution>(&operation);
    auto* linear = std::get_if<Linear>(&operation);
    if (!conv && !linear) continue;
    BatchNorm* norm = batch_norm_after(graph, id);
    Weights* bias = norm ? &norm->shift : conv ? &conv->bias : &linear->bias;
    if (*bias) blobs.push_back({id, "bias", bias});
    if (linear) blobs.push_back({id, "weights", &linear->weight, true});
    if (norm) {
      blobs.push_back({id, "batch norm scales", &norm->scale});
      blobs.push_back({id, "batch norm means", &norm->mean});
      blobs.push_back({id, "batch norm variances", &norm->variance});
    }
    if (conv) blobs.push_back({id, "weights", &conv->weight});
  }
  return blobs;
}

Result<void> check_size(const Graph& graph, const std::vector<Blob>& blobs, int64_t numbers) {
  int64_t needed = 0;
  const Blob* end = nullptr;
  int64_t found = 0, expected = 0;
  for (const Blob& blob : blobs) {
    const int64_t count = element_count(**blob.tensor);
    if (!end && needed + count > numbers) {
      end = &blob;
      found = numbers - needed;
      expected = count;
    }
    needed += count;
  }
  if (end) {
    return bad_data(fmt::format(
        "ends in layer {}: {} of its {} {} are there; {} numbers are missing in all ({} needed, {} in the file)",
        graph.layer(end->layer).name, found, expected, end->role, needed - numbers, needed, numbers));
  }
  if (needed < numbers) {
    const std::string last = blobs.empty() ? "the network has no weights"
                                           : "the last layer with weights is " + graph.layer(blobs.back().layer).name;
    return bad_data(fmt::format("{} numbers are left over ({} needed, {} in the file; {})", numbers - needed, needed,
                                numbers, last));
  }
  return {};
}

std::vector<float> transposed(const std::vector<float>& in, int64_t out_features) {
  const size_t rows = static_cast<size_t>(out_features);
  const size_t columns = in.size() / rows;
  std::vector<float> out(in.size());
  for (size_t r = 0; r < rows; ++r) {
    for (size_t c = 0; c < columns; ++c) out[r * columns + c] = in[c * rows + r];
  }
  return out;
}

}  // namespace

Result<void> load_darknet_weights(Graph& graph, std::string_view bytes) {
  STROBE_ASSIGN(const Header header, read_header(bytes));
  bytes.remove_prefix(header.bytes);
  if (bytes.size() % sizeof(float) != 0) {
    return bad_data(fmt::format("{} bytes after the header are no whole number of float32", bytes.size()));
  }
  const std::vector<Blob> blobs = file_order(graph);
  STROBE_TRY(check_size(graph, blobs, static_cast<int64_t>(bytes.size() / sizeof(float))));
  for (const Blob& blob : blobs) {
    Tensor tensor{(*blob.tensor)->shape, {}};
    tensor.values.resize(static_cast<size_t>(element_count(tensor)));
    std::memcpy(tensor.values.data(), bytes.data(), tensor.values.size() * sizeof(float));
    bytes.remove_prefix(tensor.values.size() * sizeof(float));
    if (blob.transposable && header.transposed) tensor.values = transposed(tensor.values, tensor.shape.front());
    *blob.tensor = std::make_shared<const Tensor>(std::move(tensor));
  }
  return {};
}

}  // namespace strobe::models
