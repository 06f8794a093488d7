#include "models/bev_pool.h"

#include <algorithm>
#include <cmath>

#include "models/bev_parallel.h"
#include "models/voxel_simd.h"

namespace strobe::models {
namespace {

using Pair = BevPool::Entry;

// sum[c] of depth * context over the points of a cell; context is pixel by pixel, its channels side by side.
STROBE_VOXEL_BODY void sum_body(const Pair* __restrict points, int64_t count, const float* __restrict depth,
                                const float* __restrict context, int64_t channels, float* __restrict sum) {
  constexpr int64_t kLanes = 16;  // sums that stay in registers
  int64_t begin = 0;
  for (; begin + kLanes <= channels; begin += kLanes) {
    float lane[kLanes] = {};
    for (int64_t i = 0; i < count; ++i) {
      const float weight = depth[points[i].depth];
      const float* from = context + points[i].pixel * channels + begin;
      for (int64_t c = 0; c < kLanes; ++c) lane[c] += weight * from[c];
    }
    for (int64_t c = 0; c < kLanes; ++c) sum[begin + c] = lane[c];
  }
  for (; begin < channels; ++begin) {
    float one = 0;
    for (int64_t i = 0; i < count; ++i) one += depth[points[i].depth] * context[points[i].pixel * channels + begin];
    sum[begin] = one;
  }
}
STROBE_VOXEL_KERNEL(void, sum_points,
                    (const Pair* points, int64_t count, const float* depth, const float* context, int64_t channels,
                     float* sum),
                    sum_body(points, count, depth, context, channels, sum))

// channels x pixels to pixels x channels, tile by tile.
void transpose(const float* in, int64_t channels, int64_t pixels, float* out) {
  constexpr int64_t kTile = 16;
  for (int64_t c = 0; c < channels; c += kTile)
    for (int64_t p = 0; p < pixels; p += kTile)
      for (int64_t i = p; i < std::min(p + kTile, pixels); ++i)
        for (int64_t k = c; k < std::min(c + kTile, channels); ++k) out[i * channels + k] = in[k * pixels + i];
}

}  // namespace

BevPool::BevPool(const LiftRule& rule, const BevGrid& grid, std::span<const Camera> cameras)
    : rule_(rule), grid_(grid), cameras_(static_cast<int64_t>(cameras.size())) {
  struct Placed {
    int32_t cell;
    Entry entry;
  };
  std::vector<Placed> placed;
  const int64_t pixels = rule.rows * rule.columns;
  for (int64_t camera = 0; camera < cameras_; ++camera) {
    const Camera& own = cameras[static_cast<size_t>(camera)];
    for (int64_t bin = 0; bin < rule.bins; ++bin) {
      for (int64_t pixel = 0; pixel < pixels; ++pixel) {
        const auto row = static_cast<float>(pixel / rule.columns), column = static_cast<float>(pixel % rule.columns);
        const Point3 point =
            unproject(own, {(column + 0.5F) / static_cast<float>(rule.columns) * static_cast<float>(own.width),
                            (row + 0.5F) / static_cast<float>(rule.rows) * static_cast<float>(own.height),
                            rule.first_depth + (static_cast<float>(bin) + 0.5F) * rule.bin_size});
        const float x = std::floor((point.x - grid.low_x) / grid.cell_x);
        const float y = std::floor((point.y - grid.low_y) / grid.cell_y);
        const bool inside = x >= 0 && y >= 0 && x < static_cast<float>(grid.columns) &&
                            y < static_cast<float>(grid.rows) && point.z >= grid.low_z && point.z < grid.high_z;
        if (!inside) continue;
        const int64_t cell = static_cast<int64_t>(y) * grid.columns + static_cast<int64_t>(x);
        placed.push_back({static_cast<int32_t>(cell),
                          {static_cast<int32_t>((camera * rule.bins + bin) * pixels + pixel),
                           static_cast<int32_t>(camera * pixels + pixel)}});
      }
    }
  }
  std::stable_sort(placed.begin(), placed.end(), [](const Placed& a, const Placed& b) { return a.cell < b.cell; });
  for (const Placed& one : placed) {
    if (interval_cell_.empty() || interval_cell_.back() != one.cell) {
      interval_cell_.push_back(one.cell);
      interval_begin_.push_back(points());
    }
    entries_.push_back(one.entry);
  }
  interval_begin_.push_back(points());
}

void BevPool::run(std::span<const float> depth, std::span<const float> context, int64_t channels, std::span<float> map,
                  std::vector<float>& scratch, int threads) const {
  const int64_t pixels = rule_.rows * rule_.columns, plane = grid_.rows * grid_.columns;
  scratch.resize(static_cast<size_t>(cameras_ * pixels * channels));
  in_parallel(threads, cameras_, 2, [&](int64_t begin, int64_t end) {
    for (int64_t camera = begin; camera < end; ++camera)
      transpose(context.data() + camera * channels * pixels, channels, pixels,
                scratch.data() + camera * pixels * channels);
  });
  constexpr int64_t kLeastCells = 1024;
  in_parallel(threads, cells(), kLeastCells, [&](int64_t begin, int64_t end) {
    std::vector<float> sum(static_cast<size_t>(channels));
    for (int64_t i = begin; i < end; ++i) {
      const auto at = static_cast<size_t>(i);
      sum_points(entries_.data() + interval_begin_[at], interval_begin_[at + 1] - interval_begin_[at], depth.data(),
                 scratch.data(), channels, sum.data());
      float* out = map.data() + interval_cell_[at];
      for (int64_t c = 0; c < channels; ++c) out[c * plane] = sum[static_cast<size_t>(c)];
    }
  });
}

}  // namespace strobe::models
