#include "models/safetensors.h"

#include <gmock/gmock.h>

#include <cstring>

#include "models/seed.h"
#include "models/zoo.h"

namespace strobe::models {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string file_of(const std::string& header, const std::string& data) {
  const uint64_t length = header.size();
  std::string bytes(sizeof length, '\0');
  std::memcpy(bytes.data(), &length, sizeof length);
  return bytes + header + data;
}

std::string entry(const char* dtype, const char* shape, const char* offsets) {
  return std::string(R"({"x":{"dtype":")") + dtype + R"(","shape":)" + shape + R"(,"data_offsets":)" + offsets + "}}";
}

TEST(Safetensors, ReadsEveryFloatingPointType) {
  const auto read = [](const char* dtype, const std::string& data) {
    const std::string offsets = "[0," + std::to_string(data.size()) + "]";
    auto content = read_safetensors(file_of(entry(dtype, "[2]", offsets.c_str()), data));
    return content ? content->tensors.at("x").values : std::vector<float>{-1};
  };
  using std::string_literals::operator""s;
  EXPECT_THAT(read("F32", "\x00\x00\x80\x3f\x00\x00\x00\xc0"s), ElementsAre(1.0F, -2.0F));
  EXPECT_THAT(read("F64", "\x00\x00\x00\x00\x00\x00\xf0\x3f\x00\x00\x00\x00\x00\x00\x00\xc0"s),
              ElementsAre(1.0F, -2.0F));
  EXPECT_THAT(read("BF16", "\x80\x3f\x00\xc0"s), ElementsAre(1.0F, -2.0F));
  EXPECT_THAT(read("F16", "\x00\x3c\x01\x80"s), ElementsAre(1.0F, -0x1p-24F)) << "the second is subnormal";
  EXPECT_THAT(read("F16", "\xff\x7b\x00\x7c"s), ElementsAre(65504.0F, std::numeric_limits<float>::infinity()));
}

TEST(Safetensors, RefusesWhatIsNotWhole) {
  const auto refusal = [](const std::string& bytes) {
    const auto content = read_safetensors(bytes);
    return content ? std::string("accepted") : content.error().to_string();
  };
  const std::string four(4, '\0'), eight(8, '\0');
  EXPECT_EQ(refusal(file_of(entry("F32", "[1]", "[0,4]"), four)), "accepted");
  EXPECT_EQ(refusal(file_of(entry("I64", "[]", "[0,8]"), eight)), "accepted") << "a scalar";
  EXPECT_THAT(refusal("abc"), HasSubstr("shorter than its 8-byte length"));
  EXPECT_THAT(refusal(file_of(entry("F32", "[1]", "[0,4]"), four).substr(0, 30)), HasSubstr("cut short"));
  EXPECT_THAT(refusal(file_of("[]", "")), HasSubstr("no JSON object"));
  EXPECT_THAT(refusal(file_of(entry("F32", "[1]", "[0,4]"), eight)), HasSubstr("take 4 bytes, the file has 8"));
  EXPECT_THAT(refusal(file_of(entry("F32", "[1]", "[4,8]"), eight)), HasSubstr("begins at byte 4, expected 0"));
  EXPECT_THAT(refusal(file_of(entry("F32", "[2]", "[0,4]"), four)), HasSubstr("2 elements of F32 take 8 bytes"));
  EXPECT_THAT(refusal(file_of(entry("F32", "[4611686018427387904,4]", "[0,0]"), "")), HasSubstr("is no size"));
  EXPECT_THAT(refusal(file_of(entry("F32", "[1000000000,1000000000]", "[0,4]"), four)), HasSubstr("too large"));
  EXPECT_THAT(refusal(file_of(entry("F32", "[-1]", "[0,4]"), four)), HasSubstr("is no size"));
  EXPECT_THAT(refusal(file_of(entry("Q4", "[1]", "[0,4]"), four)), HasSubstr("unknown dtype 'Q4'"));
  EXPECT_THAT(refusal(file_of(R"({"x":5})", "")), HasSubstr("tensor 'x': expected an object"));
}

TEST(Safetensors, ANetworksWeightsComeBack) {
  Graph graph = *make_squeezenet1_1({.classes = 10});
  ASSERT_TRUE(seed_weights(graph, 3));
  Safetensors weights = weights_of(graph);
  weights.metadata["made by"] = "a test";
  const std::string bytes = write_safetensors(weights);
  auto content = read_safetensors(bytes);
  ASSERT_TRUE(content) << content.error().to_string();
  EXPECT_EQ(content->metadata.at("made by"), "a test");
  Graph other = *make_squeezenet1_1({.classes = 10});
  const auto set = set_weights(other, *std::move(content));
  ASSERT_TRUE(set) << set.error().to_string();
  EXPECT_TRUE(other.trained);
  EXPECT_EQ(write_safetensors(weights_of(other)).substr(8 + 300), write_safetensors(weights_of(graph)).substr(8 + 300));
}

TEST(Safetensors, SaysWhichTensorDoesNotFit) {
  Graph graph = *make_resnet18({});
  ASSERT_TRUE(seed_weights(graph, 3));
  const Safetensors whole = weights_of(graph);
  EXPECT_EQ(whole.tensors.count("layer2.0.downsample.1.running_var"), 1U);
  const auto refusal = [&](Safetensors content) {
    Graph copy = graph;
    const auto set = set_weights(copy, std::move(content));
    return set ? std::string("accepted") : set.error().to_string();
  };
  Safetensors other = whole;
  other.tensors.erase("layer4.1.bn2.bias");
  EXPECT_THAT(refusal(other), HasSubstr("no tensor 'layer4.1.bn2.bias'"));
  other = whole;
  other.tensors["fc.weight"] = {{10, 512}, std::vector<float>(5120)};
  EXPECT_THAT(refusal(other), HasSubstr("tensor 'fc.weight' has shape [10, 512], resnet18 needs [1000, 512]"));
  other = whole;
  other.tensors["layer5.0.conv1.weight"] = {{1}, {0}};
  EXPECT_THAT(refusal(other), HasSubstr("'layer5.0.conv1.weight' is none of resnet18's weights"));
  other = whole;
  other.tensors["bn1.num_batches_tracked"] = {{}, {7}};
  EXPECT_EQ(refusal(other), "accepted");
}

}  // namespace
}  // namespace strobe::models
