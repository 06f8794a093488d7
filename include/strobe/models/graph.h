// Graph: a network described once, so that every engine runs it, every cost is computed from it and every prediction is
// made from it. One layer is one operation (convolution, batch norm and activation are three layers): what an engine
// fuses is then visible. Layers stand in execution order; an input is always an earlier layer.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace strobe::models {

// Channels, height, width of one item; the batch is left out. A vector is {channels, 1, 1}.
struct Shape {
  int64_t channels = 0;
  int64_t height = 0;
  int64_t width = 0;
  int64_t elements() const { return channels * height * width; }
  std::string to_string() const;  // "32x208x208"
  bool operator==(const Shape&) const = default;
};

// A weight tensor: row-major float32 in the layout that PyTorch uses (convolution: out, in / groups, kh, kw).
struct Tensor {
  std::vector<int64_t> shape;
  std::vector<float> values;
};
// Shared, since copies of a graph (batch sizes, engines) need not copy its weights. Never null in a finished graph.
using Weights = std::shared_ptr<const Tensor>;

enum class ActivationKind : uint8_t {
  kLinear,
  kRelu,
  kRelu6,
  kLeaky,
  kLogistic,
  kMish,
  kSwish,
  kTanh,
  kElu,
  kHardSwish
};
std::string_view to_string(ActivationKind kind);

struct Input {};
struct Convolution {
  int64_t out_channels = 0;
  int64_t kernel_h = 1, kernel_w = 1;
  int64_t stride_h = 1, stride_w = 1;
  int64_t pad_h = 0, pad_w = 0;
  int64_t dilation = 1;
  int64_t groups = 1;
  Weights weight;
  Weights bias;  // null: none
};
// Learned upsampling: each input pixel adds its kernel, times itself, to the output: (in - 1) * stride + kernel - 2 *
// pad a side.
struct TransposedConvolution {
  int64_t out_channels = 0;
  int64_t kernel_h = 1, kernel_w = 1;
  int64_t stride_h = 1, stride_w = 1;
  int64_t pad_h = 0, pad_w = 0;  // cut from each side of the output
  Weights weight;                // in, out, kh, kw
  Weights bias;                  // null: none
};
struct BatchNorm {
  float epsilon = 1e-5F;
  Weights scale, shift, mean, variance;  // each {channels}
};
struct Activation {
  ActivationKind kind = ActivationKind::kLinear;
  float slope = 0.1F;  // of kLeaky and kElu
};
struct Pool {
  enum class Kind : uint8_t { kMax, kAverage } kind = Kind::kMax;
  int64_t kernel_h = 1, kernel_w = 1;
  int64_t stride_h = 1, stride_w = 1;
  int64_t pad_top = 0, pad_left = 0, pad_bottom = 0, pad_right = 0;  // Darknet pads one side only
  bool count_padding = false;                                        // of kAverage
};
struct GlobalAveragePool {};
struct Concat {};  // along channels
struct Slice {
  int64_t begin = 0, end = 0;
};              // channels [begin, end)
struct Add {};  // element-wise; the shapes are equal
struct Upsample {
  int64_t scale = 2;
};  // nearest neighbour
struct Flatten {};
struct Linear {
  int64_t out_features = 0;
  Weights weight;  // {out, in}
  Weights bias;    // null: none
};
struct Softmax {};
struct Dropout {
  float probability = 0.5F;
};  // identity at inference
// A YOLO head: identity for engines (its input is an output of the network); boxes are decoded by models/yolo.h.
struct YoloHead {
  std::vector<float> anchors;  // w, h pairs of this head, in pixels of the network's input
  int64_t classes = 0;
  float scale_x_y = 1;
  bool new_coords = false;  // Scaled-YOLOv4: outputs already went through a logistic activation
};

using Operation = std::variant<Input, Convolution, BatchNorm, Activation, Pool, GlobalAveragePool, Concat, Slice, Add,
                               Upsample, Flatten, Linear, Softmax, Dropout, YoloHead, TransposedConvolution>;

using LayerId = int32_t;

struct Layer {
  std::string name;  // unique in the graph: "003_convolutional", "003_convolutional.bn", "003_convolutional.leaky"
  Operation operation;
  std::vector<LayerId> inputs;
  Shape output;
};
std::string_view type_name(const Operation& operation);  // "Convolution", "BatchNorm", ...

// How a picture becomes the network's input, as the network was trained.
struct InputRule {
  enum class Fit : uint8_t { kStretch, kLetterbox } fit = Fit::kStretch;
  float scale = 1.0F / 255;
  float mean[3] = {0, 0, 0};       // subtracted after scaling, per channel
  float deviation[3] = {1, 1, 1};  // divided by after that
  bool bgr = false;                // channel order of the network; default RGB
};

struct Graph {
  std::string name;
  std::vector<Layer> layers;     // layers[0] is the Input
  std::vector<LayerId> outputs;  // in the order in which engines return them
  InputRule input_rule;
  std::vector<std::string> labels;  // class names; may be empty
  bool trained = true;              // false: seeded weights, so that its boxes mean nothing

  const Shape& input_shape() const { return layers.front().output; }
  const Layer& layer(LayerId id) const { return layers[static_cast<size_t>(id)]; }
};

}  // namespace strobe::models
