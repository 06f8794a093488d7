#include "strobe/models/graph.h"

#include <array>

#include <fmt/format.h>

namespace strobe::models {

std::string Shape::to_string() const {
  return fmt::format("{}x{}x{}", channels, height, width);
}

std::string_view to_string(ActivationKind kind) {
  switch (kind) {
    case ActivationKind::kLinear:
      return "linear";
    case ActivationKind::kRelu:
      return "relu";
    case ActivationKind::kRelu6:
      return "relu6";
    case ActivationKind::kLeaky:
      return "leaky";
    case ActivationKind::kLogistic:
      return "logistic";
    case ActivationKind::kMish:
      return "mish";
    case ActivationKind::kSwish:
      return "swish";
    case ActivationKind::kTanh:
      return "tanh";
    case ActivationKind::kElu:
      return "elu";
    case ActivationKind::kHardSwish:
      return "hard_swish";
  }
  return "unknown";
}

std::string_view type_name(const Operation& operation) {
  static constexpr std::array<std::string_view, std::variant_size_v<Operation>> kNames = {
      "Input",   "Convolution",       "BatchNorm", "Activation",
      "Pool",    "GlobalAveragePool", "Concat",    "Slice",
      "Add",     "Upsample",          "Flatten",   "Linear",
      "Softmax", "Dropout",           "YoloHead",  "TransposedConvolution"};
  return kNames[operation.index()];
}

}  // namespace strobe::models
