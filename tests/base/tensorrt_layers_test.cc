#include "base/tensorrt_layers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace strobe {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

struct Scanned {
  std::vector<TensorrtLayer> layers;
  std::optional<size_t> broken_at;
  bool found = false;
};

Scanned scan(std::string text) {
  const size_t size = text.size();
  text.append(16, '\0');
  TensorrtLayerScan scan(std::string_view(text).substr(0, size));
  Scanned scanned;
  scanned.found = scan.found();
  while (auto layer = scan.next()) scanned.layers.push_back(*std::move(layer));
  scanned.broken_at = scan.broken_at();
  return scanned;
}

std::vector<std::string> sources_of(const std::string& members) {
  const auto scanned = scan("{\"Layers\": [{" + members + "}]}");
  return scanned.layers.empty() ? std::vector<std::string>{"nothing"} : scanned.layers[0].sources;
}

TEST(TensorrtLayers, ADetailedLayer) {
  const auto scanned =
      scan(R"json({"Layers": ["plain", {"Name": "c1 + r1", "LayerType": "CaskConvolution", "Inputs": [{"Name": "i",
      "Dimensions": [1,3,8,8]}], "Outputs": [{"Name": "o", "Dimensions": [1,64,80,80]}, {"Dimensions": [7]}],
      "TacticName": "sm90_xmma", "TacticValue": "0x1", "Metadata": "[ONNX Layer: c1]\u001e[ONNX Layer: r1]"}],
      "Bindings": ["i", "o"]})json");
  EXPECT_TRUE(scanned.found);
  EXPECT_FALSE(scanned.broken_at);
  ASSERT_EQ(scanned.layers.size(), 2U);
  EXPECT_EQ(scanned.layers[0].name, "plain");
  EXPECT_THAT(scanned.layers[0].sources, ElementsAre("plain"));
  const TensorrtLayer& layer = scanned.layers[1];
  EXPECT_EQ(layer.name, "c1 + r1");
  EXPECT_EQ(layer.type, "CaskConvolution");
  EXPECT_EQ(layer.tactic, "sm90_xmma");
  EXPECT_EQ(layer.shape, "1x64x80x80");
  EXPECT_THAT(layer.sources, ElementsAre("c1", "r1"));
}

TEST(TensorrtLayers, SourcesByMetadata) {
  EXPECT_THAT(
      sources_of(R"json("Name": "x", "Metadata": "[ONNX Layer: a][ONNX Layer: b[1]]\u001e[ONNX Layer: a]")json"),
      ElementsAre("a", "b[1]"));
  EXPECT_THAT(
      sources_of(R"json("Name": "{ForeignNode[a...c]}", "Metadata": "[ONNX Layer: a]\u001e[ONNX Layer: b]")json"),
      ElementsAre("a", "b"));
  EXPECT_THAT(sources_of(R"json("Name": "x + y", "Metadata": "[ONNX Layer: cut")json"), ElementsAre("x", "y"));
}

TEST(TensorrtLayers, SourcesByName) {
  const auto named = [](const std::string& name) { return sources_of("\"Name\": \"" + name + "\""); };
  EXPECT_THAT(named("conv1 + bn.1 + relu"), ElementsAre("conv1", "bn.1", "relu"));
  EXPECT_THAT(named("a || b"), ElementsAre("a", "b"));
  EXPECT_THAT(named("PWN(PWN(sig), mul)"), ElementsAre("sig", "mul"));
  EXPECT_THAT(named("PWN(relu)"), ElementsAre("relu"));
  EXPECT_THAT(named("{ForeignNode[a...c]}"), ElementsAre("a", "c"));
  EXPECT_THAT(sources_of("\"LayerType\": \"NoOp\""), IsEmpty());
}

TEST(TensorrtLayers, WhatIsNoListOrBreaksOff) {
  EXPECT_FALSE(scan("").found);
  EXPECT_FALSE(scan("{\"Layer\": []}").found);
  EXPECT_FALSE(scan("{\"Layers\": 3}").found);
  EXPECT_THAT(scan("{\"Layers\": []}").layers, IsEmpty());
  const auto cut = scan(R"json({"Layers": ["a", {"Name": "b)json");
  EXPECT_EQ(cut.layers.size(), 1U);
  EXPECT_EQ(cut.broken_at, 17U);
  EXPECT_EQ(scan("{\"Layers\": [").broken_at, 12U);
}

}  // namespace
}  // namespace strobe
