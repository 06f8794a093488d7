// SqueezeNet 1.1 (Iandola et al. 2016, arXiv:1602.07360).
#include <fmt/format.h>

#include "models/module_builder.h"
#include "models/zoo.h"

namespace strobe::models {
namespace {

LayerId fire(ModuleBuilder& build, int feature, LayerId x, int64_t squeezed, int64_t expanded) {
  const std::string name = fmt::format("features.{}.", feature);
  x = build.convolution(name + "squeeze", x, {.channels = squeezed, .bias = true});
  x = build.relu(name + "squeeze_activation", x);
  LayerId point = build.convolution(name + "expand1x1", x, {.channels = expanded, .bias = true});
  point = build.relu(name + "expand1x1_activation", point);
  LayerId square =
      build.convolution(name + "expand3x3", x, {.channels = expanded, .kernel = 3, .pad = 1, .bias = true});
  square = build.relu(name + "expand3x3_activation", square);
  return build.append(name + "concat", Concat{}, {point, square});
}

}  // namespace

Result<Graph> make_squeezenet1_1(const ZooOptions& options) {
  ModuleBuilder build("squeezenet1_1");
  LayerId x = build.picture(options, 224);
  x = build.convolution("features.0", x, {.channels = 64, .kernel = 3, .stride = 2, .bias = true});
  x = build.relu("features.1", x);
  x = build.max_pool("features.2", x, 3, 2, 0, true);
  x = fire(build, 3, x, 16, 64);
  x = fire(build, 4, x, 16, 64);
  x = build.max_pool("features.5", x, 3, 2, 0, true);
  x = fire(build, 6, x, 32, 128);
  x = fire(build, 7, x, 32, 128);
  x = build.max_pool("features.8", x, 3, 2, 0, true);
  x = fire(build, 9, x, 48, 192);
  x = fire(build, 10, x, 48, 192);
  x = fire(build, 11, x, 64, 256);
  x = fire(build, 12, x, 64, 256);
  x = build.dropout("classifier.0", x, 0.5F);
  x = build.convolution("classifier.1", x, {.channels = options.classes ? options.classes : 1000, .bias = true});
  x = build.relu("classifier.2", x);
  build.average_to_vector("classifier.3", x);
  return std::move(build).finish();
}

}  // namespace strobe::models
