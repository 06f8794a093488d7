#include "predict/paper_features.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

namespace strobe::predict {
namespace {

std::map<std::string, double> named(const LayerList& layers, double batch) {
  const std::vector<double> values = paper_features(layers, batch);
  std::map<std::string, double> all;
  EXPECT_EQ(values.size(), paper_feature_names().size());
  for (size_t i = 0; i < values.size(); ++i) all[std::string(paper_feature_names()[i])] = values[i];
  EXPECT_EQ(all.size(), values.size());  // no name twice
  return all;
}

// b = 2, C = 4, O = 6, g = 2 (c = 2), k = 3, H = 8, h = 4.
LayerRow convolution() {
  return {LayerKind::kConv, 4, 6, 3, 3, 2, 2, 1, 1, 2, 8, 8, 4, 4, false, false, {-1}};
}

TEST(PaperFeatures, WorkedByHand) {
  const auto f = named({"n", 0, {convolution()}}, 2);
  EXPECT_EQ(f.at("tensor_weight"), 108);            // O c k^2 = 6 2 9
  EXPECT_EQ(f.at("tensor_weight_gradients"), 216);  // b O c k^2
  EXPECT_EQ(f.at("tensor_input"), 1024);            // 2 b C H^2 = 2 2 4 64
  EXPECT_EQ(f.at("tensor_output"), 384);            // 2 b O h^2 = 2 2 6 16
  EXPECT_EQ(f.at("tensor_sum"), 1732);

  EXPECT_EQ(f.at("im2col_forward_index"), 32);     // b h^2
  EXPECT_EQ(f.at("im2col_forward_matrix"), 1152);  // b h^2 k^2 C
  EXPECT_EQ(f.at("im2col_input_index"), 128);      // b H^2
  EXPECT_EQ(f.at("im2col_input_matrix"), 4608);    // b H^2 k^2 C
  EXPECT_EQ(f.at("im2col_weight_matrix"), 576);    // b h^2 k^2 c
  EXPECT_EQ(f.at("im2col_forward_sum"), 1184);
  EXPECT_EQ(f.at("im2col_backward_sum"), 5312);
  EXPECT_EQ(f.at("im2col_sum"), 6496);

  EXPECT_EQ(f.at("gemm_forward"), 3456);  // F = b O h^2 k^2 c = 2 6 16 9 2
  EXPECT_EQ(f.at("gemm_input"), 27648);   // X = b C H^2 k^2 O = 2 4 64 9 6
  EXPECT_EQ(f.at("gemm_sum"), 34560);     // 2 F + X

  EXPECT_EQ(f.at("fft_weights"), 864);           // H (H + 1) O c = 72 12
  EXPECT_EQ(f.at("fft_input"), 576);             // H (H + 1) b C = 72 8
  EXPECT_EQ(f.at("fft_output"), 864);            // H (H + 1) b O = 72 12
  EXPECT_EQ(f.at("fft_backward_weights"), 240);  // h (h + 1) O c = 20 12
  EXPECT_EQ(f.at("fft_backward_output"), 240);   // h (h + 1) b O = 20 12
  EXPECT_EQ(f.at("fft_forward_sum"), 1440);
  EXPECT_EQ(f.at("fft_input_sum"), 480);
  EXPECT_EQ(f.at("fft_weight_sum"), 1440);
  EXPECT_EQ(f.at("fft_sum"), 2784);
  // S = b C + b O + O c = 32
  EXPECT_EQ(f.at("fft_operations_forward"), 64 * 3 * 32 + 2 * 6 * 4 * 64);  // H^2 log2(H) S + b O C H^2 = 9216
  EXPECT_EQ(f.at("fft_operations_input"), 16 * 2 * 32 + 2 * 6 * 4 * 16);    // = 1792
  EXPECT_EQ(f.at("fft_operations_pair"), 11008);
  EXPECT_EQ(f.at("fft_operations_sum"), 20224);

  // m = 4, r = 3: t = 36, ceil(H/m)^2 = 4, ceil(h/m)^2 = 1, ceil(k/r)^2 = 1, ceil(h/r)^2 = 4.
  EXPECT_EQ(f.at("winograd43_forward"), 5184);  // 3 b O t 4
  EXPECT_EQ(f.at("winograd43_input"), 864);     // 3 b C t 1
  EXPECT_EQ(f.at("winograd43_weight"), 10368);  // 3 b O c t 4
  EXPECT_EQ(f.at("winograd43_pair"), 6048);
  EXPECT_EQ(f.at("winograd43_sum"), 16416);
  EXPECT_EQ(f.at("winograd43_operations_forward"), 3456);  // b O c 4 1 t
  EXPECT_EQ(f.at("winograd43_operations_input"), 1728);    // b C O 1 1 t
  EXPECT_EQ(f.at("winograd43_operations_weight"), 13824);  // b O c 4 4 t
  EXPECT_EQ(f.at("winograd43_operations_pair"), 5184);
  EXPECT_EQ(f.at("winograd43_operations_sum"), 19008);
  // m = 3, r = 2: t = 16, ceil(8/3)^2 = 9, ceil(4/3)^2 = 4, ceil(3/2)^2 = 4, ceil(4/2)^2 = 4.
  EXPECT_EQ(f.at("winograd32_forward"), 5184);              // 3 2 6 16 9
  EXPECT_EQ(f.at("winograd32_input"), 1536);                // 3 2 4 16 4
  EXPECT_EQ(f.at("winograd32_weight"), 10368);              // 3 2 6 2 16 9
  EXPECT_EQ(f.at("winograd32_operations_forward"), 13824);  // 2 6 2 9 4 16
  EXPECT_EQ(f.at("winograd32_operations_input"), 12288);    // 2 4 6 4 4 16
  EXPECT_EQ(f.at("winograd32_operations_weight"), 13824);   // 2 6 2 9 4 16
}

// Sides that differ take the place of squares: k^2 = 3 x 1, H^2 = 8 x 2, h^2 = 4 x 2; log2 of a side is half that of
// the product.
TEST(PaperFeatures, OfUnequalSides) {
  const LayerRow conv{LayerKind::kConv, 1, 1, 3, 1, 2, 1, 1, 0, 1, 8, 2, 4, 2, false, false, {-1}};
  const auto f = named({"n", 0, {conv}}, 1);
  EXPECT_EQ(f.at("im2col_forward_matrix"), 8 * 3);
  EXPECT_EQ(f.at("fft_input"), 8 * 3);  // H (H + 1): only one side has the half spectrum
  EXPECT_EQ(f.at("fft_operations_forward"), 16 * 2 * 3 + 16);
  EXPECT_EQ(f.at("winograd43_forward"), 3 * 36 * 2 * 1);
}

TEST(PaperFeatures, AreSumsOverConvolutionsOnly) {
  LayerRow relu = convolution();
  relu.type = LayerKind::kRelu;
  const auto once = paper_features({"n", 0, {convolution()}}, 16);
  const auto twice = paper_features({"n", 0, {convolution(), relu, convolution()}}, 16);
  for (size_t i = 0; i < once.size(); ++i) EXPECT_EQ(twice[i], 2 * once[i]) << paper_feature_names()[i];
}

}  // namespace
}  // namespace strobe::predict
