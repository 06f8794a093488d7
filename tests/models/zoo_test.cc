#include "models/zoo.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "models/cost.h"
#include "models/darknet.h"
#include "models/graph_builder.h"
#include "models/model.h"
#include "models/reference_executor.h"
#include "models/seed.h"
#include "support/test_data.h"

namespace strobe::models {
namespace {

TEST(Yolov4Tiny, HasThePublishedParametersAndFlop) {
  const auto graph = make_yolov4_tiny({});
  ASSERT_TRUE(graph) << graph.error().to_string();
  EXPECT_EQ(graph->input_shape(), (Shape{3, 416, 416}));
  // Keras and PyTorch ports of the network print 6,056,606 trainable parameters; with the running means and variances
  // of 3,104 channels these are the 6,062,814 float32 of the published weights file (24,251,276 bytes with its header).
  EXPECT_EQ(graph_cost(*graph).parameters, 6'056'606);
  int64_t numbers = 0;
  double convolutions = 0;
  for (LayerId id = 0; id < static_cast<LayerId>(graph->layers.size()); ++id) {
    numbers += weight_count(graph->layer(id).operation);
    if (std::holds_alternative<Convolution>(graph->layer(id).operation)) {
      convolutions += static_cast<double>(layer_cost(*graph, id).flop);
    }
  }
  EXPECT_EQ(numbers * 4 + 20, 24'251'276);
  EXPECT_NEAR(convolutions / 1e9, 6.9, 0.02);  // Darknet prints 6.9 BFLOPs
}

TEST(Yolov4Tiny, HasTheStructureOfItsConfigurationFile) {
  const auto cfg = test::shared_data("video/yolov4-tiny-person-vehicle.cfg");
  STROBE_REQUIRE_DATA(cfg);
  const auto imported = read_darknet(cfg);
  const auto ours = make_yolov4_tiny({640, 480, 2});
  ASSERT_TRUE(imported && ours);
  ASSERT_EQ(ours->layers.size(), imported->layers.size());
  for (size_t i = 0; i < ours->layers.size(); ++i) {
    const Layer& a = ours->layers[i];
    const Layer& b = imported->layers[i];
    EXPECT_EQ(a.name, b.name);
    EXPECT_EQ(type_name(a.operation), type_name(b.operation)) << a.name;
    EXPECT_EQ(a.inputs, b.inputs) << a.name;
    EXPECT_EQ(a.output, b.output) << a.name;
  }
  EXPECT_EQ(ours->outputs, imported->outputs);
}

TEST(Yolov4Tiny, SeededOutputsAreFiniteAndFindLittle) {
  Graph graph = *make_yolov4_tiny({96, 96, 80});
  ASSERT_TRUE(seed_weights(graph, 1));
  ASSERT_TRUE(validate(graph));
  std::vector<float> picture(static_cast<size_t>(graph.input_shape().elements()));
  for (size_t i = 0; i < picture.size(); ++i) picture[i] = static_cast<float>(i * 2654435761U % 256) / 255;
  const auto values = test::run_reference(graph, picture);
  for (size_t i = 0; i < values.size(); ++i) {
    double squares = 0;
    for (const float v : values[i]) squares += double{v} * v;
    const double rms = std::sqrt(squares / static_cast<double>(values[i].size()));
    EXPECT_TRUE(rms > 0.01 && rms < 100) << graph.layers[i].name << ": " << rms;
  }
  // Objectness of the first anchor of the coarse head: logits around -4.6.
  const std::vector<float>& head = values[static_cast<size_t>(graph.outputs[0])];
  for (size_t cell = 0; cell < 9; ++cell) EXPECT_LT(head[4 * 9 + cell], 0);
}

// Parameters as torchvision documents them (num_params of its weights).
TEST(Classifiers, HaveThePublishedParameters) {
  const std::pair<const char*, int64_t> known[] = {
      {"resnet18", 11'689'512},     {"resnet50", 25'557'032}, {"mobilenet_v2", 3'504'872}, {"mnasnet1_0", 4'383'312},
      {"squeezenet1_1", 1'235'496}, {"googlenet", 6'624'904}, {"vgg16", 138'357'544}};
  for (const auto& [name, parameters] : known) {
    SCOPED_TRACE(name);
    const ZooEntry* entry = find_in_zoo(name);
    ASSERT_NE(entry, nullptr);
    const auto graph = entry->make({});
    ASSERT_TRUE(graph) << graph.error().to_string();
    EXPECT_EQ(graph_cost(*graph).parameters, parameters);
    ASSERT_EQ(graph->outputs.size(), 1U);
    EXPECT_EQ(graph->layer(graph->outputs[0]).output, (Shape{1000, 1, 1}));
    EXPECT_EQ(entry->make({.classes = 10})->layers.back().output.channels, 10);
  }
}

TEST(Classifiers, Vgg16AveragesLargerPictures) {
  const auto graph = make_vgg16({.width = 448, .height = 224});
  ASSERT_TRUE(graph) << graph.error().to_string();
  for (const Layer& layer : graph->layers) {
    if (layer.name == "flatten") {
      EXPECT_EQ(layer.output, (Shape{512 * 7 * 7, 1, 1}));
    }
  }
  EXPECT_EQ(graph_cost(*graph).parameters, 138'357'544);
  EXPECT_NE(make_vgg16({.width = 256, .height = 224}).error().to_string().find("expected multiples of 224"),
            std::string::npos);
}

TEST(Zoo, KnowsItsNames) {
  EXPECT_NE(find_in_zoo("yolov4-tiny"), nullptr);
  EXPECT_EQ(find_in_zoo("yolov4"), nullptr);
  const auto names = coco_names();
  ASSERT_EQ(names.size(), 80U);
  EXPECT_EQ(names[0], "person");
  EXPECT_EQ(names[79], "toothbrush");
}

TEST(PersonTiny, BringsItsWeights) {
  OpenOptions options;
  const auto trained = open_graph("person-tiny", options);
  ASSERT_TRUE(trained) << trained.error().to_string();
  EXPECT_TRUE(trained->trained);
  EXPECT_EQ(trained->labels, std::vector<std::string>{"person"});
  EXPECT_LE(person_tiny_weights().size(), 2U << 20);
  options.seeded = true;
  const auto seeded = open_graph("person-tiny", options);
  ASSERT_TRUE(seeded) << seeded.error().to_string();
  EXPECT_FALSE(seeded->trained);
}

TEST(PersonTiny, ItsWeightsFitOtherSizes) {
  OpenOptions options;
  options.width = 640;
  options.height = 480;
  const auto wide = open_graph("person-tiny", options);
  ASSERT_TRUE(wide) << wide.error().to_string();
  EXPECT_TRUE(wide->trained);
  EXPECT_EQ(wide->input_shape(), (Shape{3, 480, 640}));
}

}  // namespace
}  // namespace strobe::models
