#include "predict/network_features.h"

#include <gtest/gtest.h>

#include "models/cost.h"
#include "models/zoo.h"

namespace strobe::predict {
namespace {

// conv 3 -> 8 (3x3, stride 2), bn, relu in place, maxpool, depthwise 3x3, 1x1 -> 4, relu, add with the maxpool's first
// four channels as a slice.
LayerList worked_by_hand() {
  using enum LayerKind;
  return {"n",
          0,
          {{kConv, 3, 8, 3, 3, 2, 2, 1, 1, 1, 8, 8, 4, 4, true, false, {-1}},
           {kBatchNorm, 8, 8, 0, 0, 0, 0, 0, 0, 1, 4, 4, 4, 4, true, false, {0}},
           {kRelu, 8, 8, 0, 0, 0, 0, 0, 0, 1, 4, 4, 4, 4, false, true, {1}},
           {kMaxPool, 8, 8, 2, 2, 2, 2, 0, 0, 1, 4, 4, 2, 2, false, false, {2}},
           {kConv, 8, 8, 3, 3, 1, 1, 1, 1, 8, 2, 2, 2, 2, false, false, {3}},
           {kConv, 8, 4, 1, 1, 1, 1, 0, 0, 1, 2, 2, 2, 2, false, false, {4}},
           {kSlice, 8, 4, 0, 0, 0, 0, 0, 0, 1, 2, 2, 2, 2, false, true, {3}},
           {kAdd, 4, 4, 0, 0, 0, 0, 0, 0, 1, 2, 2, 2, 2, false, false, {5, 6}}}};
}

const Work& of(const NetworkFeatures& features, WorkKind kind) {
  return features.work[static_cast<size_t>(kind)];
}

TEST(NetworkFeatures, WorkedByHand) {
  const NetworkFeatures f = network_features(worked_by_hand());
  EXPECT_EQ(of(f, WorkKind::kStrided).flop, (2 * 3 * 9 + 1) * 8 * 16);
  EXPECT_EQ(of(f, WorkKind::kStrided).item_bytes, 4 * (3 * 64 + 8 * 16));
  EXPECT_EQ(of(f, WorkKind::kStrided).weight_bytes, 4 * (3 * 8 * 9 + 8));
  EXPECT_EQ(of(f, WorkKind::kDepthwise).flop, 2 * 9 * 8 * 4);
  EXPECT_EQ(of(f, WorkKind::kDepthwise).weight_bytes, 4 * 8 * 9);
  EXPECT_EQ(of(f, WorkKind::kPointwise).flop, 2 * 8 * 4 * 4);
  EXPECT_EQ(of(f, WorkKind::k3x3).layers, 0);
  // bn 2, relu 1, maxpool 4 an output, add 1.
  EXPECT_EQ(of(f, WorkKind::kMemory).flop, 2 * 128 + 128 + 4 * 32 + 16);
  EXPECT_EQ(of(f, WorkKind::kMemory).item_bytes, 4 * (256 + 256 + 128 + 32 + 3 * 16));
  EXPECT_EQ(f.parameter_bytes, 4 * (3 * 8 * 9 + 8 + 2 * 8 + 8 * 9 + 8 * 4));
  // The picture (192), the convolution's output for bn (128), bn's buffer with the relu in it (128), the maxpool's
  // output (32) for the depthwise and its places (8 bytes each), the depthwise's output (32) for the 1x1.
  EXPECT_EQ(f.saved_bytes, 4 * (192 + 128 + 128 + 32 + 32) + 8 * 32);
  EXPECT_EQ(f.largest_conv_bytes, 4 * (192 + 128));
  EXPECT_EQ(f.im2col_bytes, 4 * (3 * 9 * 16 + 8 * 9 * 4));
  EXPECT_EQ(f.kernels, 7);        // the slice is a view
  EXPECT_EQ(f.fused_kernels, 4);  // bn, relu and add go along
  EXPECT_EQ(f.bytes(2), 2 * (1280 + 4 * (32 + 32) + 4 * (32 + 16) + 2880) + f.parameter_bytes);
  EXPECT_EQ(f.intensity(2), 2 * f.flop() / f.bytes(2));
}

TEST(NetworkFeatures, RooflineTakesTheGreaterOfEachLayer) {
  DeviceLimits device;
  device.peak_gflops.fill(1);   // 1e6 FLOP a ms
  device.bandwidth_gb_s = 0.1;  // 1e5 bytes a ms
  device.launch_us = 10;
  const LayerRow conv{LayerKind::kConv, 16, 16, 3, 3, 1, 1, 1, 1, 1, 8, 8, 8, 8, false, false, {-1}};
  const LayerRow relu{LayerKind::kRelu, 16, 16, 0, 0, 0, 0, 0, 0, 1, 8, 8, 8, 8, false, true, {0}};
  const RooflineTimes times = roofline_times({"n", 0, {conv, relu}}, 4, device);
  const double conv_flop = 4 * 2 * 16 * 9 * 1024, conv_bytes = 4 * 4 * 2048 + 4 * 16 * 16 * 9;
  const double relu_flop = 4 * 1024, relu_bytes = 4 * 4 * 2048;
  EXPECT_DOUBLE_EQ(times.compute_ms, (conv_flop + relu_flop) / 1e6);
  EXPECT_DOUBLE_EQ(times.memory_ms, (conv_bytes + relu_bytes) / 1e5);
  EXPECT_DOUBLE_EQ(times.roofline_ms, conv_flop / 1e6 + relu_bytes / 1e5);
  EXPECT_DOUBLE_EQ(times.launch_ms, 0.02);
}

// The room models counts the same FLOP and, of one item, the same bytes but for batch norm's running mean and variance.
TEST(NetworkFeatures, AgreeWithTheCostOfGraphs) {
  for (const char* name :
       {"resnet18", "resnet50", "mobilenet_v2", "squeezenet1_1", "googlenet", "vgg16", "yolov4-tiny"}) {
    SCOPED_TRACE(name);
    const auto graph = models::find_in_zoo(name)->make({});
    ASSERT_TRUE(graph);
    const LayerList list = from_graph(*graph);
    const NetworkFeatures features = network_features(list);
    const models::Cost cost = models::graph_cost(*graph);
    double running = 0, sliced = 0;
    for (const LayerRow& row : list.rows) {
      if (row.type == LayerKind::kBatchNorm) running += 4 * 2 * static_cast<double>(row.oc);
      if (row.type == LayerKind::kSlice) sliced += 4 * 2 * row.out_elements();
    }
    EXPECT_DOUBLE_EQ(features.flop(), static_cast<double>(cost.flop));
    EXPECT_DOUBLE_EQ(features.bytes(1) + running + sliced, static_cast<double>(cost.bytes));
    EXPECT_LT(features.fused_kernels, features.kernels);
  }
}

}  // namespace
}  // namespace strobe::predict
