#include "engines/operation_cases.h"

#include <functional>

namespace strobe::test {
namespace {

using namespace strobe::models;

// Odd and unequal sides: a transposed or rounded side then shows.
const Shape kInput{6, 13, 11};

OperationCase make(std::string name, const std::function<void(Sketch&)>& draw, const Shape& input = kInput) {
  Sketch sketch(input);
  draw(sketch);
  return {std::move(name), sketch.finish()};
}

OperationCase single(std::string name, const Operation& operation, const Shape& input = kInput) {
  return make(
      std::move(name), [&](Sketch& s) { s.add(operation); }, input);
}

Convolution convolution(int64_t out, int64_t kernel, int64_t stride = 1, int64_t groups = 1) {
  Convolution c;
  c.out_channels = out;
  c.kernel_h = c.kernel_w = kernel;
  c.stride_h = c.stride_w = stride;
  c.pad_h = c.pad_w = kernel / 2;
  c.groups = groups;
  return c;
}

Convolution biased(Convolution c) {
  c.bias = declared_tensor({c.out_channels});
  return c;
}

Linear linear(int64_t out, bool bias) {
  Linear l;
  l.out_features = out;
  if (bias) l.bias = declared_tensor({out});
  return l;
}

Pool pool(Pool::Kind kind, int64_t kernel, int64_t stride, int64_t before, int64_t after) {
  Pool p;
  p.kind = kind;
  p.kernel_h = p.kernel_w = kernel;
  p.stride_h = p.stride_w = stride;
  p.pad_top = p.pad_left = before;
  p.pad_bottom = p.pad_right = after;
  return p;
}

constexpr auto kMax = Pool::Kind::kMax;
constexpr auto kAverage = Pool::Kind::kAverage;
const Activation kLeaky{ActivationKind::kLeaky, 0.1F};

void block(Sketch& sketch, int64_t out, int64_t kernel, int64_t stride = 1, int64_t groups = 1,
           ActivationKind kind = ActivationKind::kLeaky) {
  sketch.add(convolution(out, kernel, stride, groups));
  sketch.add(BatchNorm{});
  sketch.add(Activation{kind, 0.1F});
}

// YOLOv4-tiny: half of the channels through two convolutions, joined twice.
void cross_stage_block(Sketch& s) {
  block(s, 8, 3);
  const LayerId whole = s.last();
  s.add(Slice{4, 8});
  block(s, 4, 3);
  const LayerId first = s.last();
  block(s, 4, 3);
  s.add(Concat{}, {s.last(), first});
  block(s, 8, 1);
  s.add(Concat{}, {whole, s.last()});
  s.add(pool(kMax, 2, 2, 0, 0));
}

// MobileNet V2 and Yolo-Fastest: wide, depthwise, narrow, and the sum.
void inverted_residual(Sketch& s) {
  const LayerId before = s.input();
  block(s, 24, 1);
  block(s, 24, 3, 1, 24);
  s.add(convolution(6, 1));
  s.add(BatchNorm{});
  s.add(Dropout{});
  s.add(Add{}, {s.last(), before});
  block(s, 12, 1, 1, 1, ActivationKind::kSwish);
}

YoloHead head(int64_t classes) {
  YoloHead h;
  h.anchors = {10, 14, 23, 27};
  h.classes = classes;
  return h;
}

}  // namespace

std::vector<OperationCase> convolution_cases() {
  Convolution oblong = biased(convolution(5, 3));
  oblong.kernel_w = 5;
  oblong.pad_w = 1;
  oblong.stride_w = 2;
  Convolution dilated = biased(convolution(7, 3));
  dilated.dilation = 2;
  dilated.pad_h = dilated.pad_w = 2;
  Convolution unpadded = convolution(4, 3, 2);
  unpadded.pad_h = unpadded.pad_w = 0;
  return {
      single("3x3", convolution(8, 3)),
      single("3x3 with bias", biased(convolution(8, 3))),
      single("1x1", biased(convolution(16, 1))),
      single("1x1, one channel out", biased(convolution(1, 1))),
      single("5x5 stride 2", biased(convolution(7, 5, 2))),
      single("1x1 stride 2", convolution(8, 1, 2)),
      single("oblong kernel and stride", oblong),
      single("dilated", dilated),
      single("stride 2 without padding", unpadded),
      single("two groups", biased(convolution(10, 3, 1, 2))),
      single("three groups, stride 2", convolution(6, 3, 2, 3)),
      single("depthwise", biased(convolution(6, 3, 1, 6))),
      single("depthwise stride 2", convolution(6, 5, 2, 6)),
      single("depthwise, two out for each in", convolution(12, 3, 1, 6)),
      single("many channels", biased(convolution(64, 3)), {32, 9, 7}),
      single("a picture's first layer", convolution(32, 3, 2), {3, 33, 47}),
      single("one pixel", biased(convolution(9, 3)), {5, 1, 1}),
      single("one channel", convolution(4, 3), {1, 12, 9}),
  };
}

std::vector<OperationCase> transposed_cases() {
  const auto transposed = [](int64_t out, int64_t kernel, int64_t stride, int64_t pad, bool bias) {
    TransposedConvolution c;
    c.out_channels = out;
    c.kernel_h = c.kernel_w = kernel;
    c.stride_h = c.stride_w = stride;
    c.pad_h = c.pad_w = pad;
    if (bias) c.bias = declared_tensor({out});
    return c;
  };
  TransposedConvolution oblong = transposed(5, 3, 2, 1, true);
  oblong.kernel_w = 4;
  oblong.stride_w = 3;
  oblong.pad_w = 0;
  return {
      single("transposed 2x2, stride 2", transposed(8, 2, 2, 0, false)),
      single("transposed 4x4, stride 4", transposed(8, 4, 4, 0, true)),
      single("transposed 4x4, stride 2, padded", transposed(7, 4, 2, 1, true)),
      single("transposed 3x3, windows overlap", transposed(4, 3, 1, 1, false)),
      single("transposed 1x1", transposed(9, 1, 1, 0, true)),
      single("transposed, gaps between windows", transposed(3, 1, 2, 0, true)),
      single("transposed, oblong", oblong),
      make("transposed, batch norm, relu, joined",
           [&](Sketch& s) {
             block(s, 8, 3, 2);
             const LayerId coarse = s.last();
             s.add(transposed(6, 2, 2, 0, false));
             s.add(BatchNorm{});
             s.add(Activation{ActivationKind::kRelu});
             const LayerId up = s.last();
             s.add(convolution(5, 1), {coarse});
             s.add(transposed(3, 2, 2, 0, false));
             s.add(Concat{}, {up, s.last()});
             s.add(convolution(4, 3));
           },
           {6, 12, 10}),
  };
}

std::vector<OperationCase> activation_cases() {
  std::vector<OperationCase> cases;
  for (const auto kind :
       {ActivationKind::kLinear, ActivationKind::kRelu, ActivationKind::kRelu6, ActivationKind::kLeaky,
        ActivationKind::kLogistic, ActivationKind::kMish, ActivationKind::kSwish, ActivationKind::kTanh,
        ActivationKind::kElu, ActivationKind::kHardSwish}) {
    const std::string name(to_string(kind));
    for (const float slope : {0.1F, 1.0F, 0.3F}) {
      const bool has_slope = kind == ActivationKind::kLeaky || kind == ActivationKind::kElu;
      if (slope != 0.1F && !has_slope) continue;
      const Activation activation{kind, slope};
      const std::string title = name + (has_slope ? " " + std::to_string(slope) : "");
      // Values up to about +-12: both tails, and the corner of ReLU6.
      const auto widen = [](Sketch& s) {
        Convolution c = convolution(6, 1, 1, 6);
        c.weight = std::make_shared<const Tensor>(Tensor{{6, 1, 1, 1}, {12, -9, 6, 3, 1, -12}});
        s.add(c);
      };
      cases.push_back(make(title + " of values up to 12", [&](Sketch& s) {
        widen(s);
        s.output(s.last());  // so that it is a layer of its own
        s.output(s.add(activation));
      }));
      if (kind != ActivationKind::kLinear) {
        cases.push_back(make(title + " of the input", [&](Sketch& s) { s.add(activation); }));
      }
      cases.push_back(make(title + " after convolution and batch norm", [&](Sketch& s) {
        s.add(convolution(8, 3));
        s.add(BatchNorm{});
        s.add(activation);
        s.add(convolution(4, 1));
      }));
      cases.push_back(make(title + " after a depthwise convolution", [&](Sketch& s) {
        s.add(biased(convolution(6, 3, 1, 6)));
        s.add(activation);
      }));
      cases.push_back(make(title + " after a sum", [&](Sketch& s) {
        const LayerId left = s.add(convolution(6, 3), {s.input()});
        s.add(Add{}, {left, s.input()});
        s.add(activation);
      }));
    }
  }
  return cases;
}

std::vector<OperationCase> pool_cases() {
  Pool oblong = pool(kMax, 3, 2, 0, 0);
  oblong.kernel_w = 2;
  oblong.stride_w = 1;
  oblong.pad_top = 1;
  Pool counted = pool(kAverage, 3, 2, 1, 1);
  counted.count_padding = true;
  Pool counted_one_side = pool(kAverage, 2, 1, 0, 1);
  counted_one_side.count_padding = true;
  return {
      single("max 2, stride 2", pool(kMax, 2, 2, 0, 0)),
      single("max 2, stride 2, Darknet's odd side", pool(kMax, 2, 2, 0, 1)),
      single("max 2, stride 1, padded on the far side", pool(kMax, 2, 1, 0, 1)),
      single("max 3, stride 2, padded on both sides", pool(kMax, 3, 2, 1, 1)),
      single("max 5, stride 1", pool(kMax, 5, 1, 2, 2)),
      single("max 9, stride 1", pool(kMax, 9, 1, 4, 4)),
      single("max 13, stride 1, larger than the map", pool(kMax, 13, 1, 6, 6)),
      single("max 3, padded by two on one side", pool(kMax, 3, 1, 0, 2)),
      single("max, oblong", oblong),
      single("average 2, stride 2", pool(kAverage, 2, 2, 0, 0)),
      single("average 3, padding not counted", pool(kAverage, 3, 2, 1, 1)),
      single("average 3, padding counted", counted),
      single("average 2, padded on the far side, not counted", pool(kAverage, 2, 1, 0, 1)),
      single("average 2, padded on the far side, counted", counted_one_side),
      single("global average", GlobalAveragePool{}),
      make("max of negative values",
           [](Sketch& s) {
             // A padding of zeros instead of minus infinity would win here.
             Convolution c = convolution(6, 1, 1, 6);
             c.weight = std::make_shared<const Tensor>(Tensor{{6, 1, 1, 1}, {0.1F, 0.1F, 0.1F, 0.1F, 0.1F, 0.1F}});
             c.bias = std::make_shared<const Tensor>(Tensor{{6}, {-5, -5, -5, -5, -5, -5}});
             s.add(c);
             s.add(pool(kMax, 2, 1, 0, 1));
           }),
      make("spatial pyramid",
           [](Sketch& s) {
             block(s, 8, 1);
             const LayerId whole = s.last();
             const LayerId five = s.add(pool(kMax, 5, 1, 2, 2), {whole});
             const LayerId nine = s.add(pool(kMax, 9, 1, 4, 4), {whole});
             const LayerId thirteen = s.add(pool(kMax, 13, 1, 6, 6), {whole});
             s.add(Concat{}, {thirteen, nine, five, whole});
           }),
  };
}

std::vector<OperationCase> structure_cases() {
  return {
      single("batch norm", BatchNorm{}),
      make("batch norm before convolution",
           [](Sketch& s) {
             s.add(BatchNorm{});
             s.add(Activation{ActivationKind::kRelu});
             s.add(biased(convolution(8, 3)));
           }),
      make("convolution with bias, batch norm",
           [](Sketch& s) {
             s.add(biased(convolution(8, 3)));
             s.add(BatchNorm{});
           }),
      make("concat of two",
           [](Sketch& s) {
             const LayerId left = s.add(convolution(5, 1), {s.input()});
             const LayerId right = s.add(convolution(3, 3), {s.input()});
             s.add(Concat{}, {left, right});
           }),
      make("concat of three with the input",
           [](Sketch& s) {
             const LayerId left = s.add(kLeaky, {s.input()});
             const LayerId right = s.add(convolution(3, 3), {s.input()});
             s.add(Concat{}, {right, s.input(), left});
           }),
      make("concat of one with itself",
           [](Sketch& s) {
             s.add(Concat{}, {s.input(), s.input()});
           }),
      make("route of groups",
           [](Sketch& s) {
             block(s, 9, 3);
             const LayerId whole = s.last();
             const LayerId first = s.add(Slice{0, 3}, {whole});
             const LayerId last = s.add(Slice{6, 9}, {whole});
             s.add(Concat{}, {last, first});
             s.add(convolution(4, 3));
           }),
      make("slice as an output",
           [](Sketch& s) {
             s.add(convolution(8, 3));
             s.add(Slice{2, 5});
           }),
      make("slice of the input",
           [](Sketch& s) {
             s.add(Slice{1, 6});
           }),
      make("sum of two",
           [](Sketch& s) {
             const LayerId left = s.add(convolution(6, 3), {s.input()});
             s.add(Add{}, {s.input(), left});
           }),
      make("sum of four",
           [](Sketch& s) {
             const LayerId a = s.add(convolution(6, 3), {s.input()});
             const LayerId b = s.add(kLeaky, {s.input()});
             const LayerId c = s.add(convolution(6, 1), {a});
             s.add(Add{}, {a, b, c, s.input()});
           }),
      make("sum of one with itself",
           [](Sketch& s) {
             const LayerId a = s.add(convolution(6, 3));
             s.add(Add{}, {a, a});
           }),
      single("upsample by 2", Upsample{2}),
      single("upsample by 3", Upsample{3}),
      make("upsample and join",
           [](Sketch& s) {
             block(s, 8, 3);
             const LayerId fine = s.last();
             s.add(pool(kMax, 2, 2, 0, 0));
             s.add(convolution(4, 1));
             s.add(Upsample{2});
             s.add(Concat{}, {s.last(), fine});
           },
           {6, 12, 10}),
      single("flatten", Flatten{}),
      make("classifier",
           [](Sketch& s) {
             block(s, 8, 3, 2);
             s.add(Flatten{});
             s.add(linear(20, true));
             s.add(Activation{ActivationKind::kRelu});
             s.add(Dropout{});
             s.add(linear(7, false));
             s.add(Softmax{});
           }),
      make("pooled classifier",
           [](Sketch& s) {
             block(s, 16, 3);
             s.add(GlobalAveragePool{});
             s.add(linear(10, true));
             s.add(BatchNorm{});
           }),
      single("softmax of a map", Softmax{}),
      make("two heads",
           [](Sketch& s) {
             block(s, 16, 3, 2);
             const LayerId trunk = s.last();
             s.add(biased(convolution(16, 1)), {trunk});
             s.output(s.add(head(3)));
             block(s, 8, 3);
             s.add(biased(convolution(16, 1)));
             s.output(s.add(head(3)));
           }),
      make("an inner layer is an output too, and one is twice",
           [](Sketch& s) {
             const LayerId conv = s.add(convolution(8, 3));
             const LayerId norm = s.add(BatchNorm{});
             const LayerId leaky = s.add(kLeaky);
             s.output(leaky);
             s.output(conv);
             s.output(norm);
             s.output(leaky);
           }),
      make("the input is an output",
           [](Sketch& s) {
             s.output(s.add(convolution(4, 3)));
             s.output(s.input());
           }),
      make("cross-stage block", cross_stage_block, {6, 14, 10}),
      make("inverted residual", inverted_residual),
      make("names with odd characters",
           [](Sketch& s) {
             s.add("a#b c/d:e f", convolution(4, 3));
             s.add("Ünïcode.\"<&>\"", kLeaky);
             s.add("a", BatchNorm{});
           }),
  };
}

}  // namespace strobe::test
