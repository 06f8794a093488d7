// LayerList: a network as predictions see it, one row per executed operation in the order of the forward pass, in the
// columns of a layers.csv (docs/prediction.md). It is what a Graph comes down to when only shapes count, and what the
// files of other profilers hold.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "strobe/base/result.h"
#include "strobe/models/graph.h"

namespace strobe::predict {

enum class LayerKind : uint8_t {
  kConv,
  kBatchNorm,
  kRelu,
  kRelu6,
  kMaxPool,
  kAveragePool,
  kLinear,
  kAdd,
  kCat,
  // Not in the published lists; from_graph() needs them for other networks.
  kConvTranspose,  // learned upsampling
  kActivation,     // any element-wise function but ReLU and ReLU6
  kSlice,          // part of the channels, as a view
  kUpsample,       // nearest neighbour
  kSoftmax,
};
std::string_view to_string(LayerKind kind);  // "conv", "bn", "relu", ... as in the column `type`
std::optional<LayerKind> layer_kind(std::string_view name);
std::string layer_kind_names();  // "conv, bn, ..." for messages

struct LayerRow {
  LayerKind type = LayerKind::kConv;
  int64_t ic = 0, oc = 0;  // channels (linear: features; cat: the sum of its parts, in both)
  int64_t kh = 0, kw = 0, sh = 0, sw = 0, ph = 0, pw = 0;  // 0 where the type has none
  int64_t groups = 1;
  int64_t ih = 0, iw = 0, oh = 0, ow = 0;
  bool bias = false;
  bool inplace = false;         // the output lies in the input's tensor
  std::vector<int32_t> inputs;  // rows that produce its inputs; -1: the network's input

  // Numbers of one item of the batch.
  double in_elements() const { return static_cast<double>(ic) * static_cast<double>(ih * iw); }
  double out_elements() const { return static_cast<double>(oc) * static_cast<double>(oh * ow); }
  // Learned numbers: weights and biases (bn: scale and shift).
  double parameters() const;
  bool operator==(const LayerRow&) const = default;
};

struct LayerList {
  std::string net;
  int64_t level = 0;  // percent that was pruned
  std::vector<LayerRow> rows;

  double parameters() const;
  bool operator==(const LayerList&) const = default;
};

// Levels are whole percents.
inline constexpr int64_t kMaxLevel = 100;

// The columns net, level, index, type, ic, oc, kh, kw, sh, sw, ph, pw, groups, ih, iw, oh, ow, bias, inplace and
// inputs, in any order; others are passed over. Lists come in the order of their first rows. Errors: kBadData with line
// and column and what was expected: an index that is not the next of its list, an input that is no earlier row, groups
// that do not divide the channels, a convolution without a kernel, ...
Result<std::vector<LayerList>> parse_layer_lists(std::string text);
// Errors: those, after the path; kNotFound, kIo.
Result<std::vector<LayerList>> read_layer_lists(const std::filesystem::path& path);
std::string format_layer_lists(const std::vector<LayerList>& lists);

// The list of a network. What differs between the two views:
// - Input, Flatten, Dropout, YoloHead and linear activations compute nothing and have no row (Dropout is an identity at
//   inference; in training its mask is not counted, as in the published lists).
// - ReLU, ReLU6 and other activations that backward can undo from their output (leaky, ELU, logistic, tanh) are in
//   place where nothing else reads their input, as PyTorch's model zoo writes them; mish, swish and hard-swish are not.
// - GlobalAveragePool is an avgpool with the whole map as kernel and stride 0; Slice is a view (in place).
// - Pools padded on one side more than on the other say the smaller padding; oh and ow are exact.
// - The dilation of a convolution is not told: operations, weights and shapes do not depend on it.
LayerList from_graph(const models::Graph& graph, int64_t level = 0);

}  // namespace strobe::predict
