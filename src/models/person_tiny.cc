#include <string>
#include <utility>
#include <vector>

#include "models/module_builder.h"
#include "models/zoo.h"

namespace strobe::models {
namespace {

constexpr int64_t kOwnWidth = 384, kOwnHeight = 288;

// Boxes of standing people, in pixels of the network's input of its own size: near ones on the coarse map, far ones on
// the fine one.
const std::vector<float> kFineAnchors = {8, 18, 12, 28, 15, 36};
const std::vector<float> kCoarseAnchors = {19, 44, 26, 56, 48, 110};

class PersonBuilder {
 public:
  explicit PersonBuilder(const ZooOptions& options)
      : options_(options), builder_("person-tiny"), classes_(options.classes > 0 ? options.classes : 1) {}

  Result<Graph> run() {
    LayerId x = builder_.picture(options_, kOwnWidth, kOwnHeight);
    x = unit("stem", x, 16, 3, 2);
    x = unit("down1", x, 32, 3, 2);
    x = residual("block1", x, 32);
    x = unit("down2", x, 64, 3, 2);
    x = residual("block2", x, 64);
    const LayerId fine = residual("block3", x, 64);
    x = unit("down3", fine, 96, 3, 2);
    x = residual("block4", x, 96);
    const LayerId coarse = residual("block5", x, 96);
    head("coarse", unit("coarse.neck", coarse, 96, 3, 1), kCoarseAnchors);
    x = unit("lateral", coarse, 64, 1, 1);
    x = builder_.append("upsample", Upsample{2}, {x});
    x = builder_.append("join", Concat{}, {x, fine});
    head("fine", unit("fine.neck", x, 64, 3, 1), kFineAnchors);
    STROBE_ASSIGN(Graph graph, std::move(builder_).finish());
    if (classes_ == 1) graph.labels = {"person"};
    return graph;
  }

 private:
  // Convolution, batch norm, leaky ReLU.
  LayerId unit(const std::string& name, LayerId x, int64_t channels, int64_t kernel, int64_t stride) {
    x = builder_.convolution(name + ".conv", x,
                             {.channels = channels, .kernel = kernel, .stride = stride, .pad = kernel / 2});
    x = builder_.batch_norm(name + ".bn", x);
    return builder_.append(name + ".act", Activation{ActivationKind::kLeaky, 0.1F}, {x});
  }

  LayerId residual(const std::string& name, LayerId x, int64_t channels) {
    LayerId inner = unit(name + ".narrow", x, channels / 2, 1, 1);
    inner = unit(name + ".wide", inner, channels, 3, 1);
    return builder_.append(name + ".add", Add{}, {x, inner});
  }

  void head(const std::string& name, LayerId x, const std::vector<float>& anchors) {
    const int64_t per_anchor = 5 + classes_;
    x = builder_.convolution(
        name + ".out", x,
        {.channels = static_cast<int64_t>(anchors.size() / 2) * per_anchor, .kernel = 1, .bias = true});
    builder_.add_output(
        builder_.append(name + ".yolo", YoloHead{.anchors = anchors, .classes = classes_, .scale_x_y = 1.05F}, {x}));
  }

  ZooOptions options_;
  ModuleBuilder builder_;
  int64_t classes_;
};

}  // namespace

Result<Graph> make_person_tiny(const ZooOptions& options) {
  return PersonBuilder(options).run();
}

}  // namespace strobe::models
