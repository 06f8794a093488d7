// VGG-16, configuration D (Simonyan & Zisserman 2014, arXiv:1409.1556), without batch norms.
#include <fmt/format.h>

#include "models/module_builder.h"
#include "models/zoo.h"

namespace strobe::models {

Result<Graph> make_vgg16(const ZooOptions& options) {
  constexpr int64_t kPool = 0;
  constexpr int64_t kFeatures[] = {64,    64,  kPool, 128, 128,   kPool, 256, 256, 256,
                                   kPool, 512, 512,   512, kPool, 512,   512, 512, kPool};
  constexpr int64_t kGrid = 7;  // cells a side that the first linear layer reads
  ModuleBuilder build("vgg16");
  LayerId x = build.picture(options, 224);
  int feature = 0;
  for (const int64_t channels : kFeatures) {
    if (channels == kPool) {
      x = build.max_pool(fmt::format("features.{}", feature++), x, 2, 2, 0, false);
      continue;
    }
    x = build.convolution(fmt::format("features.{}", feature++), x,
                          {.channels = channels, .kernel = 3, .pad = 1, .bias = true});
    x = build.relu(fmt::format("features.{}", feature++), x);
  }
  if (!build.failed()) {
    // Torchvision averages any grid to 7x7; equal windows do that where the sides are multiples of 7.
    const Shape& grid = build.shape(x);
    if (grid.height % kGrid != 0 || grid.width % kGrid != 0)
      build.fail(usage_error(fmt::format("vgg16: input of {}x{}, expected multiples of 224 pixels",
                                         options.width ? options.width : 224, options.height ? options.height : 224)));
    if (grid.height != kGrid || grid.width != kGrid) {
      Pool pool;
      pool.kind = Pool::Kind::kAverage;
      pool.kernel_h = pool.stride_h = grid.height / kGrid;
      pool.kernel_w = pool.stride_w = grid.width / kGrid;
      x = build.append("avgpool", pool, {x});
    }
  }
  x = build.append("flatten", Flatten{}, {x});
  x = build.relu("classifier.1", build.linear("classifier.0", x, 4096));
  x = build.dropout("classifier.2", x, 0.5F);
  x = build.relu("classifier.4", build.linear("classifier.3", x, 4096));
  x = build.dropout("classifier.5", x, 0.5F);
  build.linear("classifier.6", x, options.classes ? options.classes : 1000);
  return std::move(build).finish();
}

}  // namespace strobe::models
