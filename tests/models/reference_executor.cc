#include "models/reference_executor.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

namespace strobe::test {
namespace {

using namespace strobe::models;
using Values = std::vector<float>;

struct Map {
  const Values& values;
  const Shape& shape;
  const float* plane(int64_t channel) const { return values.data() + channel * shape.height * shape.width; }
};

double activate(const Activation& activation, double x) {
  switch (activation.kind) {
    case ActivationKind::kLinear:
      return x;
    case ActivationKind::kRelu:
      return std::max(x, 0.0);
    case ActivationKind::kRelu6:
      return std::clamp(x, 0.0, 6.0);
    case ActivationKind::kLeaky:
      return x > 0 ? x : activation.slope * x;
    case ActivationKind::kLogistic:
      return 1 / (1 + std::exp(-x));
    case ActivationKind::kMish:
      return x * std::tanh(x > 30 ? x : std::log1p(std::exp(x)));
    case ActivationKind::kSwish:
      return x / (1 + std::exp(-x));
    case ActivationKind::kTanh:
      return std::tanh(x);
    case ActivationKind::kElu:
      return x > 0 ? x : activation.slope * std::expm1(x);
    case ActivationKind::kHardSwish:
      return x * std::clamp(x + 3, 0.0, 6.0) / 6;
  }
  throw std::logic_error("unknown activation");
}

struct Executor {
  const std::vector<Map>& inputs;
  const Shape& out;
  const Map& in() const { return inputs.front(); }

  Values operator()(const Input&) const { throw std::logic_error("an input is given, not computed"); }

  Values operator()(const Convolution& op) const {
    Values result;
    result.reserve(static_cast<size_t>(out.elements()));
    const int64_t in_per_group = in().shape.channels / op.groups;
    const int64_t out_per_group = op.out_channels / op.groups;
    const float* weight = op.weight->values.data();
    for (int64_t oc = 0; oc < op.out_channels; ++oc) {
      std::vector<double> sums(static_cast<size_t>(out.height * out.width),
                               op.bias ? op.bias->values[static_cast<size_t>(oc)] : 0.0);
      for (int64_t ic = 0; ic < in_per_group; ++ic) {
        const float* plane = in().plane(oc / out_per_group * in_per_group + ic);
        for (int64_t ky = 0; ky < op.kernel_h; ++ky) {
          for (int64_t kx = 0; kx < op.kernel_w; ++kx) add_shifted(op, plane, ky, kx, *weight++, sums);
        }
      }
      result.insert(result.end(), sums.begin(), sums.end());
    }
    return result;
  }

  Values operator()(const TransposedConvolution& op) const {
    std::vector<double> sums;
    for (int64_t oc = 0; oc < op.out_channels; ++oc)
      sums.insert(sums.end(), static_cast<size_t>(out.height * out.width),
                  op.bias ? op.bias->values[static_cast<size_t>(oc)] : 0.0);
    const float* weight = op.weight->values.data();
    for (int64_t ic = 0; ic < in().shape.channels; ++ic) {
      for (int64_t oc = 0; oc < op.out_channels; ++oc) {
        for (int64_t ky = 0; ky < op.kernel_h; ++ky) {
          for (int64_t kx = 0; kx < op.kernel_w; ++kx, ++weight) {
            for (int64_t y = 0; y < in().shape.height; ++y) {
              for (int64_t x = 0; x < in().shape.width; ++x) {
                const int64_t oy = y * op.stride_h + ky - op.pad_h, ox = x * op.stride_w + kx - op.pad_w;
                if (oy < 0 || ox < 0 || oy >= out.height || ox >= out.width) continue;
                sums[static_cast<size_t>((oc * out.height + oy) * out.width + ox)] +=
                    static_cast<double>(*weight) * in().plane(ic)[y * in().shape.width + x];
              }
            }
          }
        }
      }
    }
    return {sums.begin(), sums.end()};
  }

  // sums += weight * the input plane as seen through kernel position (ky, kx).
  void add_shifted(const Convolution& op, const float* plane, int64_t ky, int64_t kx, double weight,
                   std::vector<double>& sums) const {
    const int64_t shift = kx * op.dilation - op.pad_w;
    int64_t first = 0, last = out.width;  // columns whose input is inside
    while (first < last && first * op.stride_w + shift < 0) ++first;
    while (last > first && (last - 1) * op.stride_w + shift >= in().shape.width) --last;
    for (int64_t y = 0; y < out.height; ++y) {
      const int64_t iy = y * op.stride_h + ky * op.dilation - op.pad_h;
      if (iy < 0 || iy >= in().shape.height) continue;
      const float* row = plane + iy * in().shape.width + shift;
      double* sum = sums.data() + y * out.width;
      for (int64_t x = first; x < last; ++x) sum[x] += weight * row[x * op.stride_w];
    }
  }

  Values operator()(const BatchNorm& op) const {
    return by_channel([&](size_t c, double x) {
      const double spread = std::sqrt(double{op.variance->values[c]} + op.epsilon);
      return op.scale->values[c] * (x - op.mean->values[c]) / spread + op.shift->values[c];
    });
  }

  Values operator()(const Activation& op) const {
    return by_channel([&](size_t, double x) { return activate(op, x); });
  }

  Values operator()(const Pool& op) const {
    Values result;
    for (int64_t c = 0; c < out.channels; ++c) {
      for (int64_t y = 0; y < out.height; ++y) {
        for (int64_t x = 0; x < out.width; ++x) result.push_back(pooled(op, in().plane(c), y, x));
      }
    }
    return result;
  }

  float pooled(const Pool& op, const float* plane, int64_t y, int64_t x) const {
    float largest = -std::numeric_limits<float>::infinity();
    double sum = 0;
    int64_t count = 0;
    for (int64_t ky = 0; ky < op.kernel_h; ++ky) {
      for (int64_t kx = 0; kx < op.kernel_w; ++kx) {
        const int64_t iy = y * op.stride_h + ky - op.pad_top;
        const int64_t ix = x * op.stride_w + kx - op.pad_left;
        if (iy < 0 || ix < 0 || iy >= in().shape.height || ix >= in().shape.width) continue;
        const float value = plane[iy * in().shape.width + ix];
        largest = std::max(largest, value);
        sum += value;
        ++count;
      }
    }
    if (op.kind == Pool::Kind::kMax) return largest;
    return static_cast<float>(sum / static_cast<double>(op.count_padding ? op.kernel_h * op.kernel_w : count));
  }

  Values operator()(const GlobalAveragePool&) const {
    Values result;
    const int64_t size = in().shape.height * in().shape.width;
    for (int64_t c = 0; c < out.channels; ++c) {
      double sum = 0;
      for (int64_t i = 0; i < size; ++i) sum += in().plane(c)[i];
      result.push_back(static_cast<float>(sum / static_cast<double>(size)));
    }
    return result;
  }

  Values operator()(const Concat&) const {
    Values result;
    for (const Map& map : inputs) result.insert(result.end(), map.values.begin(), map.values.end());
    return result;
  }

  Values operator()(const Slice& op) const { return Values(in().plane(op.begin), in().plane(op.end)); }

  Values operator()(const Add&) const {
    Values result = in().values;
    for (size_t k = 1; k < inputs.size(); ++k) {
      for (size_t i = 0; i < result.size(); ++i) result[i] += inputs[k].values[i];
    }
    return result;
  }

  Values operator()(const Upsample& op) const {
    Values result;
    for (int64_t c = 0; c < out.channels; ++c) {
      for (int64_t y = 0; y < out.height; ++y) {
        const float* row = in().plane(c) + y / op.scale * in().shape.width;
        for (int64_t x = 0; x < out.width; ++x) result.push_back(row[x / op.scale]);
      }
    }
    return result;
  }

  Values operator()(const Linear& op) const {
    Values result;
    const float* weight = op.weight->values.data();
    for (int64_t o = 0; o < op.out_features; ++o) {
      double sum = op.bias ? op.bias->values[static_cast<size_t>(o)] : 0.0;
      for (const float x : in().values) sum += double{x} * *weight++;
      result.push_back(static_cast<float>(sum));
    }
    return result;
  }

  // Along channels, at each place of the map.
  Values operator()(const Softmax&) const {
    Values result(in().values.size());
    const auto size = static_cast<size_t>(out.height * out.width);
    for (size_t place = 0; place < size; ++place) {
      double largest = -std::numeric_limits<double>::infinity(), sum = 0;
      for (size_t i = place; i < result.size(); i += size) largest = std::max(largest, double{in().values[i]});
      for (size_t i = place; i < result.size(); i += size) sum += std::exp(in().values[i] - largest);
      for (size_t i = place; i < result.size(); i += size) {
        result[i] = static_cast<float>(std::exp(in().values[i] - largest) / sum);
      }
    }
    return result;
  }

  Values operator()(const Flatten&) const { return in().values; }
  Values operator()(const Dropout&) const { return in().values; }
  Values operator()(const YoloHead&) const { return in().values; }

  template <typename Function>
  Values by_channel(Function function) const {
    Values result;
    result.reserve(in().values.size());
    const auto size = static_cast<size_t>(out.height * out.width);
    for (size_t i = 0; i < in().values.size(); ++i) {
      result.push_back(static_cast<float>(function(i / size, in().values[i])));
    }
    return result;
  }
};

}  // namespace

std::vector<std::vector<float>> run_reference(const Graph& graph, std::span<const float> input) {
  if (static_cast<int64_t>(input.size()) != graph.input_shape().elements()) {
    throw std::invalid_argument("the input does not have the size of the graph's input");
  }
  std::vector<Values> values;
  values.emplace_back(input.begin(), input.end());
  for (size_t i = 1; i < graph.layers.size(); ++i) {
    const Layer& layer = graph.layers[i];
    std::vector<Map> inputs;
    for (const LayerId id : layer.inputs) inputs.push_back({values[static_cast<size_t>(id)], graph.layer(id).output});
    values.push_back(std::visit(Executor{inputs, layer.output}, layer.operation));
  }
  return values;
}

}  // namespace strobe::test
