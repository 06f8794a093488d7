// What a network costs by its layers alone: work by kind of layer, what training keeps, how many kernels it takes and
// what of them an engine may fuse, and how long a device of known limits needs at least. docs/prediction.md has the
// formulas.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "predict/layer_list.h"

namespace strobe::predict {

// Kinds of work that devices do at different speeds.
enum class WorkKind : uint8_t {
  kDepthwise,  // convolution, one channel a group
  kPointwise,  // 1x1 convolution
  k3x3,        // 3x3, stride 1: what Winograd's algorithm is for
  kStrided,    // 3x3 with a stride
  kOtherConv,
  kLinear,
  kMemory,  // everything else: element-wise, pools, concatenations
};
inline constexpr size_t kWorkKinds = 7;
std::string_view to_string(
    WorkKind kind);  // "depthwise", "1x1", "3x3", "3x3_strided", "other_conv", "linear", "memory"
WorkKind work_kind(const LayerRow& row);

// Of one item, forward; float32.
struct Work {
  int64_t layers = 0;
  double flop = 0;          // a multiply-add counts 2
  double item_bytes = 0;    // inputs read and outputs written
  double weight_bytes = 0;  // read once, whatever the batch
};

struct NetworkFeatures {
  std::array<Work, kWorkKinds> work;
  double parameter_bytes = 0;
  double saved_bytes = 0;         // of one item: distinct tensors that backward needs
  double largest_conv_bytes = 0;  // of one item: the largest input + output of a convolution
  double im2col_bytes = 0;        // of one item: patches of all convolutions with a kernel above 1x1
  int64_t kernels = 0;            // launched by a framework that fuses nothing; views are none
  int64_t fused_kernels = 0;      // where bn, activations and additions go along with the convolution before them

  double flop() const;
  double bytes(double batch) const;
  // FLOP per byte of a forward pass.
  double intensity(double batch) const { return batch * flop() / bytes(batch); }
};

NetworkFeatures network_features(const LayerList& layers);

// Limits of a device, measured or published.
struct DeviceLimits {
  std::array<double, kWorkKinds> peak_gflops{};  // above 0
  double bandwidth_gb_s = 0;                     // above 0
  double launch_us = 0;                          // of a kernel
};

struct RooflineTimes {
  double compute_ms = 0;   // all FLOP at their kind's peak
  double memory_ms = 0;    // all bytes at full bandwidth
  double roofline_ms = 0;  // sum over layers of the greater of the two (Williams, Waterman and Patterson 2009)
  double launch_ms = 0;    // of all kernels, unfused
};

// Of a forward pass with a batch.
RooflineTimes roofline_times(const LayerList& layers, double batch, const DeviceLimits& device);

}  // namespace strobe::predict
