#include "models/lidar_networks.h"

#include <fmt/format.h>

#include <map>

#include "base/file.h"
#include "models/monocular3d.h"
#include "models/seed.h"

namespace strobe::models {
namespace {

constexpr float kEpsilon = 1e-3F;  // of batch norms, as in SECOND

LayerId normed(ModuleBuilder& build, const std::string& name, LayerId x, Operation operation) {
  x = build.append(name, std::move(operation), {x});
  x = build.batch_norm(name + ".bn", x, kEpsilon);
  return build.relu(name + ".relu", x);
}

Convolution convolution(int64_t channels, int64_t kernel, int64_t stride) {
  Convolution c;
  c.out_channels = channels;
  c.kernel_h = c.kernel_w = kernel;
  c.stride_h = c.stride_w = stride;
  c.pad_h = c.pad_w = kernel % 2 == 1 ? kernel / 2 : 0;
  return c;
}

LayerId brought_up(ModuleBuilder& build, const std::string& name, LayerId x, const BevBlock& block) {
  if (block.up == 0) return normed(build, name, x, convolution(block.up_channels, 2, 2));
  TransposedConvolution up;
  up.out_channels = block.up_channels;
  up.kernel_h = up.kernel_w = up.stride_h = up.stride_w = block.up;
  return normed(build, name, x, up);
}

// A head's last convolution, and the channels that say whether there is an object.
struct Rare {
  std::string_view layer_suffix;
  int64_t first_channel;
};
constexpr Rare kRare[] = {
    {"head.classes", 0}, {"centres", kCentreRegression}, {"head.monocular", kMonocularRegression}};

// Small weights, so that no box of a seeded network is larger than its anchor by much, and few boxes.
void make_rare(Graph& graph) {
  constexpr float kRareObject = -4.6F;  // logit of 0.01
  for (Layer& layer : graph.layers) {
    auto* conv = std::get_if<Convolution>(&layer.operation);
    if (conv == nullptr || conv->bias == nullptr || !layer.name.starts_with("head.")) continue;
    Tensor weight = *conv->weight;
    for (float& value : weight.values) value *= 0.1F;
    conv->weight = std::make_shared<const Tensor>(std::move(weight));
    for (const Rare& rare : kRare) {
      if (!layer.name.ends_with(rare.layer_suffix)) continue;
      Tensor bias = *conv->bias;
      for (size_t i = static_cast<size_t>(rare.first_channel); i < bias.values.size(); ++i)
        bias.values[i] = kRareObject;
      conv->bias = std::make_shared<const Tensor>(std::move(bias));
    }
  }
}

}  // namespace

Result<Graph> make_pillar_net(const std::string& name, const PillarRule& rule, int64_t channels) {
  ModuleBuilder build(name + ".pillars");
  LayerId x = build.input({kPillarFeatures, rule.max_points, rule.max_pillars});
  x = normed(build, "pillar_net.linear", x, convolution(channels, 1, 1));
  Pool pool;
  pool.kernel_h = pool.stride_h = rule.max_points;
  build.append("pillar_net.max", pool, {x});
  return std::move(build).finish();
}

LayerId add_bev_network(ModuleBuilder& build, LayerId x, const std::vector<BevBlock>& blocks) {
  std::vector<LayerId> joined;
  for (size_t b = 0; b < blocks.size(); ++b) {
    for (int64_t i = 0; i <= blocks[b].convolutions; ++i)
      x = normed(build, fmt::format("backbone.block{}.{}", b + 1, i), x,
                 convolution(blocks[b].channels, 3, i == 0 ? blocks[b].stride : 1));
    joined.push_back(brought_up(build, fmt::format("neck.up{}", b + 1), x, blocks[b]));
  }
  return build.append("neck.concat", Concat{}, joined);
}

void add_anchor_head(ModuleBuilder& build, LayerId x, int64_t anchors, int64_t classes, int64_t code) {
  build.add_output(build.convolution("head.classes", x, {.channels = anchors * classes, .bias = true}));
  build.add_output(build.convolution("head.codes", x, {.channels = anchors * code, .bias = true}));
  build.add_output(build.convolution("head.directions", x, {.channels = anchors * 2, .bias = true}));
}

void add_centre_head(ModuleBuilder& build, LayerId x, int64_t channels, const std::vector<CentreTask>& tasks) {
  x = normed(build, "head.shared", x, convolution(channels, 3, 1));
  for (size_t task = 0; task < tasks.size(); ++task) {
    const std::string name = fmt::format("head.task{}", task);
    const LayerId hidden = normed(build, name + ".hidden", x, convolution(channels, 3, 1));
    const int64_t maps = kCentreRegression + static_cast<int64_t>(tasks[task].classes.size());
    build.add_output(
        build.convolution(name + ".centres", hidden, {.channels = maps, .kernel = 3, .pad = 1, .bias = true}));
  }
}

Result<void> fill_parts(std::vector<Graph>& parts, const std::filesystem::path& weights, uint64_t seed) {
  if (weights.empty()) {
    for (Graph& part : parts) {
      STROBE_TRY(seed_weights(part, seed++));
      make_rare(part);
    }
    return {};
  }
  const auto load = [&]() -> Result<void> {
    STROBE_ASSIGN(const std::string bytes, read_file(weights));
    STROBE_ASSIGN(Safetensors content, read_safetensors(bytes));
    std::map<std::string_view, size_t> part_of;
    for (size_t i = 0; i < parts.size(); ++i)
      for (const Layer& layer : parts[i].layers) part_of.emplace(layer.name, i);
    std::vector<Safetensors> own(parts.size());
    for (auto& [name, tensor] : content.tensors) {
      // What belongs to no layer goes to the last part, which refuses it by name.
      const auto found = part_of.find(std::string_view(name).substr(0, name.rfind('.')));
      own[found == part_of.end() ? parts.size() - 1 : found->second].tensors.emplace(name, std::move(tensor));
    }
    for (size_t i = 0; i < parts.size(); ++i) STROBE_TRY(set_weights(parts[i], std::move(own[i])));
    return {};
  };
  auto loaded = load();
  if (!loaded) {
    // A missing file names itself.
    if (loaded.error().kind() == ErrorKind::kBadData) return std::move(loaded).error().at(weights.string());
    return loaded;
  }
  return {};
}

Safetensors weights_of_parts(const std::vector<std::shared_ptr<const Graph>>& parts) {
  Safetensors all;
  for (const auto& part : parts) all.tensors.merge(weights_of(*part).tensors);
  return all;
}

}  // namespace strobe::models
