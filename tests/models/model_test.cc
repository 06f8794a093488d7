#include "models/model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "models/graph_builder.h"
#include "models/zoo.h"
#include "support/test_data.h"

namespace strobe::models {
namespace {

using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

void write(const std::filesystem::path& path, const std::string& text) {
  std::ofstream(path) << text;
}

std::string error_of(const std::string& name, const OpenOptions& options) {
  const auto graph = open_graph(name, options);
  return graph ? "no error" : graph.error().to_string();
}

TEST(OpenGraph, MakesABuiltInNetworkWithSeededWeights) {
  const auto graph = open_graph("yolov4-tiny", {});
  ASSERT_TRUE(graph) << graph.error().to_string();
  EXPECT_FALSE(graph->trained);
  EXPECT_EQ(graph->labels.size(), 80U);
  EXPECT_TRUE(validate(*graph));
  EXPECT_THAT(builtin_names(), testing::IsSupersetOf({"yolov4-tiny", "resnet18", "vgg16"}));
}

TEST(OpenGraph, ChangesTheInputSizeInStepsOfTheStride) {
  OpenOptions options;
  options.width = 320;
  EXPECT_EQ(open_graph("yolov4-tiny", options)->input_shape(), (Shape{3, 416, 320}));
  options.height = 300;
  EXPECT_EQ(error_of("yolov4-tiny", options),
            "height 300 does not suit yolov4-tiny: expected a multiple of its stride 32, such as 288");
  options.height = -32;
  EXPECT_THAT(error_of("yolov4-tiny", options), StartsWith("height -32 does not suit yolov4-tiny"));
}

TEST(OpenGraph, ReadsACfgWithWeightsAndLabels) {
  const test::ScratchFolder folder;
  write(folder / "net.cfg",
        "[net]\nwidth=4\nheight=4\n[convolutional]\nfilters=7\nactivation=linear\n"
        "[yolo]\nanchors=2,2\nclasses=2\n");
  OpenOptions options;
  EXPECT_FALSE(open_graph(folder / "net.cfg", options)->trained);
  options.weights = folder / "net.weights";
  write(options.weights, std::string(20 + 4 * (7 + 21), '\0').replace(4, 1, "\x02"));
  options.labels = folder / "net.names";
  write(options.labels, "cat \r\ndog\r\n\r\n");
  const auto graph = open_graph(folder / "net.cfg", options);
  ASSERT_TRUE(graph) << graph.error().to_string();
  EXPECT_TRUE(graph->trained);
  EXPECT_EQ(graph->name, "net");
  EXPECT_THAT(graph->labels, ElementsAre("cat", "dog"));

  write(options.labels, "cat\n");
  EXPECT_THAT(error_of(folder / "net.cfg", options), EndsWith("net.names: 1 class names, the network has 2 classes"));
  write(options.weights, "no weights");
  EXPECT_THAT(error_of(folder / "net.cfg", options), HasSubstr("net.weights: 10 bytes, too short for the header"));
}

TEST(OpenGraph, SaysWhatCanBeOpened) {
  EXPECT_THAT(
      error_of("yolov9", {}),
      AllOf(testing::StartsWith("model 'yolov9' is no built-in network and no file; built in: yolov4-tiny, "),
            EndsWith("; files: Darknet .cfg with .weights or .safetensors, .json as strobe model prune writes")));
  const test::ScratchFolder folder;
  write(folder / "model.bin", "x");
  EXPECT_THAT(error_of(folder / "model.bin", {}),
              HasSubstr("is neither a Darknet .cfg nor a network's .json; built in:"));
  write(folder / "bad.cfg", "[net]\nwidth=ten\n");
  EXPECT_THAT(error_of(folder / "bad.cfg", {}),
              EndsWith("bad.cfg: line 2, [net]: width= expects a whole number, found 'ten'"));
  std::filesystem::create_directory(folder / "folder.cfg");
  EXPECT_THAT(error_of(folder / "folder.cfg", {}), HasSubstr("folder.cfg"));
  OpenOptions options;
  options.weights = folder / "absent.weights";
  const auto graph = open_graph("yolov4-tiny", options);
  ASSERT_FALSE(graph);
  EXPECT_EQ(graph.error().kind(), ErrorKind::kNotFound);
}

TEST(OpenGraph, RefusesRealWeightsOfAnotherNetwork) {
  const auto cfg = test::shared_data("models/yolo-fastest-1.1.cfg");
  STROBE_REQUIRE_DATA(cfg);
  OpenOptions options;
  options.weights = test::shared_data("models/yolo-fastest-1.1_body.weights");
  EXPECT_THAT(error_of(cfg, options),
              HasSubstr("yolo-fastest-1.1_body.weights: ends in layer 126_convolutional: 11949 of its 14400 weights"));
}

TEST(OpenGraph, KnowsCocoNamesAsTheirFileHasThem) {
  const auto file = test::shared_data("models/coco.names");
  STROBE_REQUIRE_DATA(file);
  std::ifstream stream(file);
  std::vector<std::string> names;
  for (std::string line; std::getline(stream, line);) names.push_back(line);
  EXPECT_EQ(coco_names(), names);
}

}  // namespace
}  // namespace strobe::models
