#include "models/graph_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <random>

#include "base/file.h"
#include "models/model.h"
#include "models/same_graph.h"
#include "models/zoo.h"
#include "support/test_data.h"

namespace strobe::models {
namespace {

using nlohmann::json;
using testing::EndsWith;
using testing::HasSubstr;

// Every operation that there is, with no number at its default.
Graph one_of_each() {
  GraphBuilder builder("one of each, \"quoted\"");
  InputRule rule;
  rule.fit = InputRule::Fit::kLetterbox;
  rule.scale = 0.1F;
  rule.bgr = true;
  std::mt19937 random(5);
  std::uniform_real_distribution<float> any(0.001F, 3);
  for (int i = 0; i < 3; ++i) rule.mean[i] = any(random), rule.deviation[i] = any(random);
  LayerId x = *builder.input({4, 20, 18}, rule, "picture");
  Convolution conv{.out_channels = 6,
                   .kernel_h = 3,
                   .kernel_w = 2,
                   .stride_h = 2,
                   .stride_w = 1,
                   .pad_h = 2,
                   .pad_w = 1,
                   .dilation = 2,
                   .groups = 2,
                   .weight = nullptr,
                   .bias = declared_tensor({6})};
  x = *builder.append("conv", conv, {x});
  x = *builder.append("norm", BatchNorm{any(random) * 0.1F, nullptr, nullptr, nullptr, nullptr}, {x});
  x = *builder.append("elu", Activation{ActivationKind::kElu, any(random)}, {x});
  TransposedConvolution up{.out_channels = 5,
                           .kernel_h = 4,
                           .kernel_w = 3,
                           .stride_h = 2,
                           .stride_w = 3,
                           .pad_h = 1,
                           .pad_w = 2,
                           .weight = nullptr,
                           .bias = declared_tensor({5})};
  x = *builder.append("transposed", up, {x});
  Pool pool{.kind = Pool::Kind::kAverage,
            .kernel_h = 3,
            .kernel_w = 2,
            .stride_h = 2,
            .stride_w = 1,
            .pad_top = 1,
            .pad_left = 0,
            .pad_bottom = 2,
            .pad_right = 1,
            .count_padding = true};
  x = *builder.append("pool", pool, {x});
  const LayerId slice = *builder.append("slice", Slice{1, 4}, {x});
  x = *builder.append("concat", Concat{}, {x, slice, slice});
  x = *builder.append("upsample", Upsample{3}, {x});
  x = *builder.append("add", Add{}, {x, x, x});
  const LayerId map = *builder.append("head.conv", Convolution{.out_channels = 14, .weight = {}, .bias = {}}, {x});
  builder.add_output(*builder.append("head", YoloHead{{0.1F, any(random), 2, any(random)}, 2, 1.05F, true}, {map}));
  x = *builder.append("global", GlobalAveragePool{}, {x});
  x = *builder.append("flatten", Flatten{}, {x});
  x = *builder.append("dropout", Dropout{any(random) * 0.3F}, {x});
  x = *builder.append("linear", Linear{7, nullptr, declared_tensor({7})}, {x});
  builder.add_output(*builder.append("softmax", Softmax{}, {x}));
  Graph graph = *std::move(builder).finish();
  graph.labels = {"a cat", "\"b\"\n\xc3\xa9"};
  return graph;
}

TEST(GraphJson, EveryOperationComesBackAsItWas) {
  const Graph graph = one_of_each();
  const auto again = parse_graph_json(write_graph_json(graph));
  ASSERT_TRUE(again) << again.error().to_string();
  test::expect_same_graph(graph, *again);
  EXPECT_THAT(write_graph_json(graph), HasSubstr("\"scale\":0.1,"));
}

TEST(GraphJson, EveryBuiltInNetworkComesBackWithItsWeights) {
  const test::ScratchFolder folder;
  for (const std::string& name : builtin_names()) {
    SCOPED_TRACE(name);
    const auto graph = open_graph(name, {});
    ASSERT_TRUE(graph);
    const auto path = folder / (name + ".json");
    ASSERT_TRUE(save_graph(*graph, path, WithWeights::kYes));
    const auto again = open_graph(path, {});
    ASSERT_TRUE(again) << again.error().to_string();
    test::expect_same_graph(*graph, *again);
    std::filesystem::remove(weights_beside(path));
  }
}

TEST(GraphJson, ADarknetFileBecomesOne) {
  const auto cfg = test::shared_data("models/yolo-fastest-1.1-xl.cfg");
  STROBE_REQUIRE_DATA(cfg);
  const auto graph = open_graph(cfg, {.weights = test::shared_data("models/yolo-fastest-1.1-xl.weights")});
  ASSERT_TRUE(graph) << graph.error().to_string();
  const test::ScratchFolder folder;
  ASSERT_TRUE(save_graph(*graph, folder / "net.json", WithWeights::kYes));
  const auto again = open_graph(folder / "net.json", {});
  ASSERT_TRUE(again) << again.error().to_string();
  test::expect_same_graph(*graph, *again);
}

TEST(GraphJson, WithoutWeightsBesideItTheyAreSeeded) {
  const test::ScratchFolder folder;
  const Graph trained = *open_graph("person-tiny", {});
  const auto path = folder / "net.json";
  ASSERT_TRUE(save_graph(trained, path, WithWeights::kNo));
  const auto seeded = open_graph(path, {.seed = 5});
  ASSERT_TRUE(seeded) << seeded.error().to_string();
  EXPECT_FALSE(seeded->trained);
  EXPECT_TRUE(validate(*seeded));
  test::expect_same_graph(*seeded, *open_graph("person-tiny", {.seeded = true, .seed = 5}));
  // Weights of another network beside it are refused, as are those that would be taken without being meant.
  ASSERT_TRUE(save_graph(*open_graph("squeezenet1_1", {}), folder / "net.json", WithWeights::kYes));
  ASSERT_TRUE(write_file(path, write_graph_json(trained)));
  EXPECT_THAT(open_graph(path, {}).error().to_string(),
              EndsWith("net.safetensors: no tensor 'stem.conv.weight', which person-tiny needs"));
  EXPECT_TRUE(open_graph(path, {.seeded = true}));
  EXPECT_THAT(save_graph(trained, path, WithWeights::kNo).error().to_string(),
              HasSubstr("net.safetensors would be taken for the weights of net.json"));
}

TEST(GraphJson, OpensAtOtherSizesLikeTheBuiltInNetwork) {
  const test::ScratchFolder folder;
  for (const char* name : {"person-tiny", "resnet18"}) {
    ASSERT_TRUE(save_graph(*open_graph(name, {}), folder / "net.json", WithWeights::kYes));
    const OpenOptions wide{.width = 320, .height = 160};
    const auto graph = open_graph(folder / "net.json", wide);
    ASSERT_TRUE(graph) << graph.error().to_string();
    test::expect_same_graph(*graph, *open_graph(name, wide));
  }
  ASSERT_TRUE(write_file(folder / "vgg.json", write_graph_json(*make_vgg16({}))));
  EXPECT_THAT(open_graph(folder / "vgg.json", {.width = 448, .height = 224}).error().to_string(),
              EndsWith("vgg.json: layers[33] classifier.0: in_features is 25088, its input has 50176"));
}

std::string error_of(const json& root) {
  const auto graph = parse_graph_json(root.dump(1));
  return graph ? "no error" : graph.error().to_string();
}

TEST(GraphJson, SaysWhatIsWrongAndWhere) {
  const json good = json::parse(write_graph_json(one_of_each()));
  ASSERT_EQ(error_of(good), "no error");
  const auto changed = [&](const char* pointer, const json& value) {
    json root = good;
    root[json::json_pointer(pointer)] = value;
    return error_of(root);
  };
  EXPECT_EQ(parse_graph_json("{\n\"format\": \"strobe network\",\n x").error().to_string(), "line 3: no JSON text");
  EXPECT_EQ(parse_graph_json("").error().to_string(), "line 1: no JSON text");
  EXPECT_EQ(parse_graph_json("[1e999]").error().to_string(), "no JSON text: a number is too large");
  EXPECT_EQ(error_of(json::array()), "expected \"format\": \"strobe network\"");
  EXPECT_EQ(changed("/format", "onnx"), "expected \"format\": \"strobe network\"");
  EXPECT_EQ(changed("/version", 2), "version 2 of the form, this build reads version 1");
  EXPECT_EQ(changed("/nmae", 2), "\"nmae\" is not known; did you mean name?");
  EXPECT_EQ(changed("/name", ""), "name: expected a text of 1 to 256 bytes");
  EXPECT_EQ(changed("/input_rule/deviation/1", 0), "input_rule: deviation: expected numbers other than 0");
  EXPECT_EQ(changed("/input_rule/mean", json::array({1, 2})), "input_rule: mean: expected 3 numbers");
  EXPECT_EQ(changed("/outputs/0", "heat"), "outputs: no layer 'heat'");
  EXPECT_EQ(changed("/outputs", json::array()), "outputs: expected the name of at least one layer");
  EXPECT_EQ(changed("/layers/1/name", "picture"), "layers[1] picture: its name is taken");
  EXPECT_EQ(changed("/layers/1/type", "Convolutoin"),
            "layers[1] conv: type 'Convolutoin' is not known; did you mean Convolution?");
  EXPECT_EQ(changed("/layers/1/inputs/0", "norm"), "layers[1] conv: no layer 'norm' stands before it");
  EXPECT_EQ(changed("/layers/1/inputs", json::array()),
            "layers[1] conv: inputs: expected the name of at least one layer");
  EXPECT_EQ(changed("/layers/1/stride/0", 0), "layers[1] conv: the vertical stride is 0, expected 1 to 1024");
  EXPECT_EQ(changed("/layers/1/stride", 1), "layers[1] conv: stride: expected a list of 2 whole numbers");
  EXPECT_EQ(changed("/layers/1/groups", 4), "layers[1] conv: 4 groups do not divide 6 filters");
  EXPECT_EQ(changed("/layers/1/groups", 1.5), "layers[1] conv: groups: expected whole numbers");
  EXPECT_EQ(changed("/layers/1/groups", std::numeric_limits<uint64_t>::max()),
            "layers[1] conv: groups: expected whole numbers");
  EXPECT_EQ(changed("/layers/1/bias", 1), "layers[1] conv: bias: expected true or false");
  EXPECT_THAT(changed("/layers/1/output/0", 7), HasSubstr("layers[1] conv: says its output is 7x"));
  EXPECT_EQ(changed("/layers/2/epsilon", -1), "layers[2] norm: epsilon: expected a number of 0 to 1");
  EXPECT_EQ(changed("/layers/2/epsilon", nullptr), "layers[2] norm: epsilon: expected a number of 0 to 1");
  EXPECT_THAT(changed("/layers/3/kind", "rlu"), HasSubstr("layers[3] elu: kind 'rlu' is not known; did you mean relu"));
  EXPECT_EQ(changed("/layers/0/output/1", 1 << 20),
            "layers[0] picture: the input: the height is 1048576, expected 1 to 65536");
  EXPECT_EQ(changed("/layers/0/type", "Add"), "layers[0] picture: the first layer is the network's Input");
  json second = good;
  second["layers"].push_back({{"name", "x"}, {"type", "Input"}, {"inputs", json::array()}, {"output", {1, 1, 1}}});
  EXPECT_THAT(error_of(second), EndsWith(" x: only the first layer can be an Input"));
  json lacking = good;
  lacking["layers"][1].erase("dilation");
  EXPECT_EQ(error_of(lacking), "layers[1] conv: no \"dilation\"");
}

TEST(GraphJson, DamagedTextIsRefusedOrSound) {
  const std::string text = write_graph_json(one_of_each());
  std::mt19937 random(3);
  int read = 0;
  for (int i = 0; i < 3000; ++i) {
    std::string damaged = text;
    const size_t at = random() % damaged.size();
    switch (random() % 3) {
      case 0:
        damaged[at] = static_cast<char>(random());
        break;
      case 1:
        damaged.erase(at, 1 + random() % 20);
        break;
      default:
        damaged.insert(at, 1, "0123456789-[]{},\""[random() % 17]);
    }
    const auto graph = parse_graph_json(damaged);
    if (!graph) {
      EXPECT_EQ(graph.error().exit_code(), 2) << graph.error().to_string();
      continue;
    }
    ++read;
    const auto again = parse_graph_json(write_graph_json(*graph));
    ASSERT_TRUE(again) << again.error().to_string();
    test::expect_same_graph(*graph, *again);
  }
  EXPECT_GT(read, 0);
}

}  // namespace
}  // namespace strobe::models
