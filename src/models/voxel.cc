#include "models/voxel.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "models/bev_parallel.h"
#include "models/voxel_simd.h"

namespace strobe::models {
namespace {

constexpr int64_t kBlock = 16;            // pillars that are written together
constexpr int64_t kLeastPoints = 20'000;  // that are worth a thread
constexpr int64_t kLeastBlocks = 128;

struct Grid {
  float low[3], high[3], inverse_x, inverse_y;
  int32_t columns, rows;
};

// The place along one side, within the grid also for what is outside it or no number.
STROBE_VOXEL_BODY int32_t place_of(float value, float low, float inverse, float last) {
  float at = (value - low) * inverse;
  at = at >= 0 ? at : 0;       // false for what is no number
  at = at < last ? at : last;  // the quotient of a point just below `high` may round up to the next cell
  return static_cast<int32_t>(at);
}

// cell[i] of every point, -1 where it is outside. A comparison with what is no number is false.
STROBE_VOXEL_BODY void cells_body(const float* __restrict points, int64_t stride, int64_t count, const Grid& grid,
                                  int32_t* __restrict cell) {
  const Grid g = grid;
  const float last_x = static_cast<float>(g.columns - 1), last_y = static_cast<float>(g.rows - 1);
  constexpr int64_t kChunk = 64;
  for (int64_t begin = 0; begin < count; begin += kChunk) {
    // The strided loads go first and alone, so that the arithmetic after them is vectorised.
    float x[kChunk] = {}, y[kChunk] = {}, z[kChunk] = {};
    int32_t found[kChunk];
    const int64_t here = std::min(kChunk, count - begin);
    for (int64_t i = 0; i < here; ++i) {
      const float* point = points + (begin + i) * stride;
      x[i] = point[0];
      y[i] = point[1];
      z[i] = point[2];
    }
    for (int64_t i = 0; i < kChunk; ++i) {
      const int32_t inside = static_cast<int32_t>(x[i] >= g.low[0]) & static_cast<int32_t>(x[i] < g.high[0]) &
                             static_cast<int32_t>(y[i] >= g.low[1]) & static_cast<int32_t>(y[i] < g.high[1]) &
                             static_cast<int32_t>(z[i] >= g.low[2]) & static_cast<int32_t>(z[i] < g.high[2]);
      const int32_t at =
          place_of(y[i], g.low[1], g.inverse_y, last_y) * g.columns + place_of(x[i], g.low[0], g.inverse_x, last_x);
      found[i] = (at + 1) * inside - 1;
    }
    std::memcpy(cell + begin, found, static_cast<size_t>(here) * sizeof(int32_t));
  }
}
STROBE_VOXEL_KERNEL(void, cells_of,
                    (const float* points, int64_t stride, int64_t count, const Grid& grid, int32_t* cell),
                    cells_body(points, stride, count, grid, cell))

struct Block {
  const float* staged;    // of its first pillar
  const int32_t* counts;  // kBlock
  const float* sums;      // kBlock x 4
  float centre_x[kBlock], centre_y[kBlock];
  float intensity_scale;
  int64_t max_points, rows, max_pillars;
  float* features;  // of its first pillar
};

// One lane a pillar: kBlock pillars side by side, a row of points after the other.
STROBE_VOXEL_BODY void block_body(const Block& b) {
  float mean_x[kBlock], mean_y[kBlock], mean_z[kBlock], centre_x[kBlock], centre_y[kBlock];
  int32_t counts[kBlock];
  for (int64_t i = 0; i < kBlock; ++i) {
    counts[i] = b.counts[i];
    const auto count = static_cast<float>(std::max(counts[i], 1));
    mean_x[i] = b.sums[4 * i] / count;
    mean_y[i] = b.sums[4 * i + 1] / count;
    mean_z[i] = b.sums[4 * i + 2] / count;
    centre_x[i] = b.centre_x[i];
    centre_y[i] = b.centre_y[i];
  }
  const int64_t plane = b.max_points * b.max_pillars;
  const float scale = b.intensity_scale;
  for (int64_t row = 0; row < b.rows; ++row) {
    // The gathering goes first and alone, from memory that is always there, and nothing is written to where something
    // is read: the arithmetic in between is vectorised.
    float x[kBlock], y[kBlock], z[kBlock], w[kBlock];
    for (int64_t i = 0; i < kBlock; ++i) {
      const float* point = b.staged + (i * b.max_points + row) * 4;
      x[i] = point[0];
      y[i] = point[1];
      z[i] = point[2];
      w[i] = point[3];
    }
    float value[kPillarFeatures][kBlock];
    for (int64_t i = 0; i < kBlock; ++i) {
      // What an earlier sweep left is finite, so that a factor takes it away.
      const float there = row < counts[i] ? 1.0F : 0.0F;
      value[0][i] = x[i] * there;
      value[1][i] = y[i] * there;
      value[2][i] = z[i] * there;
      value[3][i] = w[i] * scale * there;
      value[4][i] = (x[i] - mean_x[i]) * there;
      value[5][i] = (y[i] - mean_y[i]) * there;
      value[6][i] = (z[i] - mean_z[i]) * there;
      value[7][i] = (x[i] - centre_x[i]) * there;
      value[8][i] = (y[i] - centre_y[i]) * there;
    }
    float* out = b.features + row * b.max_pillars;
    for (int64_t f = 0; f < kPillarFeatures; ++f) std::memcpy(out + f * plane, value[f], sizeof value[f]);
  }
}
STROBE_VOXEL_KERNEL(void, write_pillars, (const Block& block), block_body(block))

int64_t blocks_of(int64_t pillars) {
  return (pillars + kBlock - 1) / kBlock;
}

}  // namespace

Pillars::Pillars(const PillarRule& rule) : rule_(rule), columns_(rule.columns()), rows_(rule.rows()) {
  // Whole blocks: the last one may be wider than the plane, so it is written to a copy (write_block).
  features_.resize(static_cast<size_t>(kPillarFeatures * rule.max_points * rule.max_pillars));
  const int64_t blocks = blocks_of(rule.max_pillars);
  counts_.resize(static_cast<size_t>(blocks * kBlock));
  staged_.resize(static_cast<size_t>(blocks * kBlock * rule.max_points * 4));
  sums_.resize(static_cast<size_t>(blocks * kBlock * 4));
  written_.resize(static_cast<size_t>(blocks));
  pillar_of_.assign(static_cast<size_t>(columns_ * rows_), -1);
  cells_.reserve(static_cast<size_t>(rule.max_pillars));
}

void Pillars::fill(std::span<const float> points, int columns, int threads) {
  if (columns < 4) columns = 4;
  const auto count = static_cast<int64_t>(points.size()) / columns;
  if (cell_of_.size() < static_cast<size_t>(count)) cell_of_.resize(static_cast<size_t>(count));
  Grid grid{};
  std::copy(rule_.low, rule_.low + 3, grid.low);
  std::copy(rule_.high, rule_.high + 3, grid.high);
  grid.inverse_x = 1 / rule_.side_x;
  grid.inverse_y = 1 / rule_.side_y;
  grid.columns = static_cast<int32_t>(columns_);
  grid.rows = static_cast<int32_t>(rows_);
  in_parallel(threads, count, kLeastPoints, [&, columns](int64_t begin, int64_t end) {
    cells_of(points.data() + begin * columns, columns, end - begin, grid, cell_of_.data() + begin);
  });

  std::fill_n(counts_.begin(), cells_.size(), 0);  // of the sweep before
  cells_.clear();
  place(points.first(static_cast<size_t>(count * columns)), columns);
  for (const int32_t cell : cells_) pillar_of_[static_cast<size_t>(cell)] = -1;
  in_parallel(threads, static_cast<int64_t>(written_.size()), kLeastBlocks, [this](int64_t begin, int64_t end) {
    for (int64_t block = begin; block < end; ++block) write_block(block);
  });
}

void Pillars::place(std::span<const float> points, int columns) {
  in_range_ = dropped_ = 0;
  const auto step = static_cast<size_t>(columns);
  const size_t count = points.size() / step;
  for (size_t i = 0; i < count; ++i) {
    const int32_t cell = cell_of_[i];
    if (cell < 0) continue;
    ++in_range_;
    int32_t& pillar = pillar_of_[static_cast<size_t>(cell)];
    if (pillar < 0) {
      if (static_cast<int64_t>(cells_.size()) == rule_.max_pillars) {
        ++dropped_;
        continue;
      }
      pillar = static_cast<int32_t>(cells_.size());
      cells_.push_back(cell);
      std::fill_n(sums_.data() + 4 * pillar, 4, 0.0F);
    }
    int32_t& held = counts_[static_cast<size_t>(pillar)];
    if (held == rule_.max_points) {
      ++dropped_;
      continue;
    }
    float* place = staged_.data() + (pillar * rule_.max_points + held++) * 4;
    std::memcpy(place, points.data() + i * step, 4 * sizeof(float));
    if (!std::isfinite(place[3])) place[3] = 0;  // an intensity that is no number would spoil all that follows
    float* sum = sums_.data() + 4 * pillar;
    for (int axis = 0; axis < 3; ++axis) sum[axis] += place[axis];
  }
}

void Pillars::write_block(int64_t block) {
  const auto first = static_cast<size_t>(block * kBlock);
  int32_t& before = written_[static_cast<size_t>(block)];
  const int32_t* counts = counts_.data() + first;
  const int32_t rows = *std::max_element(counts, counts + kBlock);
  const int64_t plane = rule_.max_points * rule_.max_pillars;
  const int64_t width = std::min(kBlock, rule_.max_pillars - block * kBlock);
  const auto each_row = [&](int64_t from, int64_t to, auto action) {
    for (int64_t feature = 0; feature < kPillarFeatures; ++feature)
      for (int64_t row = from; row < to; ++row)
        action(features_.data() + feature * plane + row * rule_.max_pillars + first, feature, row);
  };
  each_row(rows, before, [&](float* at, int64_t, int64_t) { std::fill_n(at, width, 0.0F); });
  before = rows;
  if (rows == 0) return;

  Block of{};
  of.staged = staged_.data() + static_cast<int64_t>(first) * rule_.max_points * 4;
  of.counts = counts;
  of.sums = sums_.data() + 4 * first;
  of.intensity_scale = rule_.intensity_scale;
  of.max_points = rule_.max_points;
  of.rows = rows;
  of.max_pillars = rule_.max_pillars;
  of.features = features_.data() + first;
  for (int64_t i = 0; i < kBlock && first + static_cast<size_t>(i) < cells_.size(); ++i) {
    const int32_t cell = cells_[first + static_cast<size_t>(i)];
    const auto column = static_cast<float>(cell % columns_), row = static_cast<float>(cell / columns_);
    of.centre_x[i] = rule_.low[0] + (column + 0.5F) * rule_.side_x;
    of.centre_y[i] = rule_.low[1] + (row + 0.5F) * rule_.side_y;
  }
  if (width == kBlock) {
    write_pillars(of);
    return;
  }
  // The block that the plane ends in: through a buffer of its own width.
  std::vector<float> wide(static_cast<size_t>(kPillarFeatures * rule_.max_points * kBlock));
  of.max_pillars = kBlock;
  of.features = wide.data();
  write_pillars(of);
  each_row(0, rows, [&](float* at, int64_t feature, int64_t row) {
    std::copy_n(wide.data() + (feature * rule_.max_points + row) * kBlock, width, at);
  });
}

}  // namespace strobe::models
