// The reference is checked by hand where it is easy to be wrong; the real networks check the rest.
#include "models/reference_executor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "models/graph_builder.h"

namespace strobe::models {
namespace {

using testing::ElementsAre;

std::vector<float> run_one(const Shape& in, Operation operation, const std::vector<float>& values) {
  GraphBuilder builder("test");
  const LayerId input = *builder.input(in);
  const LayerId id = *builder.append("it", std::move(operation), {input});
  return test::run_reference(*std::move(builder).finish(), values)[static_cast<size_t>(id)];
}

Weights tensor(std::vector<int64_t> shape, std::vector<float> values) {
  return std::make_shared<const Tensor>(Tensor{std::move(shape), std::move(values)});
}

TEST(ReferenceExecutor, ConvolvesWithGroupsStrideAndPadding) {
  Convolution conv;
  conv.out_channels = conv.groups = 2;
  conv.kernel_h = 1;
  conv.kernel_w = 3;
  conv.stride_w = 2;
  conv.pad_w = 1;
  conv.weight = tensor({2, 1, 1, 3}, {1, 10, 100, 2, 0, 1});
  conv.bias = tensor({2}, {0.5F, -1});
  // Channel 0: {0,1,2} {2,3,4} {4,5,0}; channel 1: {0,6,7} {7,8,9} {9,1,0}.
  EXPECT_THAT(run_one({2, 1, 5}, conv, {1, 2, 3, 4, 5, 6, 7, 8, 9, 1}), ElementsAre(210.5F, 432.5F, 54.5F, 6, 22, 17));
  conv = Convolution{};
  conv.out_channels = 1;
  conv.kernel_w = 2;
  conv.dilation = 2;
  conv.weight = tensor({1, 1, 1, 2}, {1, 10});
  EXPECT_THAT(run_one({1, 1, 4}, conv, {1, 2, 3, 4}), ElementsAre(31, 42));
}

TEST(ReferenceExecutor, PoolsWithoutItsPadding) {
  Pool pool;
  pool.kernel_w = 2;
  pool.stride_w = 2;
  pool.pad_right = 1;
  EXPECT_THAT(run_one({1, 1, 3}, pool, {-3, -2, -1}), ElementsAre(-2, -1));
  pool.kind = Pool::Kind::kAverage;
  EXPECT_THAT(run_one({1, 1, 3}, pool, {-3, -2, -1}), ElementsAre(-2.5F, -1));
  pool.count_padding = true;
  EXPECT_THAT(run_one({1, 1, 3}, pool, {-3, -2, -1}), ElementsAre(-2.5F, -0.5F));
}

TEST(ReferenceExecutor, ActivatesByTheFormulas) {
  const auto at = [](ActivationKind kind, float slope, float x) {
    return run_one({1, 1, 1}, Activation{kind, slope}, {x}).front();
  };
  EXPECT_FLOAT_EQ(at(ActivationKind::kLeaky, 0.1F, -2), -0.2F);
  EXPECT_FLOAT_EQ(at(ActivationKind::kRelu6, 0, 7), 6);
  EXPECT_FLOAT_EQ(at(ActivationKind::kLogistic, 0, 1), 0.731058579F);
  EXPECT_FLOAT_EQ(at(ActivationKind::kMish, 0, 1), 0.865098388F);  // Misra 2019
  EXPECT_FLOAT_EQ(at(ActivationKind::kMish, 0, 100), 100);
  EXPECT_FLOAT_EQ(at(ActivationKind::kSwish, 0, 1), 0.731058579F);
  EXPECT_FLOAT_EQ(at(ActivationKind::kElu, 1, -1), std::exp(-1.0F) - 1);
  EXPECT_FLOAT_EQ(at(ActivationKind::kHardSwish, 0, 1), 4.0F / 6);
  EXPECT_FLOAT_EQ(at(ActivationKind::kHardSwish, 0, -4), 0);
  EXPECT_FLOAT_EQ(at(ActivationKind::kTanh, 0, 1), 0.761594156F);
}

TEST(ReferenceExecutor, NormalisesJoinsAndRepeats) {
  BatchNorm norm;
  norm.epsilon = 0;
  norm.scale = tensor({1}, {3});
  norm.shift = tensor({1}, {1});
  norm.mean = tensor({1}, {2});
  norm.variance = tensor({1}, {4});
  EXPECT_THAT(run_one({1, 1, 2}, norm, {2, 6}), ElementsAre(1, 7));
  TransposedConvolution up;
  up.out_channels = 1;
  up.kernel_w = 3;
  up.stride_w = 2;
  up.weight = std::make_shared<const Tensor>(Tensor{{1, 1, 1, 3}, {1, 10, 100}});
  EXPECT_THAT(run_one({1, 1, 2}, up, {1, 2}), ElementsAre(1, 10, 102, 20, 200));
  EXPECT_THAT(run_one({1, 1, 2}, Upsample{2}, {1, 2}), ElementsAre(1, 1, 2, 2, 1, 1, 2, 2));
  EXPECT_THAT(run_one({3, 1, 2}, Slice{1, 2}, {1, 2, 3, 4, 5, 6}), ElementsAre(3, 4));
  EXPECT_THAT(run_one({2, 1, 2}, GlobalAveragePool{}, {1, 3, 5, 9}), ElementsAre(2, 7));
  const auto soft = run_one({2, 1, 2}, Softmax{}, {0, 1, std::log(3.0F), 1});
  EXPECT_THAT(soft, ElementsAre(testing::FloatEq(0.25F), 0.5F, testing::FloatEq(0.75F), 0.5F));
}

}  // namespace
}  // namespace strobe::models
