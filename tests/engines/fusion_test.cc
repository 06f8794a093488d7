#include "engines/fusion.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engines/engine_case.h"

namespace strobe::engines {
namespace {

using models::Activation;
using models::ActivationKind;
using models::Add;
using models::BatchNorm;
using models::Concat;
using models::Convolution;
using models::Slice;
using test::Sketch;
using testing::ElementsAre;
using testing::IsEmpty;

const Activation kRelu{ActivationKind::kRelu};

Convolution pointwise(int64_t channels) {
  Convolution convolution;
  convolution.out_channels = channels;
  return convolution;
}

// The layers of each kernel after completion; `named` is what an engine's report says.
std::vector<std::vector<std::string>> completed(const test::GraphPtr& graph,
                                                const std::vector<std::vector<std::string>>& named) {
  std::vector<Kernel> kernels;
  for (const auto& layers : named) kernels.push_back({"kernel", "", "", layers});
  complete_fusion(*graph, kernels);
  std::vector<std::vector<std::string>> result;
  for (const auto& kernel : kernels) result.push_back(kernel.layers);
  return result;
}

test::GraphPtr conv_norm_relu() {
  Sketch sketch({4, 5, 5});
  sketch.add("conv", pointwise(4));
  sketch.add("norm", BatchNorm{});
  sketch.add("relu", kRelu);
  return sketch.finish();
}

TEST(Fusion, WhatFollowsAConvolutionGoesToItsKernel) {
  EXPECT_THAT(completed(conv_norm_relu(), {{"conv"}}), ElementsAre(ElementsAre("conv", "norm", "relu")));
}

TEST(Fusion, AConvolutionThatWasFoldedIntoItsBatchNormGoesToThatKernel) {
  EXPECT_THAT(completed(conv_norm_relu(), {{"norm"}, {"relu"}}),
              ElementsAre(ElementsAre("conv", "norm"), ElementsAre("relu")));
  EXPECT_THAT(completed(conv_norm_relu(), {{"relu"}}), ElementsAre(ElementsAre("conv", "norm", "relu")));
}

TEST(Fusion, WhatTheEngineReportsStays) {
  EXPECT_THAT(completed(conv_norm_relu(), {{"conv"}, {"norm"}, {"relu"}}),
              ElementsAre(ElementsAre("conv"), ElementsAre("norm"), ElementsAre("relu")));
}

TEST(Fusion, NamesStandInTheOrderOfTheGraph) {
  EXPECT_THAT(completed(conv_norm_relu(), {{"relu", "conv", "norm"}}),
              ElementsAre(ElementsAre("conv", "norm", "relu")));
}

TEST(Fusion, ALayerWhoseInputIsReadTwiceIsNotFoldedUpwards) {
  // The convolution's own values are read by the concatenation too: they exist, so the activation did not replace them.
  Sketch sketch({4, 5, 5});
  const auto conv = sketch.add("conv", pointwise(4));
  const auto relu = sketch.add("relu", kRelu, {conv});
  sketch.add("concat", Concat{}, {conv, relu});
  EXPECT_THAT(completed(sketch.finish(), {{"conv"}, {"concat"}}),
              ElementsAre(ElementsAre("conv"), ElementsAre("relu", "concat")));
}

TEST(Fusion, ALayerThatIsAnOutputIsNotFoldedUpwards) {
  Sketch sketch({4, 5, 5});
  const auto conv = sketch.add("conv", pointwise(4));
  const auto relu = sketch.add("relu", kRelu, {conv});
  sketch.output(conv);
  sketch.output(relu);
  EXPECT_THAT(completed(sketch.finish(), {{"conv"}}), ElementsAre(ElementsAre("conv")));
}

TEST(Fusion, AnAdditionGoesToTheKernelThatIsItsOwn) {
  // A residual block: the shortcut is read by the branch too, so that only the branch's last kernel can hold the sum.
  Sketch sketch({4, 5, 5});
  const auto first = sketch.add("first", pointwise(4));
  sketch.add("branch", pointwise(4));
  const auto branch = sketch.add("norm", BatchNorm{});
  sketch.add("sum", Add{}, {first, branch});
  sketch.add("relu", kRelu);
  EXPECT_THAT(completed(sketch.finish(), {{"first"}, {"branch"}}),
              ElementsAre(ElementsAre("first"), ElementsAre("branch", "norm", "sum", "relu")));
}

TEST(Fusion, AnAdditionCannotBePartOfAKernelThatRunsBeforeTheOther) {
  Sketch sketch({4, 5, 5});
  const auto left = sketch.add("left", pointwise(4), {sketch.input()});
  const auto right = sketch.add("right", pointwise(4), {sketch.input()});
  sketch.add("sum", Add{}, {left, right});
  EXPECT_THAT(completed(sketch.finish(), {{"left"}, {"right"}}),
              ElementsAre(ElementsAre("left"), ElementsAre("right", "sum")));
}

TEST(Fusion, AKernelTakesOnlyOneConvolution) {
  Sketch sketch({4, 5, 5});
  const auto left = sketch.add("left", pointwise(4), {sketch.input()});
  const auto right = sketch.add("right", pointwise(4), {sketch.input()});
  sketch.add("sum", Add{}, {left, right});
  EXPECT_THAT(completed(sketch.finish(), {{"sum"}}), ElementsAre(ElementsAre("left", "sum")))
      << "which of the two it is, the report does not say; that both are is wrong";
}

TEST(Fusion, IdentitiesAreLeftOutAndLookedThrough) {
  Sketch sketch({4, 5, 5});
  sketch.add("conv", pointwise(4));
  sketch.add("linear", Activation{ActivationKind::kLinear});
  sketch.add("dropout", models::Dropout{});
  sketch.add("relu", kRelu);
  EXPECT_THAT(completed(sketch.finish(), {{"conv"}}), ElementsAre(ElementsAre("conv", "relu")));
}

TEST(Fusion, OtherLayersWithoutAKernelAreAHoleAndNotAFusion) {
  Sketch sketch({4, 5, 5});
  sketch.add("conv", pointwise(4));
  sketch.add("slice", Slice{0, 2});
  sketch.add("relu", kRelu);
  EXPECT_THAT(completed(sketch.finish(), {{"conv"}}), ElementsAre(ElementsAre("conv")))
      << "the activation of half the channels cannot be part of the convolution's kernel";
}

TEST(Fusion, NamesThatAreNotTheGraphsAreKept) {
  EXPECT_THAT(completed(conv_norm_relu(), {{"reorder"}, {}}), ElementsAre(ElementsAre("reorder"), IsEmpty()));
}

TEST(Fusion, KnowsIdentities) {
  const auto identity = [](models::Operation operation) {
    return is_identity(models::Layer{"layer", std::move(operation), {}, {}});
  };
  EXPECT_TRUE(identity(models::Input{}));
  EXPECT_TRUE(identity(models::Dropout{}));
  EXPECT_TRUE(identity(models::YoloHead{}));
  EXPECT_TRUE(identity(Activation{ActivationKind::kLinear}));
  EXPECT_FALSE(identity(kRelu));
  EXPECT_FALSE(identity(Slice{0, 1}));
  EXPECT_FALSE(identity(models::Flatten{}));
}

}  // namespace
}  // namespace strobe::engines
