#include "models/centre_peaks.h"

#include "models/voxel_simd.h"

namespace strobe::models {
namespace {

STROBE_VOXEL_BODY bool any_body(const float* __restrict values, size_t count, float least) {
  int any = 0;
  for (size_t i = 0; i < count; ++i) any |= values[i] >= least ? 1 : 0;
  return any != 0;
}
STROBE_VOXEL_KERNEL(bool, any_of_block, (const float* values, size_t count, float least),
                    any_body(values, count, least))

}  // namespace

bool any_at_least(const float* values, size_t count, float least) {
  return any_of_block(values, count, least);
}

std::vector<Peak> find_peaks(const float* map, int64_t channels, int64_t rows, int64_t columns, float least,
                             size_t most) {
  std::vector<Peak> peaks;
  for (int64_t channel = 0; channel < channels; ++channel) {
    const float* plane = map + channel * rows * columns;
    each_above({plane, static_cast<size_t>(rows * columns)}, least, [&](int64_t cell, float value) {
      const int64_t row = cell / columns, column = cell % columns;
      for (int64_t y = std::max<int64_t>(row - 1, 0); y <= std::min(row + 1, rows - 1); ++y)
        for (int64_t x = std::max<int64_t>(column - 1, 0); x <= std::min(column + 1, columns - 1); ++x)
          if (plane[y * columns + x] > value) return;
      peaks.push_back({value, static_cast<int32_t>(channel), static_cast<int32_t>(row), static_cast<int32_t>(column)});
    });
  }
  const size_t kept = std::min(peaks.size(), most);
  std::partial_sort(peaks.begin(), peaks.begin() + static_cast<std::ptrdiff_t>(kept), peaks.end(),
                    [](const Peak& a, const Peak& b) {
                      if (a.value != b.value) return a.value > b.value;
                      if (a.channel != b.channel) return a.channel < b.channel;
                      return a.row != b.row ? a.row < b.row : a.column < b.column;
                    });
  peaks.resize(kept);
  return peaks;
}

}  // namespace strobe::models
