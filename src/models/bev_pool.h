// Lift, splat (Philion and Fidler 2020, arXiv:2008.05711): each pixel of a camera's feature map is spread along its ray
// by a distribution over depths, and what falls into a cell of the map seen from above is summed up there. As cameras
// do not move on their vehicle, the cell of every point of the rays is known beforehand and sorted (BEVFusion, Liu et
// al. 2022, section 3.2: intervals).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "models/bev_camera.h"

namespace strobe::models {

struct LiftRule {
  int64_t rows = 0, columns = 0;        // of a camera's feature map; it covers the whole picture
  int64_t bins = 0;                     // of depth
  float first_depth = 0, bin_size = 0;  // metres; a bin stands for its middle
};
struct BevGrid {
  float low_x = 0, low_y = 0, low_z = 0, high_z = 0, cell_x = 0, cell_y = 0;  // metres
  int64_t columns = 0, rows = 0;
};

class BevPool {
 public:
  // A point of a ray.
  struct Entry {
    int32_t depth;  // index into depth
    int32_t pixel;  // camera * rows * columns + row * columns + column
  };
  BevPool(const LiftRule& rule, const BevGrid& grid, std::span<const Camera> cameras);

  // depth: cameras x bins x rows x columns; context: cameras x channels x rows x columns; map: channels x grid rows x
  // grid columns, of which only cells that some ray reaches are written: zero it once before. scratch: reused memory.
  void run(std::span<const float> depth, std::span<const float> context, int64_t channels, std::span<float> map,
           std::vector<float>& scratch, int threads = 1) const;

  int64_t points() const { return static_cast<int64_t>(entries_.size()); }       // of rays that fall onto the map
  int64_t cells() const { return static_cast<int64_t>(interval_cell_.size()); }  // that they fall into

 private:
  LiftRule rule_;
  BevGrid grid_;
  int64_t cameras_;
  std::vector<Entry> entries_;           // by cell, then in the order of cameras, bins, pixels
  std::vector<int64_t> interval_begin_;  // of each cell that is reached; one more at the end
  std::vector<int32_t> interval_cell_;
};

}  // namespace strobe::models
