#include <algorithm>
#include <vector>

#include "predict/layer_list.h"

namespace strobe::predict {
namespace {

using namespace models;

// Whether backward needs only the output of the function, so that programs write it over its input.
bool undone_from_output(ActivationKind kind) {
  return kind != ActivationKind::kMish && kind != ActivationKind::kSwish && kind != ActivationKind::kHardSwish;
}

// Fills what the operation says of itself into a row; false: the operation computes nothing.
struct RowOf {
  const Shape& in;
  LayerRow& row;

  bool operator()(const Convolution& op) const { return convolution(op, LayerKind::kConv, op.groups); }
  bool operator()(const TransposedConvolution& op) const { return convolution(op, LayerKind::kConvTranspose, 1); }
  bool operator()(const BatchNorm&) const {
    row.type = LayerKind::kBatchNorm;
    row.bias = true;
    return true;
  }
  bool operator()(const Activation& op) const {
    row.type = op.kind == ActivationKind::kRelu    ? LayerKind::kRelu
               : op.kind == ActivationKind::kRelu6 ? LayerKind::kRelu6
                                                   : LayerKind::kActivation;
    return op.kind != ActivationKind::kLinear;
  }
  bool operator()(const Pool& op) const {
    row.type = op.kind == Pool::Kind::kMax ? LayerKind::kMaxPool : LayerKind::kAveragePool;
    row.kh = op.kernel_h, row.kw = op.kernel_w;
    row.sh = op.stride_h, row.sw = op.stride_w;
    row.ph = std::min(op.pad_top, op.pad_bottom), row.pw = std::min(op.pad_left, op.pad_right);
    return true;
  }
  bool operator()(const GlobalAveragePool&) const {
    row.type = LayerKind::kAveragePool;
    row.kh = in.height, row.kw = in.width;
    return true;
  }
  bool operator()(const Linear& op) const {
    row.type = LayerKind::kLinear;
    row.kh = row.kw = row.sh = row.sw = 1;
    row.bias = op.bias != nullptr;
    return true;
  }
  bool operator()(const Concat&) const {
    row.ic = row.oc;
    return kind(LayerKind::kCat);
  }
  bool operator()(const Add&) const { return kind(LayerKind::kAdd); }
  bool operator()(const Slice&) const {
    row.inplace = true;
    return kind(LayerKind::kSlice);
  }
  bool operator()(const Upsample&) const { return kind(LayerKind::kUpsample); }
  bool operator()(const Softmax&) const { return kind(LayerKind::kSoftmax); }
  bool operator()(const Input&) const { return false; }
  bool operator()(const Flatten&) const { return false; }
  bool operator()(const Dropout&) const { return false; }
  bool operator()(const YoloHead&) const { return false; }

 private:
  bool kind(LayerKind is) const {
    row.type = is;
    return true;
  }
  template <typename Op>
  bool convolution(const Op& op, LayerKind is, int64_t groups) const {
    row.kh = op.kernel_h, row.kw = op.kernel_w;
    row.sh = op.stride_h, row.sw = op.stride_w;
    row.ph = op.pad_h, row.pw = op.pad_w;
    row.groups = groups;
    row.bias = op.bias != nullptr;
    return kind(is);
  }
};

constexpr int32_t kNetworkInput = -1;

// Where the values of each layer lie: the row that made them, seen through layers without a row.
struct Places {
  std::vector<int32_t> row;
  std::vector<int> readers;  // of the values of each row, by row; the network's outputs count

  int32_t of(LayerId layer) const { return row[static_cast<size_t>(layer)]; }
};

bool has_row(const Layer& layer) {
  LayerRow ignored;
  const Shape shape;
  return std::visit(RowOf{shape, ignored}, layer.operation);
}

Places find_places(const Graph& graph) {
  Places places;
  const auto read = [&](LayerId layer) {
    if (const int32_t row = places.of(layer); row != kNetworkInput) ++places.readers[static_cast<size_t>(row)];
  };
  for (const Layer& layer : graph.layers) {
    if (!has_row(layer)) {
      places.row.push_back(layer.inputs.empty() ? kNetworkInput : places.of(layer.inputs.front()));
      continue;
    }
    for (const LayerId input : layer.inputs) read(input);
    places.row.push_back(static_cast<int32_t>(places.readers.size()));
    places.readers.push_back(0);
  }
  for (const LayerId output : graph.outputs) read(output);
  return places;
}

// Nothing else reads what the activation would overwrite, neither a layer nor backward of the one that made it.
bool can_overwrite(const std::vector<LayerRow>& rows, const Places& places, int32_t input) {
  return input != kNetworkInput && places.readers[static_cast<size_t>(input)] == 1 &&
         rows[static_cast<size_t>(input)].type != LayerKind::kActivation &&
         rows[static_cast<size_t>(input)].type != LayerKind::kSoftmax;
}

}  // namespace

LayerList from_graph(const Graph& graph, int64_t level) {
  LayerList list{graph.name, level, {}};
  const Places places = find_places(graph);
  for (const Layer& layer : graph.layers) {
    if (!has_row(layer)) continue;
    const Shape& in = graph.layer(layer.inputs.front()).output;
    const Shape& out = layer.output;
    LayerRow row;
    row.ic = in.channels, row.ih = in.height, row.iw = in.width;
    row.oc = out.channels, row.oh = out.height, row.ow = out.width;
    std::visit(RowOf{in, row}, layer.operation);
    for (const LayerId input : layer.inputs) row.inputs.push_back(places.of(input));
    if (const auto* activation = std::get_if<Activation>(&layer.operation))
      row.inplace = undone_from_output(activation->kind) && can_overwrite(list.rows, places, row.inputs.front());
    list.rows.push_back(std::move(row));
  }
  return list;
}

}  // namespace strobe::predict
