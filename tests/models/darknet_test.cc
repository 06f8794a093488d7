#include "models/darknet.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>

#include "models/darknet_weights.h"
#include "models/graph_builder.h"
#include "support/test_data.h"

namespace strobe::models {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* kNet = "[net]\nwidth=32\nheight=16\n";  // three lines

std::string error_of(const std::string& cfg) {
  const auto graph = parse_darknet(cfg, "test");
  return graph ? "no error" : graph.error().to_string();
}

// One "name: type shape" a layer.
std::vector<std::string> layers_of(const std::string& cfg) {
  const auto graph = parse_darknet(cfg, "test");
  if (!graph) return {graph.error().to_string()};
  std::vector<std::string> lines;
  for (const Layer& layer : graph->layers) {
    lines.push_back(fmt::format("{}: {} {}", layer.name, type_name(layer.operation), layer.output.to_string()));
  }
  return lines;
}

TEST(Darknet, MakesOneLayerOfEachOperation) {
  EXPECT_THAT(layers_of(std::string(kNet) +
                        "[convolutional]\nbatch_normalize=1\nfilters=8\nsize=3\nstride=2\npad=1\nactivation=leaky\n"
                        "[convolutional]\nfilters = 4\nsize=1\nactivation=linear\n"),
              ElementsAre("input: Input 3x16x32", "000_convolutional: Convolution 8x8x16",
                          "000_convolutional.bn: BatchNorm 8x8x16", "000_convolutional.leaky: Activation 8x8x16",
                          "001_convolutional: Convolution 4x8x16"));
}

TEST(Darknet, ReadsRoutesShortcutsAndTheRest) {
  const std::string cfg = std::string(kNet) +
                          "[convolutional]\nfilters=8\nactivation=relu\n"          // 0
                          "[maxpool]\nsize=2\nstride=2\n"                          // 1
                          "[dropout]\nprobability=.2\n"                            // 2
                          "[upsample]\nstride=2\n"                                 // 3
                          "[shortcut]\nfrom=0\nactivation=mish\n"                  // 4
                          "[route]\nlayers=-1\ngroups=2\ngroup_id=1\n"             // 5
                          "[route]\nlayers = -1, 0,\n"                             // 6
                          "[route]\nlayers=0,-2\ngroups=2\n"                       // 7
                          "[route]\nlayers=-1\n"                                   // 8: a name for 7
                          "[local_avgpool]\nsize=2\nstride=2\npadding=0\n"         // 9
                          "[avgpool]\n[connected]\noutput=5\nactivation=linear\n"  // 10, 11
                          "[softmax]\n[cost]\n";                                   // 12, 13
  EXPECT_THAT(
      layers_of(cfg),
      ElementsAre("input: Input 3x16x32", "000_convolutional: Convolution 8x16x32",
                  "000_convolutional.relu: Activation 8x16x32", "001_maxpool: Pool 8x8x16",
                  "002_dropout: Dropout 8x8x16", "003_upsample: Upsample 8x16x32", "004_shortcut: Add 8x16x32",
                  "004_shortcut.mish: Activation 8x16x32", "005_route: Slice 4x16x32", "006_route: Concat 12x16x32",
                  "007_route.slice0: Slice 4x16x32", "007_route.slice1: Slice 2x16x32", "007_route: Concat 6x16x32",
                  "009_local_avgpool: Pool 6x8x16", "010_avgpool: GlobalAveragePool 6x1x1",
                  "011_connected: Linear 5x1x1", "012_softmax: Softmax 5x1x1"));
}

TEST(Darknet, AddsTheChannelsThatBothHave) {
  EXPECT_THAT(
      layers_of(std::string(kNet) +
                "[convolutional]\nfilters=8\nactivation=linear\n[convolutional]\nfilters=4\nactivation=linear\n"
                "[shortcut]\nfrom=-2,0\nactivation=linear\n"),
      ElementsAre("input: Input 3x16x32", "000_convolutional: Convolution 8x16x32",
                  "001_convolutional: Convolution 4x16x32", "002_shortcut.slice: Slice 4x16x32",
                  "002_shortcut: Add 4x16x32", "002_shortcut.slice1: Slice 4x16x32", "002_shortcut.add1: Add 4x16x32"));
}

TEST(Darknet, PadsPoolsOnTheFarSideAndOnlyWhereWindowsReach) {
  const auto pool_of = [](const std::string& size, const std::string& keys) {
    const auto graph = parse_darknet("[net]\n" + size + "[maxpool]\n" + keys, "test");
    return std::pair{std::get<Pool>(graph->layers.back().operation), graph->layers.back().output};
  };
  auto [even, even_shape] = pool_of("width=26\nheight=26\n", "size=2\nstride=2\n");
  EXPECT_EQ(even.pad_top + even.pad_bottom + even.pad_left + even.pad_right, 0);
  EXPECT_EQ(even_shape, (Shape{3, 13, 13}));
  auto [odd, odd_shape] = pool_of("width=13\nheight=26\n", "size=2\nstride=2\n");
  EXPECT_THAT(std::vector({odd.pad_left, odd.pad_right, odd.pad_top, odd.pad_bottom}), ElementsAre(0, 1, 0, 0));
  EXPECT_EQ(odd_shape, (Shape{3, 13, 7}));
  auto [same, same_shape] = pool_of("width=13\nheight=13\n", "size=2\nstride=1\n");  // YOLOv3-tiny
  EXPECT_THAT(std::vector({same.pad_left, same.pad_right}), ElementsAre(0, 1));
  EXPECT_EQ(same_shape, (Shape{3, 13, 13}));
  auto [wide, wide_shape] = pool_of("width=13\nheight=13\n", "size=5\nstride=1\n");  // SPP
  EXPECT_THAT(std::vector({wide.pad_left, wide.pad_right}), ElementsAre(2, 2));
  EXPECT_EQ(wide_shape, (Shape{3, 13, 13}));
}

TEST(Darknet, ReadsHeads) {
  const std::string head =
      "[convolutional]\nfilters=14\nactivation=logistic\n"
      "[yolo]\nmask = 2,0\nanchors = 10,14,  23,27,  37,58\nnum=3\nclasses=2\nscale_x_y=1.05\nnew_coords=1\n";
  const auto graph = parse_darknet("[net]\nwidth=32\nheight=32\nletter_box=1\n" + head, "test");
  ASSERT_TRUE(graph) << graph.error().to_string();
  ASSERT_EQ(graph->outputs.size(), 1U);
  const auto& rule = std::get<YoloHead>(graph->layer(graph->outputs[0]).operation);
  EXPECT_THAT(rule.anchors, ElementsAre(37, 58, 10, 14));
  EXPECT_EQ(rule.classes, 2);
  EXPECT_FLOAT_EQ(rule.scale_x_y, 1.05F);
  EXPECT_TRUE(rule.new_coords);
  EXPECT_EQ(graph->input_rule.fit, InputRule::Fit::kLetterbox);
  EXPECT_EQ(parse_darknet(kNet + head, "test")->input_rule.fit, InputRule::Fit::kStretch);
}

TEST(Darknet, KnowsEveryActivationOfTheFamily) {
  for (const char* name : {"relu", "relu6", "leaky", "logistic", "mish", "swish", "tanh", "elu", "hard_swish"}) {
    const auto graph = parse_darknet(fmt::format("{}[convolutional]\nfilters=2\nactivation={}\n", kNet, name), "test");
    ASSERT_TRUE(graph) << graph.error().to_string();
    EXPECT_EQ(to_string(std::get<Activation>(graph->layers.back().operation).kind), name);
  }
}

TEST(Darknet, ReadsFilesAsPeopleWriteThem) {
  EXPECT_THAT(layers_of("\xEF\xBB\xBF# a comment\r\n\r\n[network]\r\nwidth = 32 # pixels\r\nheight=32\r\n;[maxpool]\r\n"
                        "[ convolutional ]\r\n  filters = 4 ; four\r\nactivation = linear"),
              ElementsAre("input: Input 3x32x32", "000_convolutional: Convolution 4x32x32"));
}

TEST(Darknet, SaysWhichLineIsWrongAndWhatWasExpected) {
  const std::string net = kNet;
  EXPECT_EQ(error_of(""), "no section in it, expected [net] and layers");
  EXPECT_EQ(error_of("\n# nothing\n"), "no section in it, expected [net] and layers");
  EXPECT_EQ(error_of(std::string("ab\n\0\x01\x02", 6)), "line 1: expected [section] or key=value, found 'ab'");
  EXPECT_EQ(error_of(std::string("\x7f"
                                 "ELF\0",
                                 5)),
            "line 1: binary data, expected the text of a Darknet configuration");
  EXPECT_EQ(error_of("[maxpool]\nsize=2\n"), "line 1: expected [net] first, found [maxpool]");
  EXPECT_EQ(error_of("width=3\n"), "line 1: expected [net] before 'width=3'");
  EXPECT_EQ(error_of("[net]\nwidth=32\n"), "line 1, [net]: height= is missing, expected a whole number");
  EXPECT_EQ(error_of("[net]\nwidth=0\nheight=32\n"), "line 1, [net]: the input: the width is 0, expected 1 to 65536");
  EXPECT_EQ(error_of(net), "a network needs at least one layer");
  EXPECT_EQ(error_of(net + "[convolutional\n"),
            "line 4: expected a section like [convolutional], found '[convolutional'");
  EXPECT_EQ(error_of(net + "[convolutional]\nsize=3\n"),
            "line 4, [convolutional]: filters= is missing, expected a whole number");
  EXPECT_EQ(error_of(net + "[convolutional]\n\nfilters=many\n"),
            "line 6, [convolutional]: filters= expects a whole number, found 'many'");
  EXPECT_EQ(error_of(net + "[convolutional]\nfilters=\xC3\xA4" + std::string(60, '1') + "\n"),
            "line 5, [convolutional]: filters= expects a whole number, found '??" + std::string(38, '1') + "...'");
  EXPECT_EQ(error_of(net + "[convolutional]\nfilters=3.5\n"),
            "line 5, [convolutional]: filters= expects a whole number, found '3.5'");
  EXPECT_EQ(error_of(net + "[convolutional]\nfilters=4\ngroups=2\nactivation=linear\n"),
            "line 4: layer 000_convolutional: 2 groups do not divide 3 input channels");
  EXPECT_EQ(error_of(net + "[convolutional]\nfilters=4\nstride=0\nactivation=linear\n"),
            "line 6, [convolutional]: stride is 0, expected 1 or more");
  EXPECT_EQ(error_of(net + "[maxpool]\nsize=2\n[route]\nlayers=-2\n"),
            "line 7, [route]: layers=-2 in layer 1 does not name an earlier layer");
  EXPECT_EQ(error_of(net + "[maxpool]\nsize=2\n[route]\nlayers=1\n"),
            "line 7, [route]: layers=1 in layer 1 does not name an earlier layer");
  EXPECT_EQ(error_of(net + "[maxpool]\nsize=2\n[shortcut]\nactivation=linear\n"),
            "line 6, [shortcut]: from= is missing, expected whole numbers with commas between them");
  EXPECT_EQ(error_of(net + "[maxpool]\n[route]\nlayers=0\ngroups=2\n"),
            "line 7, [route]: groups=2 does not divide the 3 channels of 000_maxpool");
  EXPECT_EQ(error_of(net + "[yolo]\nmask=0,3\nanchors=1,2,3,4\nnum=2\nclasses=1\n"),
            "line 5, [yolo]: mask= names anchor 3, expected 0 to 1");
  EXPECT_EQ(error_of(net + "[yolo]\nmask=0\nanchors=1,2,3\nnum=2\n"),
            "line 6, [yolo]: anchors= has 3 numbers, expected 2 pairs as num= says");
  EXPECT_EQ(error_of(net + "[yolo]\nmask=0\nanchors=1,2\nclasses=2\n"),
            "line 4: layer 000_yolo: expected 7 input channels (1 anchors x (5 + 2 classes)), found 3");
}

TEST(Darknet, NamesWhatIsNotSupported) {
  const std::string net = kNet;
  EXPECT_THAT(error_of(net + "[crnn]\nsize=2\n"),
              HasSubstr("line 4: layer type [crnn] is not supported, expected one of [convolutional] [maxpool]"));
  EXPECT_THAT(error_of(net + "[convolutional]\nfilters=2\nactivation=stair\n"),
              HasSubstr("line 6, [convolutional]: activation 'stair' is not known, expected one of linear, relu"));
  EXPECT_EQ(error_of(net + "[convolutional]\nfilters=2\nxnor=1\n"),
            "line 6, [convolutional]: xnor=1 is not supported, only 0");
  EXPECT_EQ(parse_darknet(net + "[region]\n", "x").error().kind(), ErrorKind::kUnsupported);
  EXPECT_EQ(parse_darknet(net + "nonsense\n", "x").error().kind(), ErrorKind::kBadData);
}

// Every order of numbers that a weights file has; the comments count them.
const char* const kWeighted =
    "[net]\nwidth=2\nheight=2\nchannels=1\n"
    "[convolutional]\nfilters=2\nbatch_normalize=1\nactivation=linear\n"  // 2 + 2 + 2 + 2, 2 weights
    "[convolutional]\nfilters=1\nactivation=linear\n"                     // 1, 2 weights
    "[connected]\noutput=2\nactivation=linear\n";                         // 2, 8 weights
constexpr int kWeightedNumbers = 23;

std::string weights_file(int major, int minor, int numbers) {
  std::string bytes;
  const auto put = [&](const auto& value) { bytes.append(reinterpret_cast<const char*>(&value), sizeof value); };
  put(int32_t{major});
  put(int32_t{minor});
  put(int32_t{0});
  const bool wide = major * 10 + minor >= 2 && major < 1000 && minor < 1000;
  wide ? put(uint64_t{123}) : put(uint32_t{123});
  for (int i = 0; i < numbers; ++i) put(static_cast<float>(i));
  return bytes;
}

TEST(DarknetWeights, FollowDarknetsOrder) {
  for (const auto& [major, minor] : {std::pair{0, 1}, {0, 2}, {1, 0}}) {
    Graph graph = *parse_darknet(kWeighted, "test");
    const auto loaded = load_darknet_weights(graph, weights_file(major, minor, kWeightedNumbers));
    ASSERT_TRUE(loaded) << loaded.error().to_string();
    EXPECT_TRUE(validate(graph));
    const auto& conv = std::get<Convolution>(graph.layers[1].operation);
    const auto& norm = std::get<BatchNorm>(graph.layers[2].operation);
    const auto& plain = std::get<Convolution>(graph.layers[3].operation);
    const auto& linear = std::get<Linear>(graph.layers[5].operation);
    EXPECT_EQ(conv.bias, nullptr);
    EXPECT_THAT(norm.shift->values, ElementsAre(0, 1));
    EXPECT_THAT(norm.scale->values, ElementsAre(2, 3));
    EXPECT_THAT(norm.mean->values, ElementsAre(4, 5));
    EXPECT_THAT(norm.variance->values, ElementsAre(6, 7));
    EXPECT_THAT(conv.weight->values, ElementsAre(8, 9));
    EXPECT_THAT(plain.bias->values, ElementsAre(10));
    EXPECT_THAT(plain.weight->values, ElementsAre(11, 12));
    EXPECT_THAT(linear.bias->values, ElementsAre(13, 14));
    EXPECT_THAT(linear.weight->values, ElementsAre(15, 16, 17, 18, 19, 20, 21, 22));
  }
}

TEST(DarknetWeights, OfOldNetworksAreTransposedInConnectedLayers) {
  Graph graph = *parse_darknet(kWeighted, "test");
  ASSERT_TRUE(load_darknet_weights(graph, weights_file(1001, 0, kWeightedNumbers)));
  const auto& linear = std::get<Linear>(graph.layers[5].operation);
  EXPECT_THAT(linear.weight->values, ElementsAre(15, 17, 19, 21, 16, 18, 20, 22));
}

TEST(DarknetWeights, SayWhereTheyDoNotFit) {
  const auto error = [](const std::string& bytes) {
    Graph graph = *parse_darknet(kWeighted, "test");
    const auto loaded = load_darknet_weights(graph, bytes);
    return loaded ? "no error" : loaded.error().to_string();
  };
  EXPECT_EQ(
      error(weights_file(0, 2, 12)),
      "ends in layer 001_convolutional: 1 of its 2 weights are there; 11 numbers are missing in all (23 needed, 12 "
      "in the file)");
  EXPECT_EQ(error(weights_file(0, 2, 25)),
            "2 numbers are left over (23 needed, 25 in the file; the last layer with weights is 002_connected)");
  EXPECT_EQ(error(weights_file(0, 2, 23) + "x"), "93 bytes after the header are no whole number of float32");
  EXPECT_EQ(error(""), "0 bytes, too short for the header of a Darknet weights file");
  EXPECT_EQ(error(std::string(16, '\0').replace(4, 1, "\x02")),
            "16 bytes, too short for the header of a Darknet weights file");
  EXPECT_THAT(error("\xff\xd8\xff\xe0\xff\xff\xff\xff\x01\x01\x01\x01 a picture"),
              HasSubstr("no Darknet weights file"));
}

TEST(Darknet, RealConfigurationsMakeTheirPublishedShapes) {
  const auto cfg = test::shared_data("video/yolov4-tiny-person-vehicle.cfg");
  STROBE_REQUIRE_DATA(cfg);
  const auto graph = read_darknet(cfg);
  ASSERT_TRUE(graph) << graph.error().to_string();
  EXPECT_EQ(graph->name, "yolov4-tiny-person-vehicle");
  EXPECT_EQ(network_stride(*graph), 32);
  ASSERT_EQ(graph->outputs.size(), 2U);
  EXPECT_EQ(graph->layer(graph->outputs[0]).name, "030_yolo");
  EXPECT_EQ(graph->layer(graph->outputs[0]).output, (Shape{21, 15, 20}));
  EXPECT_EQ(graph->layer(graph->outputs[1]).output, (Shape{21, 30, 40}));
}

}  // namespace
}  // namespace strobe::models
