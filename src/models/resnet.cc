// ResNet (He et al. 2015, arXiv:1512.03385), with the stride of a bottleneck in its 3x3 convolution, as torchvision.
#include <fmt/format.h>

#include <array>

#include "models/module_builder.h"
#include "models/resnet.h"
#include "models/zoo.h"

namespace strobe::models {
namespace {

class Resnet {
 public:
  Resnet(ModuleBuilder& build, bool bottleneck, std::array<int, 4> blocks)
      : build_(build), bottleneck_(bottleneck), blocks_(blocks) {}

  void run(const ZooOptions& options) {
    LayerId x = trunk(build_.picture(options, 224), blocks_.size());
    x = build_.average_to_vector("avgpool", x);
    build_.linear("fc", x, options.classes ? options.classes : 1000);
  }

  LayerId trunk(LayerId x, size_t stages) {
    x = build_.convolution("conv1", x, {.channels = 64, .kernel = 7, .stride = 2, .pad = 3});
    x = build_.batch_norm("bn1", x);
    x = build_.relu("relu", x);
    x = build_.max_pool("maxpool", x, 3, 2, 1, false);
    for (size_t stage = 0; stage < stages; ++stage) {
      for (int block = 0; block < blocks_[stage]; ++block) {
        const int64_t stride = stage > 0 && block == 0 ? 2 : 1;
        x = residual(fmt::format("layer{}.{}", stage + 1, block), x, int64_t{64} << stage, stride);
      }
    }
    return x;
  }

 private:
  LayerId normed(const std::string& conv, const std::string& norm, LayerId x, const ModuleBuilder::ConvolutionOf& of) {
    return build_.batch_norm(norm, build_.convolution(conv, x, of));
  }

  LayerId residual(const std::string& name, LayerId x, int64_t width, int64_t stride) {
    if (build_.failed()) return x;
    const int64_t out = bottleneck_ ? 4 * width : width;
    LayerId y = x;
    if (bottleneck_) {
      y = normed(name + ".conv1", name + ".bn1", y, {.channels = width});
      y = build_.relu(name + ".relu1", y);
      y = normed(name + ".conv2", name + ".bn2", y, {.channels = width, .kernel = 3, .stride = stride, .pad = 1});
      y = build_.relu(name + ".relu2", y);
      y = normed(name + ".conv3", name + ".bn3", y, {.channels = out});
    } else {
      y = normed(name + ".conv1", name + ".bn1", y, {.channels = width, .kernel = 3, .stride = stride, .pad = 1});
      y = build_.relu(name + ".relu1", y);
      y = normed(name + ".conv2", name + ".bn2", y, {.channels = out, .kernel = 3, .pad = 1});
    }
    if (stride != 1 || build_.shape(x).channels != out)
      x = normed(name + ".downsample.0", name + ".downsample.1", x, {.channels = out, .stride = stride});
    return build_.relu(name + ".relu", build_.append(name + ".add", Add{}, {y, x}));
  }

  ModuleBuilder& build_;
  bool bottleneck_;
  std::array<int, 4> blocks_;
};

}  // namespace

LayerId add_resnet18_trunk(ModuleBuilder& build, LayerId picture, size_t stages) {
  return Resnet(build, false, {2, 2, 2, 2}).trunk(picture, stages);
}

Result<Graph> make_resnet18(const ZooOptions& options) {
  ModuleBuilder build("resnet18");
  Resnet(build, false, {2, 2, 2, 2}).run(options);
  return std::move(build).finish();
}
Result<Graph> make_resnet50(const ZooOptions& options) {
  ModuleBuilder build("resnet50");
  Resnet(build, true, {3, 4, 6, 3}).run(options);
  return std::move(build).finish();
}

}  // namespace strobe::models
