#include "models/graph_builder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/seed.h"

namespace strobe::models {
namespace {

using testing::AllOf;
using testing::HasSubstr;

Convolution convolution(int64_t filters, int64_t size = 3, int64_t groups = 1) {
  Convolution conv;
  conv.out_channels = filters;
  conv.kernel_h = conv.kernel_w = size;
  conv.groups = groups;
  return conv;
}

// The shape that one operation makes, or its error.
std::string outcome(const Shape& in, Operation operation) {
  GraphBuilder builder("test");
  const auto input = builder.input(in);
  if (!input) return input.error().to_string();
  const auto id = builder.append("it", std::move(operation), {*input});
  return id ? builder.shape(*id).to_string() : id.error().to_string();
}

TEST(GraphBuilder, InfersConvolutions) {
  Convolution conv = convolution(32);
  conv.pad_h = conv.pad_w = 1;
  EXPECT_EQ(outcome({3, 416, 416}, conv), "32x416x416");
  conv.stride_h = conv.stride_w = 2;
  EXPECT_EQ(outcome({3, 416, 415}, conv), "32x208x208");
  conv.stride_w = 1;
  EXPECT_EQ(outcome({3, 416, 415}, conv), "32x208x415");
  conv = convolution(8);
  conv.dilation = 3;  // spans 7 pixels
  EXPECT_EQ(outcome({3, 7, 9}, conv), "8x1x3");
}

TEST(GraphBuilder, InfersTheOthers) {
  Pool pool;
  pool.kernel_h = pool.kernel_w = pool.stride_h = pool.stride_w = 2;
  EXPECT_EQ(outcome({8, 13, 12}, pool), "8x6x6");
  pool.pad_bottom = 1;
  EXPECT_EQ(outcome({8, 13, 12}, pool), "8x7x6");
  EXPECT_EQ(outcome({8, 13, 12}, GlobalAveragePool{}), "8x1x1");
  EXPECT_EQ(outcome({8, 13, 12}, Slice{2, 5}), "3x13x12");
  EXPECT_EQ(outcome({8, 13, 12}, Upsample{3}), "8x39x36");
  TransposedConvolution up;
  up.out_channels = 5;
  up.kernel_h = up.kernel_w = 4;
  up.stride_h = up.stride_w = 2;
  EXPECT_EQ(outcome({8, 13, 12}, up), "5x28x26");
  up.pad_h = up.pad_w = 1;
  EXPECT_EQ(outcome({8, 13, 12}, up), "5x26x24");
  up.pad_w = 4;
  EXPECT_THAT(outcome({8, 13, 12}, up), HasSubstr("the horizontal padding is 4, expected 0 to 3"));
  EXPECT_EQ(outcome({8, 13, 12}, Flatten{}), "1248x1x1");
  Linear linear;
  linear.out_features = 10;
  EXPECT_EQ(outcome({8, 1, 1}, linear), "10x1x1");
  EXPECT_EQ(outcome({8, 13, 12}, Activation{}), "8x13x12");
}

TEST(GraphBuilder, SaysWhatDoesNotFit) {
  EXPECT_EQ(outcome({9, 8, 8}, convolution(4, 3, 2)), "layer it: 2 groups do not divide 9 input channels");
  EXPECT_EQ(outcome({8, 8, 8}, convolution(5, 3, 2)), "layer it: 2 groups do not divide 5 filters");
  EXPECT_EQ(outcome({8, 2, 8}, convolution(4)), "layer it: the window's height 3 is larger than the padded input's 2");
  EXPECT_EQ(outcome({8, 8, 8}, Slice{4, 9}), "layer it: channels 4 to 9 are not among the input's 8");
  Pool pool;
  pool.kernel_h = pool.kernel_w = 9;
  EXPECT_EQ(outcome({8, 8, 8}, pool), "layer it: the window's height 9 is larger than the padded input's 8");
  pool = Pool{};
  pool.pad_left = 1;
  EXPECT_EQ(outcome({8, 8, 8}, pool), "layer it: the pool's padding on the left is 1, expected 0 to 0");
  Linear linear;
  linear.out_features = 10;
  EXPECT_EQ(outcome({8, 2, 1}, linear), "layer it: expected a vector, its input is 8x2x1");
  YoloHead head;
  head.anchors = {10, 14, 23, 27, 37, 58};
  head.classes = 80;
  EXPECT_EQ(outcome({21, 13, 13}, head),
            "layer it: expected 255 input channels (3 anchors x (5 + 80 classes)), found 21");
}

TEST(GraphBuilder, RefusesAbsurdSizes) {
  EXPECT_THAT(outcome({3, int64_t{1} << 40, 8}, Flatten{}), AllOf(HasSubstr("the input"), HasSubstr("height")));
  EXPECT_THAT(outcome({3, 65536, 65536}, Flatten{}), HasSubstr("too large"));
  EXPECT_THAT(outcome({0, 8, 8}, Flatten{}), HasSubstr("channels is 0, expected"));
  EXPECT_THAT(outcome({65536, 1, 1}, convolution(65536, 1)), HasSubstr("weights are too many"));
  EXPECT_THAT(outcome({8, 128, 128}, Upsample{1024}), HasSubstr("expected 1 to 65536"));
  EXPECT_THAT(outcome({8, 8, 8}, convolution(-1)), HasSubstr("number of filters is -1"));
}

TEST(GraphBuilder, JoinsOnlyWhatFits) {
  GraphBuilder builder("test");
  const LayerId input = *builder.input({8, 6, 6});
  const LayerId half = *builder.append("half", Slice{0, 4}, {input});
  const LayerId large = *builder.append("large", Upsample{2}, {half});
  EXPECT_EQ(builder.append("sum", Add{}, {input, half}).error().to_string(),
            "layer sum: adds unequal shapes: 8x6x6 and 4x6x6");
  EXPECT_EQ(builder.append("join", Concat{}, {input, large}).error().to_string(),
            "layer join: joins maps of unequal size: 8x6x6 and 4x12x12");
  EXPECT_EQ(builder.append("sum", Add{}, {input}).error().to_string(),
            "layer sum: Add takes at least 2 inputs, 1 given");
  EXPECT_EQ(builder.append("x", Flatten{}, {input, half}).error().to_string(),
            "layer x: Flatten takes 1 input, 2 given");
  EXPECT_EQ(builder.append("x", Flatten{}, {7}).error().to_string(),
            "layer x: takes input from layer 7, expected an earlier one");
  EXPECT_EQ(builder.append("half", Flatten{}, {half}).error().to_string(), "layer half: its name is taken");
  const LayerId join = *builder.append("join", Concat{}, {input, half, input});
  EXPECT_EQ(builder.shape(join).to_string(), "20x6x6");
}

Graph small_graph() {
  GraphBuilder builder("small");
  LayerId x = *builder.input({3, 8, 8});
  x = *builder.append("conv", convolution(4), {x});
  x = *builder.append("norm", BatchNorm{}, {x});
  return std::move(builder).finish().value();
}

TEST(Validate, WantsEveryWeightAndEveryInvariant) {
  Graph graph = small_graph();
  EXPECT_EQ(validate(graph).error().to_string(), "layer conv: its weight has 0 values, expected 108");
  ASSERT_TRUE(seed_weights(graph, 1));
  EXPECT_TRUE(validate(graph));

  Graph broken = graph;
  broken.layers[2].output.channels = 5;
  EXPECT_EQ(validate(broken).error().to_string(), "layer norm: says its output is 5x6x6, it is 4x6x6");
  broken = graph;
  broken.layers[1].inputs = {2};
  EXPECT_EQ(validate(broken).error().to_string(), "layer conv: takes input from layer 2, expected an earlier one");
  broken = graph;
  std::get<BatchNorm>(broken.layers[2].operation).mean.reset();
  EXPECT_EQ(validate(broken).error().to_string(), "layer norm: lacks some of its weights");
  broken = graph;
  std::get<Convolution>(broken.layers[1].operation).weight = declared_tensor({4, 3, 1, 1});
  EXPECT_EQ(validate(broken).error().to_string(), "layer conv: its weight has a shape that does not fit the layer");
  broken = graph;
  broken.layers[2].name = "conv";
  EXPECT_EQ(validate(broken).error().to_string(), "layer conv: its name is taken");
  broken = graph;
  broken.outputs = {3};
  EXPECT_EQ(validate(broken).error().to_string(), "output 3 is no layer of the graph");
}

TEST(SeedWeights, AreTheSameForTheSameSeedOnly) {
  Graph a = small_graph(), b = small_graph(), c = small_graph();
  ASSERT_TRUE(seed_weights(a, 7));
  ASSERT_TRUE(seed_weights(b, 7));
  ASSERT_TRUE(seed_weights(c, 8));
  const auto weights = [](const Graph& graph) {
    return std::get<Convolution>(graph.layers[1].operation).weight->values;
  };
  EXPECT_EQ(weights(a), weights(b));
  EXPECT_NE(weights(a), weights(c));
  EXPECT_FALSE(a.trained);
}

TEST(Shape, ReadsAsText) {
  EXPECT_EQ((Shape{32, 208, 104}).to_string(), "32x208x104");
  EXPECT_EQ(to_string(ActivationKind::kHardSwish), "hard_swish");
  EXPECT_EQ(type_name(Operation{YoloHead{}}), "YoloHead");
  EXPECT_EQ(type_name(Operation{Input{}}), "Input");
  EXPECT_EQ(type_name(Operation{Softmax{}}), "Softmax");
}

}  // namespace
}  // namespace strobe::models
