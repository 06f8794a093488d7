#include "models/cost.h"

#include <gtest/gtest.h>

#include <limits>

#include "models/graph_builder.h"

namespace strobe::models {
namespace {

// Cost of one operation on one input, beside its shapes.
Cost cost_of(const Shape& in, Operation operation) {
  GraphBuilder builder("test");
  const LayerId input = *builder.input(in);
  const LayerId id = *builder.append("it", std::move(operation), {input});
  return layer_cost(*std::move(builder).finish(), id);
}

void expect_cost(const Cost& cost, int64_t parameters, int64_t flop, int64_t numbers_moved) {
  EXPECT_EQ(cost.parameters, parameters);
  EXPECT_EQ(cost.flop, flop);
  EXPECT_EQ(cost.bytes, 4 * numbers_moved);
}

TEST(Cost, OfConvolutionsByHand) {
  // The first layer of YOLOv4-tiny: 3x416x416 to 32x208x208, 3x3.
  Convolution conv;
  conv.out_channels = 32;
  conv.kernel_h = conv.kernel_w = 3;
  conv.stride_h = conv.stride_w = 2;
  conv.pad_h = conv.pad_w = 1;
  expect_cost(cost_of({3, 416, 416}, conv), 864, 2LL * 27 * 32 * 208 * 208, 3 * 416 * 416 + 864 + 32 * 208 * 208);

  // Depthwise 3x3 with bias: each output reads 9 numbers and adds its bias.
  conv = Convolution{};
  conv.out_channels = conv.groups = 8;
  conv.kernel_h = conv.kernel_w = 3;
  conv.bias = declared_tensor({8});
  expect_cost(cost_of({8, 10, 10}, conv), 72 + 8, 19LL * 8 * 8 * 8, 800 + 80 + 512);
}

TEST(Cost, OfTheOtherLayersByHand) {
  const Shape in{4, 6, 5};  // 120 numbers
  expect_cost(cost_of(in, BatchNorm{}), 8, 240, 120 + 16 + 120);
  expect_cost(cost_of(in, Activation{ActivationKind::kMish}), 0, 120, 240);
  expect_cost(cost_of(in, Activation{ActivationKind::kLinear}), 0, 0, 240);
  Pool pool;
  pool.kernel_h = pool.kernel_w = pool.stride_h = pool.stride_w = 2;  // to 4x3x2
  expect_cost(cost_of(in, pool), 0, 4 * 24, 120 + 24);
  expect_cost(cost_of(in, GlobalAveragePool{}), 0, 120, 124);
  expect_cost(cost_of(in, Slice{1, 3}), 0, 0, 60 + 60);
  expect_cost(cost_of(in, Upsample{2}), 0, 0, 120 + 480);
  TransposedConvolution up;
  up.out_channels = 3;
  up.kernel_h = up.kernel_w = up.stride_h = up.stride_w = 2;
  const int64_t up_weights = in.channels * 3 * 4;
  expect_cost(cost_of(in, up), up_weights, 2 * in.elements() * 12, 120 + up_weights + 3 * 4 * in.height * in.width);
  expect_cost(cost_of(in, Softmax{}), 0, 360, 240);
  expect_cost(cost_of(in, Dropout{}), 0, 0, 0);
  expect_cost(cost_of(in, Flatten{}), 0, 0, 0);
  Linear linear;
  linear.out_features = 3;
  linear.bias = declared_tensor({3});
  expect_cost(cost_of({7, 1, 1}, linear), 24, 3 * 15, 7 + 24 + 3);
}

TEST(Cost, OfAGraphIsTheSum) {
  GraphBuilder builder("test");
  const LayerId input = *builder.input({2, 3, 3});
  const LayerId relu = *builder.append("relu", Activation{ActivationKind::kRelu}, {input});
  const LayerId sum = *builder.append("sum", Add{}, {input, relu});
  ASSERT_TRUE(builder.append("join", Concat{}, {sum, relu}));
  // relu 18 + 18, sum 36 + 18, join 36 + 36 numbers.
  expect_cost(graph_cost(*std::move(builder).finish()), 0, 18 + 18, 36 + 54 + 72);
}

TEST(Cost, StopsAtTheLargestNumber) {
  constexpr int64_t kLargest = std::numeric_limits<int64_t>::max();
  Cost cost{1, kLargest - 1, 1};
  cost += Cost{1, 5, 1};
  EXPECT_EQ(cost.flop, kLargest);
  EXPECT_EQ(cost.bytes, 2);
}

TEST(Cost, TensorsAliveAtOnceByHand) {
  GraphBuilder builder("residual");
  const LayerId input = *builder.input({3, 4, 4});  // 48 numbers
  Convolution conv{.out_channels = 8, .kernel_h = 3, .kernel_w = 3, .pad_h = 1, .pad_w = 1, .weight = {}, .bias = {}};
  const LayerId first = *builder.append("first", conv, {input});                             // 128
  const LayerId relu = *builder.append("relu", Activation{ActivationKind::kRelu}, {first});  // 128
  const LayerId second = *builder.append("second", conv, {relu});                            // 128
  const LayerId dropped = *builder.append("dropped", Dropout{}, {second});                   // second's
  const LayerId add = *builder.append("add", Add{}, {dropped, relu});                        // 128
  const LayerId pooled = *builder.append("pooled", GlobalAveragePool{}, {add});              // 8
  builder.add_output(pooled);
  Graph graph = *std::move(builder).finish();
  const ActivationPeak peak = activation_peak(graph);
  EXPECT_EQ(peak.bytes, 4 * 3 * 128);  // relu, second and add
  EXPECT_EQ(peak.layer, add);
  graph.outputs = {first, pooled};  // kept to the end
  EXPECT_EQ(activation_peak(graph).bytes, 4 * 4 * 128);
}

}  // namespace
}  // namespace strobe::models
