#include "predict/layer_list.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "models/cost.h"
#include "models/module_builder.h"
#include "models/zoo.h"
#include "support/test_data.h"

namespace strobe::predict {
namespace {

using models::LayerId;
using models::ModuleBuilder;
using testing::HasSubstr;

constexpr const char* kHeader = "net,level,index,type,ic,oc,kh,kw,sh,sw,ph,pw,groups,ih,iw,oh,ow,bias,inplace,inputs\n";

std::string error_of(const std::string& rows) {
  const auto lists = parse_layer_lists(kHeader + rows);
  return lists ? "" : lists.error().to_string();
}

const LayerList* find(const std::vector<LayerList>& lists, const std::string& net, int64_t level) {
  const auto found = std::find_if(lists.begin(), lists.end(),
                                  [&](const auto& list) { return list.net == net && list.level == level; });
  return found == lists.end() ? nullptr : &*found;
}

// Row by row, so that a difference shows its place.
void expect_equal(const LayerList& ours, const LayerList& theirs) {
  ASSERT_EQ(ours.rows.size(), theirs.rows.size());
  for (size_t i = 0; i < ours.rows.size(); ++i) {
    LayerList a{"x", 0, {ours.rows[i]}}, b{"x", 0, {theirs.rows[i]}};
    EXPECT_EQ(format_layer_lists({a}), format_layer_lists({b})) << "row " << i;
  }
}

// The published lists, made by tracing PyTorch models.
class PublishedLists : public testing::Test {
 protected:
  void SetUp() override {
    const auto path = test::shared_data("tx2/layers.csv");
    STROBE_REQUIRE_DATA(path);
    auto read = read_layer_lists(path);
    ASSERT_TRUE(read) << read.error().to_string();
    lists_ = std::move(*read);
  }
  std::vector<LayerList> lists_;
};

TEST_F(PublishedLists, ReadsAllAndWritesTheSameFile) {
  EXPECT_EQ(lists_.size(), 19U + 3 * 13U);  // its README: resnet50 at all 19 levels, the others at 13
  const auto again = parse_layer_lists(format_layer_lists(lists_));
  ASSERT_TRUE(again);
  EXPECT_EQ(*again, lists_);
}

TEST_F(PublishedLists, ResnetsAreThoseOfTheZoo) {
  for (const char* name : {"resnet18", "resnet50"}) {
    SCOPED_TRACE(name);
    const LayerList* list = find(lists_, name, 0);
    ASSERT_NE(list, nullptr);
    expect_equal(from_graph(*models::find_in_zoo(name)->make({})), *list);
  }
}

// The published MobileNetV2 expands its first block, too, by a 1x1 convolution of 32 to 32 channels, which
// torchvision's (and the zoo's) has not; and its additions name their inputs the other way round.
TEST_F(PublishedLists, MobilenetIsThatOfTheZooButForOneExpansion) {
  const LayerList* list = find(lists_, "mobilenetv2", 0);
  ASSERT_NE(list, nullptr);
  LayerList theirs = *list;
  ASSERT_EQ(theirs.rows[3].type, LayerKind::kConv);
  ASSERT_EQ(theirs.rows[3].kh, 1);
  theirs.rows.erase(theirs.rows.begin() + 3, theirs.rows.begin() + 6);
  for (LayerRow& row : theirs.rows) {
    for (int32_t& input : row.inputs) input -= input >= 5 ? 3 : 0;
    if (row.type == LayerKind::kAdd) std::sort(row.inputs.begin(), row.inputs.end());
  }
  LayerList ours = from_graph(*models::make_mobilenet_v2({}));
  for (LayerRow& row : ours.rows)
    if (row.type == LayerKind::kAdd) std::sort(row.inputs.begin(), row.inputs.end());
  expect_equal(ours, theirs);
}

// The published SqueezeNet is version 1.0 with one ReLU behind each concatenation. The zoo has 1.1, so it is built
// here.
TEST_F(PublishedLists, SqueezenetOfVersionOneIsFollowedToo) {
  const LayerList* list = find(lists_, "squeezenet", 0);
  ASSERT_NE(list, nullptr);
  ModuleBuilder build("squeezenet");
  int fires = 0;
  const auto fire = [&](LayerId x, int64_t squeezed, int64_t expanded) {
    const std::string name = fmt::format("fire{}.", ++fires);
    x = build.relu(name + "relu1", build.convolution(name + "squeeze", x, {.channels = squeezed, .bias = true}));
    const LayerId a = build.convolution(name + "expand1", x, {.channels = expanded, .bias = true});
    const LayerId b =
        build.convolution(name + "expand3", x, {.channels = expanded, .kernel = 3, .pad = 1, .bias = true});
    return build.relu(name + "relu2", build.append(name + "cat", models::Concat{}, {a, b}));
  };
  LayerId x = build.picture({}, 224);
  x = build.relu("relu", build.convolution("conv1", x, {.channels = 96, .kernel = 7, .stride = 2, .bias = true}));
  x = build.max_pool("pool1", x, 3, 2, 0, true);
  x = fire(fire(fire(x, 16, 64), 16, 64), 32, 128);
  x = build.max_pool("pool2", x, 3, 2, 0, true);
  x = fire(fire(fire(fire(x, 32, 128), 48, 192), 48, 192), 64, 256);
  x = build.max_pool("pool3", x, 3, 2, 0, true);
  x = build.dropout("dropout", fire(x, 64, 256), 0.5F);
  x = build.relu("relu_last", build.convolution("conv10", x, {.channels = 1000, .bias = true}));
  build.average_to_vector("pool", x);
  const auto graph = std::move(build).finish();
  ASSERT_TRUE(graph) << graph.error().to_string();
  expect_equal(from_graph(*graph), *list);
}

TEST(FromGraph, EveryNetworkOfTheZooKeepsItsParametersAndFitsTheFormat) {
  for (const models::ZooEntry& entry : models::zoo()) {
    SCOPED_TRACE(entry.name);
    const auto graph = entry.make({});
    ASSERT_TRUE(graph);
    const LayerList list = from_graph(*graph, 35);
    EXPECT_EQ(list.parameters(), static_cast<double>(models::graph_cost(*graph).parameters));
    const auto again = parse_layer_lists(format_layer_lists({list}));
    ASSERT_TRUE(again) << again.error().to_string();
    EXPECT_EQ(again->at(0), list);
  }
}

TEST(FromGraph, OverwritesOnlyWhatNothingElseReads) {
  ModuleBuilder build("net");
  LayerId x = build.relu("of_the_input", build.input({4, 8, 8}));
  const LayerId conv = build.convolution("conv", x, {.channels = 6, .kernel = 3, .pad = 1});
  const LayerId first = build.relu("first", conv);
  const LayerId second = build.relu6("second", conv);
  const LayerId leaky = build.append("leaky", models::Activation{models::ActivationKind::kLeaky}, {first});
  const LayerId swish = build.append("swish", models::Activation{models::ActivationKind::kSwish}, {second});
  const LayerId linear = build.append("linear", models::Activation{models::ActivationKind::kLinear}, {swish});
  const LayerId cat = build.append("cat", models::Concat{}, {leaky, build.dropout("dropout", linear, 0.5F)});
  build.append("slice", models::Slice{2, 7}, {cat});
  const auto graph = std::move(build).finish();
  ASSERT_TRUE(graph) << graph.error().to_string();
  EXPECT_EQ(format_layer_lists({from_graph(*graph)}), std::string(kHeader) +
                                                          "net,0,0,relu,4,4,0,0,0,0,0,0,1,8,8,8,8,0,0,-1\n"
                                                          "net,0,1,conv,4,6,3,3,1,1,1,1,1,8,8,8,8,0,0,0\n"
                                                          "net,0,2,relu,6,6,0,0,0,0,0,0,1,8,8,8,8,0,0,1\n"
                                                          "net,0,3,relu6,6,6,0,0,0,0,0,0,1,8,8,8,8,0,0,1\n"
                                                          "net,0,4,activation,6,6,0,0,0,0,0,0,1,8,8,8,8,0,1,2\n"
                                                          "net,0,5,activation,6,6,0,0,0,0,0,0,1,8,8,8,8,0,0,3\n"
                                                          "net,0,6,cat,12,12,0,0,0,0,0,0,1,8,8,8,8,0,0,4;5\n"
                                                          "net,0,7,slice,12,5,0,0,0,0,0,0,1,8,8,8,8,0,1,6\n");
}

TEST(ParseLayerLists, FindsColumnsByNameAndPassesOverOthers) {
  const auto lists = parse_layer_lists(
      "\xEF\xBB\xBF"
      "note,type,level,net,index,oc,ic,kw,kh,sw,sh,pw,ph,groups,iw,ih,ow,oh,bias,inplace,inputs\r\n"
      "\"a, \"\"b\"\"\",conv,5,\"my, net\",0,8,4,5,3,2,1,2,0,2,10,20,5,18,1,0,-1\r\n\r\n");
  ASSERT_TRUE(lists) << lists.error().to_string();
  ASSERT_EQ(lists->size(), 1U);
  EXPECT_EQ(lists->front().net, "my, net");
  EXPECT_EQ(lists->front().level, 5);
  const LayerRow& row = lists->front().rows.at(0);
  EXPECT_EQ(row, (LayerRow{LayerKind::kConv, 4, 8, 3, 5, 1, 2, 0, 2, 2, 20, 10, 18, 5, true, false, {-1}}));
  EXPECT_EQ(row.parameters(), 4 / 2 * 8 * 3 * 5 + 8);
  const auto again = parse_layer_lists(format_layer_lists(*lists));
  ASSERT_TRUE(again);
  EXPECT_EQ(*again, *lists);
}

TEST(ParseLayerLists, SaysLineColumnAndWhatWasExpected) {
  const std::string good = "n,0,0,conv,3,64,7,7,2,2,3,3,1,224,224,112,112,0,0,-1\n";
  EXPECT_EQ(error_of(good), "");
  EXPECT_EQ(error_of(good + "n,0,1,bm,64,64,0,0,0,0,0,0,1,112,112,112,112,1,0,0\n"),
            "line 3: column type: 'bm', expected one of " + layer_kind_names());
  EXPECT_EQ(error_of("n,0,0,conv,3.5,64,7,7,2,2,3,3,1,224,224,112,112,0,0,-1\n"),
            "line 2: column ic: '3.5', expected a whole number from 1 to 268435456");
  EXPECT_EQ(error_of(good + "n,0,2,relu,64,64,0,0,0,0,0,0,1,112,112,112,112,0,1,0\n"),
            "line 3: column index: '2', expected 1, the next of n level 0");
  for (const char* inputs : {"1", "-2", "", "0;", "0;;0", "x", "0 "})
    EXPECT_THAT(error_of(good + "n,0,1,relu,64,64,0,0,0,0,0,0,1,112,112,112,112,0,1," + inputs + "\n"),
                HasSubstr(fmt::format("line 3: column inputs: '{}', expected indices of earlier rows", inputs)));
  EXPECT_THAT(error_of("n,101,0,relu,64,64,0,0,0,0,0,0,1,9,9,9,9,0,1,-1\n"), HasSubstr("column level: '101'"));
  EXPECT_THAT(error_of("n,0,0,conv,3,64,0,7,2,2,3,3,1,9,9,9,9,0,0,-1\n"), HasSubstr("column kh: '0'"));
  EXPECT_THAT(error_of("n,0,0,conv,3,64,7,7,2,0,3,3,1,9,9,9,9,0,0,-1\n"), HasSubstr("column sw: '0'"));
  EXPECT_EQ(error_of("n,0,0,conv,3,64,7,7,2,2,3,3,2,9,9,9,9,0,0,-1\n"),
            "line 2: column groups: '2', expected a divisor of 3 and 64 channels");
  EXPECT_EQ(error_of("n,0,0\n"), "line 2: 3 fields, expected 20 as in the header");
  EXPECT_EQ(error_of("\"n,0,0\n"), "line 2: a quote is opened and not closed");
  EXPECT_EQ(parse_layer_lists("").error().to_string(), "empty, expected a header line with the names of the columns");
  EXPECT_EQ(parse_layer_lists("net,level,net\n").error().to_string(), "line 1: column net stands twice in the header");
  EXPECT_EQ(parse_layer_lists("net,level\n").error().to_string(), "line 1: no column index, found: net,level");
}

}  // namespace
}  // namespace strobe::predict
