#include "models/prune.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <random>
#include <set>
#include <sstream>

#include "models/cost.h"
#include "models/graph_json.h"
#include "models/model.h"
#include "models/reference_executor.h"
#include "models/same_graph.h"
#include "models/zeroed.h"
#include "models/zoo.h"
#include "support/test_data.h"

namespace strobe::models {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr int kLevels[] = {0, 10, 20, 30, 40, 50, 60, 70, 80, 90, 95};
constexpr PruneMethod kMethods[] = {PruneMethod::kUniform, PruneMethod::kRandom, PruneMethod::kL1};

void fill(Graph& graph, uint32_t seed) {
  std::mt19937 random(seed);
  for (Layer& layer : graph.layers) {
    for (const WeightSlot& slot : weight_slots(layer.operation)) {
      Tensor tensor = **slot.tensor;
      const auto count = static_cast<size_t>(element_count(tensor));
      const float bound = slot.role == "weight" ? std::sqrt(3.0F * static_cast<float>(tensor.shape[0]) / count) : 0.5F;
      std::uniform_real_distribution<float> value(-bound, bound);
      tensor.values.resize(count);
      for (float& one : tensor.values) one = value(random) + (slot.role == "variance" || slot.role == "scale" ? 1 : 0);
      *slot.tensor = std::make_shared<const Tensor>(std::move(tensor));
    }
  }
}

Graph of_zoo(const std::string& name) {
  return *find_in_zoo(name)->make({});
}

// Channels of the named layers, e.g. of every convolution in order.
std::vector<int64_t> widths(const Graph& graph, bool linear_too = true) {
  std::vector<int64_t> result;
  for (const Layer& layer : graph.layers) {
    if (std::holds_alternative<Convolution>(layer.operation) ||
        (linear_too && std::holds_alternative<Linear>(layer.operation)))
      result.push_back(layer.output.channels);
  }
  return result;
}

std::vector<std::string> layer_names(const Graph& graph, const ChannelGroup& group) {
  std::vector<std::string> names;
  for (const LayerId id : group.layers) names.push_back(graph.layer(id).name);
  return names;
}

TEST(ChannelGroups, ResidualsShareTheirChannels) {
  const Graph graph = of_zoo("resnet18");
  const ChannelMap map = map_channels(graph);
  std::vector<std::vector<std::string>> shared;
  for (const ChannelGroup& group : map.groups)
    if (group.layers.size() > 1) shared.push_back(layer_names(graph, group));
  EXPECT_THAT(shared, ElementsAre(ElementsAre("conv1", "layer1.0.conv2", "layer1.1.conv2"),
                                  ElementsAre("layer2.0.conv2", "layer2.0.downsample.0", "layer2.1.conv2"),
                                  ElementsAre("layer3.0.conv2", "layer3.0.downsample.0", "layer3.1.conv2"),
                                  ElementsAre("layer4.0.conv2", "layer4.0.downsample.0", "layer4.1.conv2")));
  EXPECT_EQ(map.groups.size(), 4U + 8U);  // and the first convolution of each of the eight blocks
}

TEST(ChannelGroups, DepthwiseFiltersGoWithTheirInputs) {
  const Graph graph = of_zoo("mobilenet_v2");
  const ChannelMap map = map_channels(graph);
  const auto group_of = [&](const std::string& name) {
    for (const ChannelGroup& group : map.groups) {
      const auto names = layer_names(graph, group);
      if (std::find(names.begin(), names.end(), name) != names.end()) return names;
    }
    return std::vector<std::string>();
  };
  EXPECT_THAT(group_of("features.0.0"), ElementsAre("features.0.0", "features.1.conv.0.0"));
  EXPECT_THAT(group_of("features.1.conv.1"), ElementsAre("features.1.conv.1"));
  EXPECT_THAT(group_of("features.2.conv.0.0"), ElementsAre("features.2.conv.0.0", "features.2.conv.1.0"));
  EXPECT_THAT(group_of("features.2.conv.2"), ElementsAre("features.2.conv.2", "features.3.conv.2"));
  EXPECT_THAT(group_of("classifier.1"), ElementsAre());  // the output
}

TEST(ChannelGroups, HalvesOfASliceAreGroupsOfTheirOwn) {
  const Graph graph = of_zoo("yolov4-tiny");
  const ChannelMap map = map_channels(graph);
  std::vector<size_t> sizes;
  for (const ChannelGroup& group : map.groups) {
    EXPECT_EQ(group.layers.size(), 1U) << "nothing is added in this network";
    if (layer_names(graph, group)[0] == "002_convolutional") sizes.push_back(group.channels.size());
  }
  EXPECT_THAT(sizes, ElementsAre(32, 32));
  const Graph pruned = *Pruner::create(graph, {})->at(50);
  for (const Layer& layer : pruned.layers) {
    if (layer.name == "002_convolutional") {
      EXPECT_EQ(layer.output.channels, 32);
    }
    if (layer.name == "003_route") {
      EXPECT_EQ(std::get<Slice>(layer.operation).begin, 16);
      EXPECT_EQ(std::get<Slice>(layer.operation).end, 32);
    }
  }
  EXPECT_EQ(pruned.layer(pruned.outputs[0]).output.channels, 255);
}

// In the networks whose training was published, layers whose channels are equal at all thirteen or more levels are
// those that their pruner tied together.
TEST(ChannelGroups, AreThoseOfThePublishedPrunedNetworks) {
  const auto file = test::shared_data("tx2/layers.csv");
  STROBE_REQUIRE_DATA(file);
  std::map<std::string, std::map<int, std::vector<int64_t>>> published;  // network, level: channels of convolutions
  std::ifstream stream(file);
  for (std::string line; std::getline(stream, line);) {
    std::istringstream cells(line);
    std::vector<std::string> row;
    for (std::string cell; std::getline(cells, cell, ',');) row.push_back(cell);
    if (row[3] == "conv") published[row[0]][std::stoi(row[1])].push_back(std::stoll(row[5]));
  }
  for (const std::string name : {"resnet18", "resnet50"}) {
    SCOPED_TRACE(name);
    const auto& levels = published.at(name);
    ASSERT_GE(levels.size(), 13U);
    const Graph graph = of_zoo(name);
    ASSERT_EQ(widths(graph, false), levels.at(0));
    std::map<LayerId, size_t> group_of;
    const ChannelMap map = map_channels(graph);
    for (size_t g = 0; g < map.groups.size(); ++g)
      for (const LayerId id : map.groups[g].layers) group_of[id] = g;
    std::vector<LayerId> convolutions;
    for (size_t i = 0; i < graph.layers.size(); ++i)
      if (std::holds_alternative<Convolution>(graph.layers[i].operation))
        convolutions.push_back(static_cast<LayerId>(i));
    for (size_t a = 0; a < convolutions.size(); ++a) {
      for (size_t b = 0; b < a; ++b) {
        const bool equal = std::all_of(levels.begin(), levels.end(),
                                       [&](const auto& level) { return level.second[a] == level.second[b]; });
        EXPECT_EQ(group_of.at(convolutions[a]) == group_of.at(convolutions[b]), equal)
            << graph.layer(convolutions[a]).name << " and " << graph.layer(convolutions[b]).name;
      }
    }
  }
}

TEST(Prune, CountsOfResnet18) {
  const Graph graph = of_zoo("resnet18");
  const auto pruner = Pruner::create(graph, {});
  ASSERT_TRUE(pruner);
  EXPECT_EQ(pruner->prunable_filters(), 4800);  // all of its convolutions
  test::expect_same_graph(*pruner->at(0), [&] {
    Graph same = graph;
    same.name = "resnet18_0";
    return same;
  }());
  // Of 64 channels 64 * 0.1 = 6.4 stay at level 90, of 128 12.8, of 256 25.6, of 512 51.2.
  EXPECT_THAT(widths(*pruner->at(90)),
              ElementsAre(6, 6, 6, 6, 6, 13, 13, 13, 13, 13, 26, 26, 26, 26, 26, 51, 51, 51, 51, 51, 1000));
  EXPECT_EQ(pruner->at(90)->name, "resnet18_90");
  EXPECT_THAT(pruner->at(96).error().to_string(), "level 96: expected 0 to 95 percent");
}

// The smallest thing with a linear layer behind a map: which numbers are left is seen by eye.
TEST(Prune, TakesTheFiltersWithTheLeastMagnitudes) {
  GraphBuilder builder("by_hand");
  LayerId x = *builder.input({1, 1, 2});
  const auto tensor = [](std::vector<int64_t> shape, std::vector<float> values) {
    return std::make_shared<const Tensor>(Tensor{std::move(shape), std::move(values)});
  };
  Convolution conv{
      .out_channels = 4, .weight = tensor({4, 1, 1, 1}, {3, -1, 2, -4}), .bias = tensor({4}, {10, 20, 30, 40})};
  x = *builder.append("conv", conv, {x});
  const auto four = [&](float first) { return tensor({4}, {first, first + 1, first + 2, first + 3}); };
  x = *builder.append("norm", BatchNorm{1e-5F, four(100), four(200), four(300), four(400)}, {x});
  x = *builder.append("flatten", Flatten{}, {x});
  Linear linear{2, tensor({2, 8}, {0, 1, 2, 3, 4, 5, 6, 7, 10, 11, 12, 13, 14, 15, 16, 17}), nullptr};
  *builder.append("linear", linear, {x});
  const Graph graph = *std::move(builder).finish();
  ASSERT_TRUE(validate(graph));
  const Graph pruned = *Pruner::create(graph, {.method = PruneMethod::kL1})->at(50);
  ASSERT_TRUE(validate(pruned));
  const auto& left = std::get<Convolution>(pruned.layers[1].operation);
  EXPECT_THAT(left.weight->values, ElementsAre(3, -4));
  EXPECT_THAT(left.bias->values, ElementsAre(10, 40));
  const auto& norm = std::get<BatchNorm>(pruned.layers[2].operation);
  EXPECT_THAT(norm.scale->values, ElementsAre(100, 103));
  EXPECT_THAT(norm.variance->values, ElementsAre(400, 403));
  EXPECT_THAT(std::get<Linear>(pruned.layers[4].operation).weight->values, ElementsAre(0, 1, 6, 7, 10, 11, 16, 17));
  // Half of the parameters that are left at best: 8 + 8 of the norm, 16 of the linear layer.
  const auto by_parameters = Pruner::create(graph, {.method = PruneMethod::kL1, .share = PruneShare::kParameters});
  EXPECT_EQ(by_parameters->at(50)->layers[1].output.channels, 2);
  EXPECT_EQ(by_parameters->at(25)->layers[1].output.channels, 3);
}

TEST(Prune, ANetworkWithoutSuchChannelsIsRefused) {
  GraphBuilder builder("single");
  const LayerId x = *builder.input({3, 4, 4});
  ASSERT_TRUE(builder.append("conv", Convolution{.out_channels = 8}, {x}));
  const Graph graph = *std::move(builder).finish();
  EXPECT_EQ(Pruner::create(graph, {}).error().to_string(),
            "single has no channels that could be removed: all belong to its input or outputs");
}

// Structure alone, so that it is quick; the .json checks every shape again.
TEST(Prune, EveryBuiltInNetworkKeepsItsShapesAtEveryLevel) {
  for (const ZooEntry& entry : zoo()) {
    Graph graph = *entry.make({});
    const bool is_large = entry.name == "vgg16";  // its weights alone would take the test's time
    if (!is_large) fill(graph, 3);
    for (const PruneMethod method : kMethods) {
      if (is_large && method == PruneMethod::kL1) continue;
      SCOPED_TRACE(std::string(entry.name) + " " + std::to_string(static_cast<int>(method)));
      const auto pruner = Pruner::create(graph, {.method = method, .seed = 4});
      ASSERT_TRUE(pruner) << pruner.error().to_string();
      int64_t before = std::numeric_limits<int64_t>::max();
      for (const int level : kLevels) {
        SCOPED_TRACE(level);
        const auto pruned = pruner->at(level);
        ASSERT_TRUE(pruned) << pruned.error().to_string();
        const auto checked = parse_graph_json(write_graph_json(*pruned));
        ASSERT_TRUE(checked) << checked.error().to_string();
        if (!is_large) {
          EXPECT_TRUE(validate(*pruned));
        }
        EXPECT_EQ(pruned->input_shape(), graph.input_shape());
        ASSERT_EQ(pruned->layers.size(), graph.layers.size());
        for (const LayerId output : graph.outputs) EXPECT_EQ(pruned->layer(output).output, graph.layer(output).output);
        int64_t left = 0, all = 0;
        for (size_t i = 0; i < graph.layers.size(); ++i) {
          const Shape &now = pruned->layers[i].output, &was = graph.layers[i].output;
          EXPECT_EQ(now.width, was.width);
          EXPECT_EQ(now.height, was.height);
          EXPECT_GE(now.channels, 1);
          EXPECT_LE(now.channels, was.channels);
          left += now.channels;
          all += was.channels;
        }
        const int64_t parameters = graph_cost(*pruned).parameters;
        EXPECT_EQ(left == all, level == 0);
        EXPECT_LT(parameters, before);
        before = parameters;
      }
    }
  }
}

// Methods that remove the same share of each group leave what rounding leaves; the random one meets the mean.
TEST(Prune, LevelsAreSharesOfTheChannels) {
  for (const ZooEntry& entry : zoo()) {
    SCOPED_TRACE(entry.name);
    const Graph graph = *entry.make({});
    for (const int level : {10, 50, 90}) {
      const auto uniform = Pruner::create(graph, {});
      const Graph pruned = *uniform->at(level);
      for (const ChannelGroup& group : uniform->channels().groups) {
        int64_t in_group = 0;
        for (const CoupledChannel& channel : group.channels) in_group += static_cast<int64_t>(channel.filters.size());
        // A layer of one group only.
        const Layer& was = graph.layer(group.layers[0]);
        if (in_group != was.output.channels * static_cast<int64_t>(group.layers.size())) continue;
        EXPECT_NEAR(static_cast<double>(pruned.layer(group.layers[0]).output.channels),
                    std::max(1.0, static_cast<double>(was.output.channels) * (100 - level) / 100), 0.51)
            << was.name;
      }
      const auto random = Pruner::create(graph, {.method = PruneMethod::kRandom});
      const Graph drawn = *random->at(level);
      std::set<LayerId> layers;
      for (const ChannelGroup& group : random->channels().groups)
        layers.insert(group.layers.begin(), group.layers.end());
      int64_t gone = 0;
      for (const LayerId id : layers) gone += graph.layer(id).output.channels - drawn.layer(id).output.channels;
      EXPECT_NEAR(static_cast<double>(gone) / static_cast<double>(random->prunable_filters()), level / 100.0, 0.004)
          << "at " << level;
    }
  }
}

TEST(Prune, LevelsCanBeSharesOfTheParameters) {
  for (const char* name : {"resnet18", "mobilenet_v2", "squeezenet1_1", "googlenet", "yolov4-tiny"}) {
    const Graph graph = of_zoo(name);
    for (const PruneMethod method : {PruneMethod::kUniform, PruneMethod::kRandom}) {
      const auto pruner = Pruner::create(graph, {.method = method, .share = PruneShare::kParameters});
      for (const int level : {10, 30, 50, 70}) {
        const double left = static_cast<double>(graph_cost(*pruner->at(level)).parameters) /
                            static_cast<double>(graph_cost(graph).parameters);
        EXPECT_NEAR(left, 1 - level / 100.0, 0.01) << name << " at " << level;
      }
    }
  }
}

TEST(Prune, TheSeedDecidesWhatIsDrawn) {
  const Graph graph = of_zoo("resnet18");
  const auto at = [&](PruneMethod method, uint64_t seed) {
    return widths(*Pruner::create(graph, {.method = method, .seed = seed})->at(40));
  };
  EXPECT_EQ(at(PruneMethod::kRandom, 1), at(PruneMethod::kRandom, 1));
  EXPECT_NE(at(PruneMethod::kRandom, 1), at(PruneMethod::kRandom, 2));
  EXPECT_EQ(at(PruneMethod::kUniform, 1), at(PruneMethod::kUniform, 2));
}

// Random networks of everything that passes channels on, cuts, joins or ties them.
class RandomNetwork {
 public:
  explicit RandomNetwork(uint32_t seed) : random_(seed), builder_("random") {
    maps_.push_back(*builder_.input({1 + below(4), 4, 6}));
    append(Convolution{.out_channels = 4 + 2 * below(6), .kernel_h = 3, .kernel_w = 3, .pad_h = 1, .pad_w = 1});
    const int64_t steps = 6 + below(14);
    for (int64_t i = 0; i < steps; ++i) step();
    if (below(2) == 0) builder_.add_output(any());
    if (below(2) == 0) append(GlobalAveragePool{});
    append(Flatten{});
    append(Linear{3 + below(6), nullptr, below(2) == 0 ? nullptr : declared_tensor({0})});
    append(Activation{ActivationKind::kRelu});
    append(Linear{2 + below(3), nullptr, nullptr});
    append(Softmax{});
    builder_.add_output(builder_.last());
  }
  Graph finish(uint32_t seed) && {
    Graph graph = *std::move(builder_).finish();
    fill(graph, seed);
    return graph;
  }

 private:
  int64_t below(int64_t count) { return static_cast<int64_t>(random_() % static_cast<uint64_t>(count)); }
  LayerId any() { return maps_[static_cast<size_t>(below(static_cast<int64_t>(maps_.size())))]; }

  void append(Operation operation, std::vector<LayerId> inputs = {}) {
    if (inputs.empty()) inputs = {maps_.back()};
    if (auto* linear = std::get_if<Linear>(&operation); linear && linear->bias)
      linear->bias = declared_tensor({linear->out_features});
    auto id = builder_.append(std::to_string(builder_.last() + 1), std::move(operation), std::move(inputs));
    if (!id) throw std::logic_error(id.error().to_string());
    maps_.push_back(*id);
  }

  void convolution(LayerId x) {
    const int64_t in = builder_.shape(x).channels;
    std::vector<int64_t> divisors;
    for (int64_t groups = 1; groups <= in; ++groups)
      if (in % groups == 0) divisors.push_back(groups);
    const int64_t groups = divisors[static_cast<size_t>(below(static_cast<int64_t>(divisors.size())))];
    Convolution conv{.out_channels = groups * (1 + below(std::max<int64_t>(1, 12 / groups))),
                     .kernel_h = 3,
                     .kernel_w = 1,
                     .pad_h = 1,
                     .groups = groups};
    if (below(2) == 0) conv.bias = declared_tensor({conv.out_channels});
    append(conv, {x});
  }

  void add(LayerId x) {
    std::vector<LayerId> equal;
    for (const LayerId id : maps_)
      if (builder_.shape(id) == builder_.shape(x)) equal.push_back(id);
    std::vector<LayerId> inputs = {x};
    for (int64_t i = 0; i <= below(2); ++i)
      inputs.push_back(equal[static_cast<size_t>(below(static_cast<int64_t>(equal.size())))]);
    append(Add{}, inputs);
  }

  void step() {
    const LayerId x = any();
    const int64_t channels = builder_.shape(x).channels;
    switch (below(10)) {
      case 0:
        return append(BatchNorm{}, {x});
      case 1:
        return append(Activation{below(2) == 0 ? ActivationKind::kRelu : ActivationKind::kLeaky, 0.2F}, {x});
      case 2:
        return add(x);
      case 3:
        if (channels > 40) return;
        return append(Concat{}, {x, any()});
      case 4: {
        const int64_t begin = below(channels);
        return append(Slice{begin, begin + 1 + below(channels - begin)}, {x});
      }
      case 5: {
        append(Upsample{2}, {x});
        append(Pool{.kernel_h = 2, .kernel_w = 2, .stride_h = 2, .stride_w = 2});
        maps_.erase(maps_.end() - 2);  // all others have one size
        return;
      }
      case 6: {
        Pool pool{.kernel_h = 3, .kernel_w = 3, .pad_top = 1, .pad_left = 1, .pad_bottom = 1, .pad_right = 1};
        pool.kind = below(2) == 0 ? Pool::Kind::kAverage : Pool::Kind::kMax;
        return append(pool, {x});
      }
      case 7:
        return append(
            TransposedConvolution{
                .out_channels = 2 + below(6), .kernel_h = 3, .kernel_w = 3, .pad_h = 1, .pad_w = 1, .bias = nullptr},
            {x});
      default:
        return convolution(x);
    }
  }

  std::mt19937 random_;
  GraphBuilder builder_;
  std::vector<LayerId> maps_;
};

double difference(const std::vector<float>& a, const std::vector<float>& b) {
  if (a.size() != b.size()) return INFINITY;
  double largest = 0;
  for (size_t i = 0; i < a.size(); ++i)
    largest = std::max(largest, std::abs(double{a[i]} - b[i]) / (1 + std::abs(double{a[i]})));
  return largest;
}

TEST(Prune, RandomNetworksComputeTheSameWithoutTheirZeroChannels) {
  int with_groups = 0, with_grouped = 0, with_shared = 0;
  for (uint32_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    const Graph graph = RandomNetwork(seed).finish(seed);
    ASSERT_TRUE(validate(graph));
    const ChannelMap map = map_channels(graph);
    if (map.groups.empty()) continue;
    ++with_groups;
    std::mt19937 random(seed);
    std::vector<bool> removed(static_cast<size_t>(map.count), false);
    for (const ChannelGroup& group : map.groups) {
      with_shared += group.layers.size() > 1;
      with_grouped += group.channels[0].filters.size() > group.layers.size();
      const size_t stays = random() % group.channels.size();
      for (size_t i = 0; i < group.channels.size(); ++i)
        removed[static_cast<size_t>(group.channels[i].number)] = i != stays && random() % 2 == 0;
    }
    const Graph zero = test::zeroed(graph, map, removed);
    const auto pruned = remove_channels(graph, map, removed);
    ASSERT_TRUE(pruned) << pruned.error().to_string() << write_graph_json(graph);
    ASSERT_TRUE(validate(*pruned));
    std::vector<float> input(static_cast<size_t>(graph.input_shape().elements()));
    for (float& value : input) value = static_cast<float>(random() % 2001) / 1000 - 1;
    const auto whole = test::run_reference(zero, input), rest = test::run_reference(*pruned, input);
    for (size_t i = 0; i < graph.outputs.size(); ++i) {
      const auto at = static_cast<size_t>(graph.outputs[i]);
      EXPECT_LE(difference(whole[at], rest[at]), 1e-5) << write_graph_json(graph);
    }
    for (const PruneMethod method : kMethods) {
      const auto pruner = Pruner::create(graph, {.method = method, .seed = seed});
      ASSERT_TRUE(pruner);
      for (const int level : {30, 95}) {
        const auto smaller = pruner->at(level);
        ASSERT_TRUE(smaller) << smaller.error().to_string() << write_graph_json(graph);
        EXPECT_TRUE(validate(*smaller));
      }
    }
  }
  EXPECT_GT(with_groups, 250);
  EXPECT_GT(with_grouped, 20);
  EXPECT_GT(with_shared, 50);
}

TEST(Levels, AreReadInEveryForm) {
  EXPECT_THAT(*parse_levels("0,10,...,90"), ElementsAre(0, 10, 20, 30, 40, 50, 60, 70, 80, 90));
  EXPECT_THAT(*parse_levels("5, 20 , ..., 50, 95"), ElementsAre(5, 20, 35, 50, 95));
  EXPECT_THAT(*parse_levels("0:90:30"), ElementsAre(0, 30, 60, 90));
  EXPECT_THAT(*parse_levels("50"), ElementsAre(50));
  EXPECT_THAT(*parse_levels("0,10:30:10,45"), ElementsAre(0, 10, 20, 30, 45));
  const auto error = [](const char* text) { return parse_levels(text).error().to_string(); };
  EXPECT_EQ(error("0,ten"),
            "levels '0,ten': 'ten' is no whole number; expected percent such as 0,10,...,90 or 0:90:10");
  EXPECT_THAT(error(""), HasSubstr("'' is no whole number"));
  EXPECT_THAT(error("96"), HasSubstr("96 is not of 0 to 95"));
  EXPECT_THAT(error("-5"), HasSubstr("-5 is not of 0 to 95"));
  EXPECT_THAT(error("0,...,90"), HasSubstr("... stands between two levels and a last one"));
  EXPECT_THAT(error("0,10,..."), HasSubstr("... stands between two levels and a last one"));
  EXPECT_THAT(error("0,10,...,95"), HasSubstr("steps of 10 do not lead from 10 to 95"));
  EXPECT_THAT(error("10,10"), HasSubstr("each level has to be above the one before it"));
  EXPECT_THAT(error("0:90"), HasSubstr("a range is first:last:step"));
  EXPECT_THAT(error("0:90:0"), HasSubstr("steps of 0 do not lead from 0 to 90"));
}

}  // namespace
}  // namespace strobe::models
