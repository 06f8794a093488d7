// What a PictureSampling says, done the slow obvious way.
#pragma once

#include <algorithm>
#include <vector>

#include "strobe/base/picture_sampling.h"

namespace strobe::test {

// 3 x height x width.
inline std::vector<float> sample(const PictureBytes& picture) {
  const PictureSampling& rule = *picture.sampling;
  std::vector<float> values;
  for (size_t c = 0; c < PictureSampling::kChannels; ++c) {
    for (int64_t y = 0; y < rule.height; ++y) {
      for (int64_t x = 0; x < rule.width; ++x) {
        const int64_t row = y - rule.top, column = x - rule.left;
        double value = 127.5;
        if (row >= 0 && row < rule.placed_height && column >= 0 && column < rule.placed_width) {
          value = rule.offset[c];
          for (size_t k = 0; k < PictureSampling::kChannels; ++k) {
            const PictureSampling::Component& from = rule.components[k];
            const PictureBytes::Plane& plane = picture.planes[static_cast<size_t>(from.plane)];
            const auto r = static_cast<size_t>(row), i = static_cast<size_t>(column);
            const auto at = [&](int64_t of_row, int64_t of_column) -> double {
              return plane.data[of_row * plane.stride + from.offset + of_column * from.step];
            };
            const auto across = [&](int64_t of_row) {
              const double weight = from.columns.weight[i];
              return (1 - weight) * at(of_row, from.columns.first[i]) + weight * at(of_row, from.columns.second[i]);
            };
            const double weight = from.rows.weight[r];
            value +=
                rule.mix[c][k] * ((1 - weight) * across(from.rows.first[r]) + weight * across(from.rows.second[r]));
          }
          value = std::clamp(value, 0.0, 255.0);
        }
        values.push_back(static_cast<float>(value * rule.gain[c] + rule.bias[c]));
      }
    }
  }
  return values;
}

}  // namespace strobe::test
