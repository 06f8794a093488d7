// What needs no other program; tests/engines/onnx_export_test.cc has the files read by others.
#include "models/onnx.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/graph_builder.h"
#include "models/model.h"

namespace strobe::models {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

Weights filled(std::vector<int64_t> shape, float value) {
  Tensor tensor{std::move(shape), {}};
  tensor.values.assign(static_cast<size_t>(element_count(tensor)), value);
  return std::make_shared<const Tensor>(std::move(tensor));
}

// Two layers of these names.
Result<Graph> chain(const std::string& first, const std::string& second) {
  GraphBuilder builder("chain");
  STROBE_ASSIGN(const LayerId input, builder.input({2, 4, 4}));
  Convolution convolution;
  convolution.out_channels = 2;
  convolution.weight = filled({2, 2, 1, 1}, 0.5F);
  STROBE_ASSIGN(const LayerId conv, builder.append(first, convolution, {input}));
  STROBE_TRY(builder.append(second, Activation{ActivationKind::kRelu, 0}, {conv}));
  return std::move(builder).finish();
}

std::string refusal(const Result<std::string>& written, ErrorKind kind) {
  if (written) return "written";
  EXPECT_EQ(written.error().kind(), kind);
  EXPECT_THAT(written.error().to_string(), Not(HasSubstr("\n")));
  return written.error().to_string();
}

TEST(WriteOnnx, TheSameGraphGivesTheSameBytes) {
  const auto once = open_graph("person-tiny", {}), again = open_graph("person-tiny", {});
  ASSERT_TRUE(once && again);
  const auto first = write_onnx(*once), second = write_onnx(*again);
  ASSERT_TRUE(first && second);
  EXPECT_EQ(*first, *second);
  const auto open = write_onnx(*once, {.batch = 0}), half = write_onnx(*once, {.batch = 1, .number = OnnxNumber::kF16});
  ASSERT_TRUE(open && half);
  EXPECT_NE(*first, *open);
  EXPECT_LT(half->size(), first->size() * 6 / 10);
}

TEST(WriteOnnx, ASmallFileByteForByte) {
  const auto graph = chain("c", "r");
  ASSERT_TRUE(graph);
  const auto file = write_onnx(*graph, {.batch = 3});
  ASSERT_TRUE(file);
  // By hand from onnx.proto: IR version 8, producer, a graph, opset 17 of the domain "".
  EXPECT_EQ(file->substr(0, 10), std::string("\x08\x08\x12\x06strobe", 10));
  EXPECT_EQ(file->substr(file->size() - 6), std::string("\x42\x04\x0a\x00\x10\x11", 6));
  // Input "input": float32 of {3, 2, 4, 4}.
  EXPECT_THAT(*file, HasSubstr(std::string("\x5a\x1f\x0a\x05input\x12\x16\x0a\x14\x08\x01\x12\x10"
                                           "\x0a\x02\x08\x03\x0a\x02\x08\x02\x0a\x02\x08\x04\x0a\x02\x08\x04",
                                           33)));
  // Node "r": a Relu from "c" to "r".
  EXPECT_THAT(*file, HasSubstr(std::string("\x0a\x0f\x0a\x01"
                                           "c\x12\x01r\x1a\x01r\x22\x04Relu",
                                           17)));
  // The weights of "c": four times 0.5 of {2, 2, 1, 1}.
  EXPECT_THAT(*file, HasSubstr(std::string("\x08\x02\x08\x02\x08\x01\x08\x01\x10\x01\x42\x08"
                                           "c#weight\x4a\x10"
                                           "\0\0\0\x3f\0\0\0\x3f\0\0\0\x3f\0\0\0\x3f",
                                           38)));
}

TEST(WriteOnnx, MoreThanAFileHoldsIsRefused) {
  GraphBuilder builder("giant");
  auto last = builder.input({16384, 1, 1});
  ASSERT_TRUE(last);
  for (int i = 0; i < 2; ++i) {
    Linear linear;
    linear.out_features = 16384;  // 1 GiB of weights each, which are only declared
    last = builder.append("fc" + std::to_string(i), linear, {*last});
    ASSERT_TRUE(last) << last.error().to_string();
  }
  const auto graph = std::move(builder).finish();
  ASSERT_TRUE(graph);
  EXPECT_THAT(refusal(write_onnx(*graph), ErrorKind::kUnsupported),
              AllOf(HasSubstr("giant"), HasSubstr("2147483648"), HasSubstr("at most 2147483647")));
}

TEST(WriteOnnx, AGraphWithoutWeightsIsRefused) {
  GraphBuilder builder("unfilled");
  const auto input = builder.input({3, 8, 8});
  ASSERT_TRUE(input);
  Convolution convolution;
  convolution.out_channels = 4;
  ASSERT_TRUE(builder.append("conv", convolution, {*input}));
  const auto graph = std::move(builder).finish();
  ASSERT_TRUE(graph);
  EXPECT_THAT(refusal(write_onnx(*graph), ErrorKind::kBadData), HasSubstr("conv"));
}

TEST(WriteOnnx, ANameThatAHelperHasIsRefused) {
  const auto clash = chain("c", "c#weight");
  ASSERT_TRUE(clash);
  EXPECT_THAT(refusal(write_onnx(*clash), ErrorKind::kBadData), HasSubstr("c#weight"));
  const auto fine = chain("c", "c#other");
  ASSERT_TRUE(fine);
  EXPECT_TRUE(write_onnx(*fine));
}

}  // namespace
}  // namespace strobe::models
