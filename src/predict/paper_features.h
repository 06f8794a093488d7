// The features of perf4sight (Rajagopal and Bouganis 2021, arXiv:2108.05580): what a training step with a batch of b
// items would allocate and compute in each of the algorithms that a convolution may be run by, summed over the
// network's convolutions. docs/prediction.md has every formula.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "predict/layer_list.h"

namespace strobe::predict {

// Names in the order of the values: "tensor_weight", ..., "winograd32_operations_sum".
const std::vector<std::string_view>& paper_feature_names();

// Rows other than conv add nothing. Where the paper has squares of one side (H, h, k), both sides are multiplied.
// Counts of numbers and of multiply-adds as the paper has them, not bytes.
std::vector<double> paper_features(const LayerList& layers, double batch);

}  // namespace strobe::predict
