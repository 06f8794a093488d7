// GoogLeNet (Szegedy et al. 2014, arXiv:1409.4842) with batch norms and without its auxiliary classifiers, as
// torchvision: the third branch of a block has a 3x3 kernel there, not the paper's 5x5.
#include "models/module_builder.h"
#include "models/zoo.h"

namespace strobe::models {
namespace {

struct Inception {
  const char* name;
  int64_t branch1, reduce2, branch2, reduce3, branch3, branch4;
};

constexpr float kEpsilon = 0.001F;

LayerId convolution(ModuleBuilder& build, const std::string& name, LayerId x, const ModuleBuilder::ConvolutionOf& of) {
  x = build.convolution(name + ".conv", x, of);
  return build.relu(name + ".relu", build.batch_norm(name + ".bn", x, kEpsilon));
}

LayerId inception(ModuleBuilder& build, LayerId x, const Inception& block) {
  const std::string name = block.name;
  const LayerId first = convolution(build, name + ".branch1", x, {.channels = block.branch1});
  LayerId second = convolution(build, name + ".branch2.0", x, {.channels = block.reduce2});
  second = convolution(build, name + ".branch2.1", second, {.channels = block.branch2, .kernel = 3, .pad = 1});
  LayerId third = convolution(build, name + ".branch3.0", x, {.channels = block.reduce3});
  third = convolution(build, name + ".branch3.1", third, {.channels = block.branch3, .kernel = 3, .pad = 1});
  LayerId fourth = build.max_pool(name + ".branch4.0", x, 3, 1, 1, true);
  fourth = convolution(build, name + ".branch4.1", fourth, {.channels = block.branch4});
  return build.append(name + ".concat", Concat{}, {first, second, third, fourth});
}

}  // namespace

Result<Graph> make_googlenet(const ZooOptions& options) {
  ModuleBuilder build("googlenet");
  LayerId x = build.picture(options, 224);
  x = convolution(build, "conv1", x, {.channels = 64, .kernel = 7, .stride = 2, .pad = 3});
  x = build.max_pool("maxpool1", x, 3, 2, 0, true);
  x = convolution(build, "conv2", x, {.channels = 64});
  x = convolution(build, "conv3", x, {.channels = 192, .kernel = 3, .pad = 1});
  x = build.max_pool("maxpool2", x, 3, 2, 0, true);
  x = inception(build, x, {"inception3a", 64, 96, 128, 16, 32, 32});
  x = inception(build, x, {"inception3b", 128, 128, 192, 32, 96, 64});
  x = build.max_pool("maxpool3", x, 3, 2, 0, true);
  x = inception(build, x, {"inception4a", 192, 96, 208, 16, 48, 64});
  x = inception(build, x, {"inception4b", 160, 112, 224, 24, 64, 64});
  x = inception(build, x, {"inception4c", 128, 128, 256, 24, 64, 64});
  x = inception(build, x, {"inception4d", 112, 144, 288, 32, 64, 64});
  x = inception(build, x, {"inception4e", 256, 160, 320, 32, 128, 128});
  x = build.max_pool("maxpool4", x, 2, 2, 0, true);
  x = inception(build, x, {"inception5a", 256, 160, 320, 32, 128, 128});
  x = inception(build, x, {"inception5b", 384, 192, 384, 48, 128, 128});
  x = build.average_to_vector("avgpool", x);
  x = build.dropout("dropout", x, 0.2F);
  build.linear("fc", x, options.classes ? options.classes : 1000);
  return std::move(build).finish();
}

}  // namespace strobe::models
