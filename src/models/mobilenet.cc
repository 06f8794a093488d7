// Networks of inverted residuals: MobileNetV2 (Sandler et al. 2018, arXiv:1801.04381) and MnasNet-B1 1.0 (Tan et al.
// 2018, arXiv:1807.11626).
#include <fmt/format.h>

#include "models/module_builder.h"
#include "models/zoo.h"

namespace strobe::models {
namespace {

struct Stage {
  int64_t expansion, channels;
  int blocks;
  int64_t stride, kernel;
};

LayerId mobilenet_block(ModuleBuilder& build, const std::string& name, LayerId x, const Stage& stage, int64_t stride) {
  if (build.failed()) return x;
  const int64_t in = build.shape(x).channels, hidden = in * stage.expansion;
  LayerId y = x;
  int module = 0;  // a convolution, batch norm and activation are one module of the block's sequence
  const auto activated = [&](const ModuleBuilder::ConvolutionOf& of) {
    const std::string part = fmt::format("{}.conv.{}", name, module++);
    y = build.convolution(part + ".0", y, of);
    y = build.relu6(part + ".2", build.batch_norm(part + ".1", y));
  };
  if (stage.expansion != 1) activated({.channels = hidden});
  activated({.channels = hidden, .kernel = stage.kernel, .stride = stride, .pad = stage.kernel / 2, .groups = hidden});
  y = build.convolution(fmt::format("{}.conv.{}", name, module), y, {.channels = stage.channels});
  y = build.batch_norm(fmt::format("{}.conv.{}", name, module + 1), y);
  return stride == 1 && in == stage.channels ? build.append(name + ".add", Add{}, {x, y}) : y;
}

LayerId mnasnet_block(ModuleBuilder& build, const std::string& name, LayerId x, const Stage& stage, int64_t stride) {
  if (build.failed()) return x;
  const int64_t in = build.shape(x).channels, hidden = in * stage.expansion;
  const std::string part = name + ".layers.";
  LayerId y = build.convolution(part + "0", x, {.channels = hidden});
  y = build.relu(part + "2", build.batch_norm(part + "1", y));
  y = build.convolution(
      part + "3", y,
      {.channels = hidden, .kernel = stage.kernel, .stride = stride, .pad = stage.kernel / 2, .groups = hidden});
  y = build.relu(part + "5", build.batch_norm(part + "4", y));
  y = build.batch_norm(part + "7", build.convolution(part + "6", y, {.channels = stage.channels}));
  return stride == 1 && in == stage.channels ? build.append(name + ".add", Add{}, {y, x}) : y;
}

LayerId classifier(ModuleBuilder& build, LayerId x, const ZooOptions& options) {
  x = build.average_to_vector("avgpool", x);
  x = build.dropout("classifier.0", x, 0.2F);
  return build.linear("classifier.1", x, options.classes ? options.classes : 1000);
}

}  // namespace

Result<Graph> make_mobilenet_v2(const ZooOptions& options) {
  constexpr Stage kStages[] = {{1, 16, 1, 1, 3}, {6, 24, 2, 2, 3},  {6, 32, 3, 2, 3}, {6, 64, 4, 2, 3},
                               {6, 96, 3, 1, 3}, {6, 160, 3, 2, 3}, {6, 320, 1, 1, 3}};
  ModuleBuilder build("mobilenet_v2");
  LayerId x = build.picture(options, 224);
  int feature = 0;
  const auto activated = [&](const ModuleBuilder::ConvolutionOf& of) {
    const std::string name = fmt::format("features.{}", feature++);
    x = build.convolution(name + ".0", x, of);
    x = build.relu6(name + ".2", build.batch_norm(name + ".1", x));
  };
  activated({.channels = 32, .kernel = 3, .stride = 2, .pad = 1});
  for (const Stage& stage : kStages)
    for (int block = 0; block < stage.blocks; ++block)
      x = mobilenet_block(build, fmt::format("features.{}", feature++), x, stage, block == 0 ? stage.stride : 1);
  activated({.channels = 1280});
  classifier(build, x, options);
  return std::move(build).finish();
}

Result<Graph> make_mnasnet1_0(const ZooOptions& options) {
  constexpr Stage kStages[] = {{3, 24, 3, 2, 3}, {3, 40, 3, 2, 5},  {6, 80, 3, 2, 5},
                               {6, 96, 2, 1, 3}, {6, 192, 4, 2, 5}, {6, 320, 1, 1, 3}};
  ModuleBuilder build("mnasnet1_0");
  LayerId x = build.picture(options, 224);
  x = build.convolution("layers.0", x, {.channels = 32, .kernel = 3, .stride = 2, .pad = 1});
  x = build.relu("layers.2", build.batch_norm("layers.1", x));
  x = build.convolution("layers.3", x, {.channels = 32, .kernel = 3, .pad = 1, .groups = 32});
  x = build.relu("layers.5", build.batch_norm("layers.4", x));
  x = build.batch_norm("layers.7", build.convolution("layers.6", x, {.channels = 16}));
  int layer = 8;
  for (const Stage& stage : kStages) {
    for (int block = 0; block < stage.blocks; ++block)
      x = mnasnet_block(build, fmt::format("layers.{}.{}", layer, block), x, stage, block == 0 ? stage.stride : 1);
    ++layer;
  }
  x = build.convolution("layers.14", x, {.channels = 1280});
  x = build.relu("layers.16", build.batch_norm("layers.15", x));
  classifier(build, x, options);
  return std::move(build).finish();
}

}  // namespace strobe::models
