#include "models/split.h"

#include <gmock/gmock.h>

#include "models/graph_builder.h"
#include "models/reference_executor.h"
#include "models/seed.h"
#include "models/zoo.h"

namespace strobe::models {
namespace {

using testing::HasSubstr;

Graph seeded(Result<Graph> graph) {
  EXPECT_TRUE(graph) << graph.error().to_string();
  EXPECT_TRUE(seed_weights(*graph, 3));
  return std::move(*graph);
}

std::vector<float> picture(const Shape& shape) {
  std::vector<float> values(static_cast<size_t>(shape.elements()));
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i * 2654435761U % 251) / 251;
  return values;
}

// One part after the other gives what the whole gives, value for value.
void expect_same_answers(const Graph& whole, const SplitGraph& split) {
  ASSERT_TRUE(validate(split.first)) << validate(split.first).error().to_string();
  ASSERT_TRUE(validate(split.second)) << validate(split.second).error().to_string();
  const auto input = picture(whole.input_shape());
  const auto wanted = test::run_reference(whole, input);
  const auto first = test::run_reference(split.first, input);
  const auto second = test::run_reference(split.second, first[static_cast<size_t>(split.first.outputs.back())]);
  ASSERT_EQ(split.from_second.size(), whole.outputs.size());
  size_t of_first = 0, of_second = 0;
  for (size_t i = 0; i < whole.outputs.size(); ++i) {
    const auto& got = split.from_second[i] ? second[static_cast<size_t>(split.second.outputs[of_second++])]
                                           : first[static_cast<size_t>(split.first.outputs[of_first++])];
    EXPECT_EQ(got, wanted[static_cast<size_t>(whole.outputs[i])]);
  }
}

TEST(SplitGraph, GroupOfLayersGoesWholeIntoTheFirstPart) {
  const Graph whole = seeded(make_resnet18({.width = 32, .height = 32}));
  const auto split = split_graph(whole, "layer3");
  ASSERT_TRUE(split) << split.error().to_string();
  EXPECT_THAT(split->first.layers.back().name, testing::StartsWith("layer3."));
  EXPECT_THAT(split->second.layers[1].name, testing::StartsWith("layer4."));
  EXPECT_EQ(split->second.input_shape(), split->first.layers.back().output);
  expect_same_answers(whole, *split);
}

TEST(SplitGraph, OutputsOfBothPartsKeepTheirPlaces) {
  GraphBuilder builder("two outputs");
  const LayerId input = *builder.input({3, 8, 8});
  Convolution convolution;
  convolution.out_channels = 4;
  const LayerId early = *builder.append("early", convolution, {input});
  const LayerId middle = *builder.append("middle", Activation{ActivationKind::kRelu}, {early});
  const LayerId late = *builder.append("late", convolution, {middle});
  builder.add_output(late);
  builder.add_output(early);
  const Graph whole = seeded(std::move(builder).finish());
  const auto split = split_graph(whole, "middle");
  ASSERT_TRUE(split) << split.error().to_string();
  EXPECT_EQ(split->from_second, (std::vector<bool>{true, false}));
  expect_same_answers(whole, *split);
}

TEST(SplitGraph, SaysWhyAPlaceIsWrongAndWhichAreRight) {
  const Graph whole = seeded(make_resnet18({.width = 32, .height = 32}));
  const auto inside = split_graph(whole, "layer1.0.conv1");
  ASSERT_FALSE(inside);
  EXPECT_THAT(inside.error().to_string(), HasSubstr("2 tensors of resnet18 cross behind 'layer1.0.conv1'"));
  EXPECT_THAT(inside.error().to_string(), HasSubstr("maxpool"));
  const auto unknown = split_graph(whole, "layer9");
  ASSERT_FALSE(unknown);
  EXPECT_THAT(unknown.error().to_string(), HasSubstr("resnet18 has no layer 'layer9'"));
  const auto nothing_left = split_graph(whole, "fc");
  ASSERT_FALSE(nothing_left);
  EXPECT_THAT(nothing_left.error().to_string(), HasSubstr("nothing is left for the second part"));
}

}  // namespace
}  // namespace strobe::models
