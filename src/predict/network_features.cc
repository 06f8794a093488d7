#include "predict/network_features.h"

#include <algorithm>

namespace strobe::predict {
namespace {

constexpr double kBytes = 4;       // of a float32
constexpr double kIndexBytes = 8;  // of a maximum's place
constexpr double kGiga = 1e9, kMilli = 1e3, kMicro = 1e6;

bool is_conv(const LayerRow& row) {
  return row.type == LayerKind::kConv || row.type == LayerKind::kConvTranspose;
}

bool is_activation(LayerKind kind) {
  return kind == LayerKind::kRelu || kind == LayerKind::kRelu6 || kind == LayerKind::kActivation;
}

double flop_of(const LayerRow& row) {
  const double kernel = static_cast<double>(row.kh * row.kw);
  switch (row.type) {
    case LayerKind::kConv:
      return (2 * static_cast<double>(row.ic / row.groups) * kernel + (row.bias ? 1 : 0)) * row.out_elements();
    case LayerKind::kConvTranspose:
      return 2 * row.in_elements() * static_cast<double>(row.oc) * kernel + (row.bias ? row.out_elements() : 0);
    case LayerKind::kLinear:
      return (2 * static_cast<double>(row.ic) + (row.bias ? 1 : 0)) * static_cast<double>(row.oc);
    case LayerKind::kBatchNorm:
      return 2 * row.out_elements();
    case LayerKind::kMaxPool:
    case LayerKind::kAveragePool:
      return kernel * row.out_elements();
    case LayerKind::kAdd:
      return static_cast<double>(row.inputs.size() - 1) * row.out_elements();
    case LayerKind::kSoftmax:
      return 3 * row.out_elements();
    case LayerKind::kRelu:
    case LayerKind::kRelu6:
    case LayerKind::kActivation:
      return row.out_elements();
    case LayerKind::kCat:
    case LayerKind::kSlice:
    case LayerKind::kUpsample:
      return 0;
  }
  return 0;
}

// The inputs of an addition are all read; a concatenation's `ic` has all of its parts already.
double item_bytes_of(const LayerRow& row) {
  if (row.type == LayerKind::kSlice) return 0;
  const double inputs = row.type == LayerKind::kAdd ? static_cast<double>(row.inputs.size()) : 1;
  return kBytes * (inputs * row.in_elements() + row.out_elements());
}

Work work_of(const LayerRow& row) {
  return {1, flop_of(row), item_bytes_of(row), kBytes * row.parameters()};
}

// Buffers: rows that work in place share that of their input.
class Buffers {
 public:
  explicit Buffers(const std::vector<LayerRow>& rows) : rows_(rows), saved_(rows.size(), false) {
    for (size_t i = 0; i < rows.size(); ++i) {
      const int32_t input = rows[i].inputs.empty() ? -1 : rows[i].inputs.front();
      owner_.push_back(rows[i].inplace ? owner(input) : static_cast<int32_t>(i));
    }
  }
  void save(int32_t row) {
    if (row < 0 || owner(row) < 0)
      input_saved_ = true;
    else
      saved_[static_cast<size_t>(owner(row))] = true;
  }
  double saved_elements() const {
    double sum = input_saved_ && !rows_.empty() ? rows_.front().in_elements() : 0;
    for (size_t i = 0; i < rows_.size(); ++i)
      if (saved_[i]) sum += rows_[i].out_elements();
    return sum;
  }

 private:
  int32_t owner(int32_t row) const { return row < 0 ? -1 : owner_[static_cast<size_t>(row)]; }
  const std::vector<LayerRow>& rows_;
  std::vector<int32_t> owner_;  // the row whose buffer it is; -1: the network's input
  std::vector<bool> saved_;
  bool input_saved_ = false;
};

double saved_bytes_of(const std::vector<LayerRow>& rows) {
  Buffers buffers(rows);
  double places = 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    const LayerRow& row = rows[i];
    const bool keeps_input = is_conv(row) || row.type == LayerKind::kBatchNorm || row.type == LayerKind::kLinear ||
                             row.type == LayerKind::kMaxPool || (row.type == LayerKind::kActivation && !row.inplace);
    const bool keeps_output = row.type == LayerKind::kSoftmax ||
                              (is_activation(row.type) && !(row.type == LayerKind::kActivation && !row.inplace));
    if (keeps_input)
      for (const int32_t input : row.inputs) buffers.save(input);
    if (keeps_output) buffers.save(static_cast<int32_t>(i));
    if (row.type == LayerKind::kMaxPool) places += kIndexBytes * row.out_elements();
  }
  return kBytes * buffers.saved_elements() + places;
}

// Whether an engine can let the row go along with the one before it: what it reads was just made by a convolution or a
// linear layer, or goes along with one itself.
int64_t fused_kernels_of(const std::vector<LayerRow>& rows) {
  std::vector<bool> of_conv(rows.size(), false);
  int64_t kernels = 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    const LayerRow& row = rows[i];
    if (row.type == LayerKind::kSlice) continue;
    const bool follows = !row.inputs.empty() && std::any_of(row.inputs.begin(), row.inputs.end(), [&](int32_t input) {
      return input >= 0 && of_conv[static_cast<size_t>(input)];
    });
    const bool fuses =
        follows && (row.type == LayerKind::kBatchNorm || row.type == LayerKind::kAdd || is_activation(row.type));
    of_conv[i] = fuses || is_conv(row) || row.type == LayerKind::kLinear;
    kernels += fuses ? 0 : 1;
  }
  return kernels;
}

}  // namespace

std::string_view to_string(WorkKind kind) {
  constexpr std::array<std::string_view, kWorkKinds> kNames = {"depthwise",  "1x1",    "3x3",   "3x3_strided",
                                                               "other_conv", "linear", "memory"};
  return kNames[static_cast<size_t>(kind)];
}

WorkKind work_kind(const LayerRow& row) {
  if (row.type == LayerKind::kLinear) return WorkKind::kLinear;
  if (!is_conv(row)) return WorkKind::kMemory;
  if (row.groups > 1 && row.groups == row.ic) return WorkKind::kDepthwise;
  if (row.type == LayerKind::kConvTranspose) return WorkKind::kOtherConv;
  if (row.kh == 1 && row.kw == 1) return WorkKind::kPointwise;
  if (row.kh != 3 || row.kw != 3) return WorkKind::kOtherConv;
  return row.sh == 1 && row.sw == 1 ? WorkKind::k3x3 : WorkKind::kStrided;
}

double NetworkFeatures::flop() const {
  double sum = 0;
  for (const Work& of_kind : work) sum += of_kind.flop;
  return sum;
}

double NetworkFeatures::bytes(double batch) const {
  double sum = 0;
  for (const Work& of_kind : work) sum += batch * of_kind.item_bytes + of_kind.weight_bytes;
  return sum;
}

NetworkFeatures network_features(const LayerList& layers) {
  NetworkFeatures features;
  for (const LayerRow& row : layers.rows) {
    Work& sum = features.work[static_cast<size_t>(work_kind(row))];
    const Work work = work_of(row);
    sum.layers += work.layers;
    sum.flop += work.flop;
    sum.item_bytes += work.item_bytes;
    sum.weight_bytes += work.weight_bytes;
    features.kernels += row.type == LayerKind::kSlice ? 0 : 1;
    if (!is_conv(row)) continue;
    const double tensors = kBytes * (row.in_elements() + row.out_elements());
    features.largest_conv_bytes = std::max(features.largest_conv_bytes, tensors);
    if (row.kh * row.kw > 1)
      features.im2col_bytes +=
          kBytes * static_cast<double>(row.ic) * static_cast<double>(row.kh * row.kw * row.oh * row.ow);
  }
  features.parameter_bytes = kBytes * layers.parameters();
  features.saved_bytes = saved_bytes_of(layers.rows);
  features.fused_kernels = fused_kernels_of(layers.rows);
  return features;
}

RooflineTimes roofline_times(const LayerList& layers, double batch, const DeviceLimits& device) {
  RooflineTimes times;
  for (const LayerRow& row : layers.rows) {
    if (row.type == LayerKind::kSlice) continue;
    const Work work = work_of(row);
    const double peak = device.peak_gflops[static_cast<size_t>(work_kind(row))];
    const double compute = batch * work.flop / (peak * kGiga) * kMilli;
    const double memory = (batch * work.item_bytes + work.weight_bytes) / (device.bandwidth_gb_s * kGiga) * kMilli;
    times.compute_ms += compute;
    times.memory_ms += memory;
    times.roofline_ms += std::max(compute, memory);
    times.launch_ms += device.launch_us / kMicro * kMilli;
  }
  return times;
}

}  // namespace strobe::predict
