#include <fmt/format.h>

#include <array>

#include "models/graph_builder.h"
#include "models/zoo.h"

namespace strobe::models {
namespace {

constexpr std::array kAnchors = {10.F, 14.F, 23.F, 27.F, 37.F, 58.F, 81.F, 82.F, 135.F, 169.F, 344.F, 319.F};

// Counts layers as the published file does, where a route to one layer and a head have numbers of their own.
class TinyBuilder {
 public:
  explicit TinyBuilder(const ZooOptions& options) : options_(options) {
    if (options_.classes == 0) options_.classes = 80;
  }

  Result<Graph> run() {
    constexpr int64_t kOwnSize = 416;
    const Shape shape{3, options_.height ? options_.height : kOwnSize, options_.width ? options_.width : kOwnSize};
    STROBE_ASSIGN(LayerId x, builder_.input(shape));
    STROBE_ASSIGN(x, convolution(x, 32, 3, 2));
    STROBE_ASSIGN(x, convolution(x, 64, 3, 2));
    LayerId fine = x;  // what the finer head reads
    for (const int64_t channels : {64, 128, 256}) {
      STROBE_ASSIGN(x, cross_stage_block(x, channels, fine));
    }
    STROBE_ASSIGN(x, convolution(x, 512, 3, 1));
    STROBE_ASSIGN(const LayerId neck, convolution(x, 256, 1, 1));
    STROBE_ASSIGN(x, convolution(neck, 512, 3, 1));
    STROBE_TRY(head(x, {3, 4, 5}));
    ++number_;  // a route back to the neck
    STROBE_ASSIGN(x, convolution(neck, 128, 1, 1));
    STROBE_ASSIGN(x, append("upsample", Upsample{2}, {x}));
    STROBE_ASSIGN(x, append("route", Concat{}, {x, fine}));
    STROBE_ASSIGN(x, convolution(x, 256, 3, 1));
    // The published file skips the smallest anchor here and uses the fourth twice.
    STROBE_TRY(head(x, {1, 2, 3}));
    return std::move(builder_).finish();
  }

 private:
  Result<LayerId> append(std::string_view type, Operation operation, std::vector<LayerId> inputs) {
    return builder_.append(fmt::format("{:03}_{}", number_++, type), std::move(operation), std::move(inputs));
  }

  Result<LayerId> convolution(LayerId x, int64_t filters, int64_t size, int64_t stride) {
    const std::string name = fmt::format("{:03}_convolutional", number_++);
    Convolution conv;
    conv.out_channels = filters;
    conv.kernel_h = conv.kernel_w = size;
    conv.stride_h = conv.stride_w = stride;
    conv.pad_h = conv.pad_w = size / 2;
    STROBE_ASSIGN(x, builder_.append(name, conv, {x}));
    BatchNorm norm;
    norm.epsilon = 1e-6F;  // as for imported Darknet networks
    STROBE_ASSIGN(x, builder_.append(name + ".bn", norm, {x}));
    return builder_.append(name + ".leaky", Activation{ActivationKind::kLeaky, 0.1F}, {x});
  }

  // Half of the channels go through two small convolutions; all meet again and are pooled. partial: what left the block
  // before its last join.
  Result<LayerId> cross_stage_block(LayerId x, int64_t channels, LayerId& partial) {
    STROBE_ASSIGN(const LayerId whole, convolution(x, channels, 3, 1));
    STROBE_ASSIGN(x, append("route", Slice{channels / 2, channels}, {whole}));
    STROBE_ASSIGN(const LayerId first, convolution(x, channels / 2, 3, 1));
    STROBE_ASSIGN(const LayerId second, convolution(first, channels / 2, 3, 1));
    STROBE_ASSIGN(x, append("route", Concat{}, {second, first}));
    STROBE_ASSIGN(partial, convolution(x, channels, 1, 1));
    STROBE_ASSIGN(x, append("route", Concat{}, {whole, partial}));
    Pool pool;
    pool.kernel_h = pool.kernel_w = pool.stride_h = pool.stride_w = 2;
    return append("maxpool", pool, {x});
  }

  Result<void> head(LayerId x, const std::array<size_t, 3>& mask) {
    Convolution conv;
    conv.out_channels = static_cast<int64_t>(mask.size()) * (5 + options_.classes);
    conv.bias = declared_tensor({conv.out_channels});
    STROBE_ASSIGN(x, append("convolutional", conv, {x}));
    YoloHead rule;
    for (const size_t index : mask) {
      rule.anchors.insert(rule.anchors.end(), {kAnchors[2 * index], kAnchors[2 * index + 1]});
    }
    rule.classes = options_.classes;
    rule.scale_x_y = 1.05F;
    STROBE_ASSIGN(const LayerId id, append("yolo", rule, {x}));
    builder_.add_output(id);
    return {};
  }

  ZooOptions options_;
  GraphBuilder builder_{"yolov4-tiny"};
  int number_ = 0;
};

}  // namespace

Result<Graph> make_yolov4_tiny(const ZooOptions& options) {
  return TinyBuilder(options).run();
}

}  // namespace strobe::models
