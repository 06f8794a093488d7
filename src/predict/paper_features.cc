#include "predict/paper_features.h"

#include <cmath>
#include <span>

namespace strobe::predict {
namespace {

double ceil_div(int64_t a, int64_t b) {
  return static_cast<double>((a + b - 1) / b);
}

// The paper's letters. Squares stand for products of the two sides.
struct Sizes {
  double b, channels, out, group_channels;  // b, C, O, c = C / g
  double k2, in2, out2;                     // k^2, H^2, h^2

  Sizes(const LayerRow& conv, double batch)
      : b(batch),
        channels(static_cast<double>(conv.ic)),
        out(static_cast<double>(conv.oc)),
        group_channels(static_cast<double>(conv.ic / conv.groups)),
        k2(static_cast<double>(conv.kh * conv.kw)),
        in2(static_cast<double>(conv.ih * conv.iw)),
        out2(static_cast<double>(conv.oh * conv.ow)) {}
};

// Adds values, one after the other, to the sums over layers.
class Sink {
 public:
  explicit Sink(std::span<double> sums) : at_(sums.begin()) {}
  void operator()(double value) { *at_++ += value; }

 private:
  std::span<double>::iterator at_;
};

void tensors(const Sizes& s, Sink& add) {
  const double weight = s.out * s.group_channels * s.k2;
  const double weight_gradients = s.b * weight;
  const double input = 2 * s.b * s.channels * s.in2;  // and its gradient
  const double output = 2 * s.b * s.out * s.out2;
  add(weight), add(weight_gradients), add(input), add(output);
  add(weight + weight_gradients + input + output);
}

void gemm(const Sizes& s, Sink& add) {
  // Memory: the index and the matrix of forward, of the gradient of the input, and the matrix of that of the weights.
  const double index = s.b * s.out2, matrix = s.b * s.out2 * s.k2 * s.channels;
  const double back_index = s.b * s.in2, back_matrix = s.b * s.in2 * s.k2 * s.channels;
  const double weight_matrix = s.b * s.out2 * s.k2 * s.group_channels;
  add(index), add(matrix), add(back_index), add(back_matrix), add(weight_matrix);
  add(index + matrix), add(back_index + back_matrix + weight_matrix);
  add(index + matrix + back_index + back_matrix + weight_matrix);

  const double forward = s.b * s.out * s.out2 * s.k2 * s.group_channels;
  const double input_gradient = s.b * s.channels * s.in2 * s.k2 * s.out;
  add(forward), add(input_gradient), add(2 * forward + input_gradient);
}

void fft(const LayerRow& conv, const Sizes& s, Sink& add) {
  const double in_spectrum = static_cast<double>(conv.ih) * static_cast<double>(conv.iw + 1);
  const double out_spectrum = static_cast<double>(conv.oh) * static_cast<double>(conv.ow + 1);
  const double weights = in_spectrum * s.out * s.group_channels;
  const double input = in_spectrum * s.b * s.channels;
  const double output = in_spectrum * s.b * s.out;
  const double back_weights = out_spectrum * s.out * s.group_channels;
  const double back_output = out_spectrum * s.b * s.out;
  add(weights), add(input), add(output), add(back_weights), add(back_output);
  add(weights + input), add(back_weights + back_output), add(input + output);
  add(weights + input + output + back_weights + back_output);

  const double maps = s.b * s.channels + s.b * s.out + s.out * s.group_channels;
  const auto operations = [&](double side2) {
    // H^2 log2 H = H^2 log2(H^2) / 2
    return side2 * std::log2(side2) / 2 * maps + s.b * s.out * s.channels * side2;
  };
  const double forward = operations(s.in2), backward = operations(s.out2);
  add(forward), add(backward), add(forward + backward), add(2 * forward + backward);
}

// Output tiles of m x m from filters of r x r, each made from (m + r - 1)^2 inputs.
void winograd(const LayerRow& conv, const Sizes& s, int64_t m, int64_t r, Sink& add) {
  const auto tile = static_cast<double>((m + r - 1) * (m + r - 1));
  const double in_tiles = ceil_div(conv.ih, m) * ceil_div(conv.iw, m);
  const double out_tiles = ceil_div(conv.oh, m) * ceil_div(conv.ow, m);
  const double forward = 3 * s.b * s.out * tile * in_tiles;
  const double input_gradient = 3 * s.b * s.channels * tile * out_tiles;
  const double weight_gradient = 3 * s.b * s.out * s.group_channels * tile * in_tiles;
  add(forward), add(input_gradient), add(weight_gradient);
  add(forward + input_gradient), add(forward + input_gradient + weight_gradient);

  const double filter_parts = ceil_div(conv.kh, r) * ceil_div(conv.kw, r);
  const double gradient_parts = ceil_div(conv.oh, r) * ceil_div(conv.ow, r);
  const double forward_operations = s.b * s.out * s.group_channels * in_tiles * filter_parts * tile;
  const double input_operations = s.b * s.channels * s.out * out_tiles * filter_parts * tile;
  const double weight_operations = s.b * s.out * s.group_channels * in_tiles * gradient_parts * tile;
  add(forward_operations), add(input_operations), add(weight_operations);
  add(forward_operations + input_operations), add(forward_operations + input_operations + weight_operations);
}

void add_convolution(const LayerRow& conv, double batch, std::span<double> sums) {
  const Sizes sizes(conv, batch);
  Sink add(sums);
  tensors(sizes, add);
  gemm(sizes, add);
  fft(conv, sizes, add);
  winograd(conv, sizes, 4, 3, add);
  winograd(conv, sizes, 3, 2, add);
}

}  // namespace

const std::vector<std::string_view>& paper_feature_names() {
  static const std::vector<std::string_view> names = {
      "tensor_weight", "tensor_weight_gradients", "tensor_input", "tensor_output", "tensor_sum",
      //
      "im2col_forward_index", "im2col_forward_matrix", "im2col_input_index", "im2col_input_matrix",
      "im2col_weight_matrix", "im2col_forward_sum", "im2col_backward_sum", "im2col_sum",
      //
      "gemm_forward", "gemm_input", "gemm_sum",
      //
      "fft_weights", "fft_input", "fft_output", "fft_backward_weights", "fft_backward_output", "fft_forward_sum",
      "fft_input_sum", "fft_weight_sum", "fft_sum",
      //
      "fft_operations_forward", "fft_operations_input", "fft_operations_pair", "fft_operations_sum",
      //
      "winograd43_forward", "winograd43_input", "winograd43_weight", "winograd43_pair", "winograd43_sum",
      "winograd43_operations_forward", "winograd43_operations_input", "winograd43_operations_weight",
      "winograd43_operations_pair", "winograd43_operations_sum",
      //
      "winograd32_forward", "winograd32_input", "winograd32_weight", "winograd32_pair", "winograd32_sum",
      "winograd32_operations_forward", "winograd32_operations_input", "winograd32_operations_weight",
      "winograd32_operations_pair", "winograd32_operations_sum"};
  return names;
}

std::vector<double> paper_features(const LayerList& layers, double batch) {
  std::vector<double> sums(paper_feature_names().size(), 0.0);
  for (const LayerRow& row : layers.rows)
    if (row.type == LayerKind::kConv) add_convolution(row, batch, sums);
  return sums;
}

}  // namespace strobe::predict
