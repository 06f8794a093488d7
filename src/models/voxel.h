// Points into pillars: upright columns on a grid seen from above, each with the features that PointPillars (Lang et al.
// 2019, arXiv:1812.05784, section 2.1) gives its points.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace strobe::models {

// x, y, z, intensity; x, y, z less the mean of the pillar's points; x, y less the pillar's centre.
inline constexpr int64_t kPillarFeatures = 9;

struct PillarRule {
  float low[3] = {0, 0, 0}, high[3] = {0, 0, 0};                      // metres; a point at `high` is outside
  float side_x = 0, side_y = 0;                                       // of a pillar, metres
  int64_t max_points = 0;                                             // of a pillar; later ones are dropped
  int64_t max_pillars = 0;                                            // of a sweep; points of later ones are dropped
  float intensity_scale = 1;                                          // 1 / 255 where a sensor counts to 255
  int64_t columns() const { return cells(low[0], high[0], side_x); }  // along x
  int64_t rows() const { return cells(low[1], high[1], side_y); }     // along y

 private:
  static int64_t cells(float low, float high, float side) { return static_cast<int64_t>((high - low) / side + 0.5F); }
};

// The pillars of one sweep and the memory to find them, reused from sweep to sweep: features that were written for the
// sweep before are cleared, nothing else is touched.
class Pillars {
 public:
  explicit Pillars(const PillarRule& rule);

  // points: `columns` numbers each (at least 4), of which the first are x, y, z, intensity; a last incomplete one is
  // left out, as are points outside the range or not finite. Points and pillars are taken in the order in which they
  // come. threads: at most as many.
  void fill(std::span<const float> points, int columns, int threads = 1);

  const PillarRule& rule() const { return rule_; }
  // kPillarFeatures x max_points x max_pillars; zero where there is no point.
  const std::vector<float>& features() const { return features_; }
  int64_t count() const { return static_cast<int64_t>(cells_.size()); }
  // By pillar: row * columns + column of its cell; how many points it holds.
  std::span<const int32_t> cells() const { return cells_; }
  std::span<const int32_t> points() const { return {counts_.data(), cells_.size()}; }
  int64_t points_in_range() const { return in_range_; }
  int64_t dropped_points() const { return dropped_; }  // in range, but without a place

 private:
  void place(std::span<const float> points, int columns);
  void write_block(int64_t block);

  PillarRule rule_;
  int64_t columns_, rows_;
  std::vector<float> features_;
  std::vector<int32_t> cells_, counts_;
  std::vector<int32_t> pillar_of_;  // by cell; -1: none
  std::vector<int32_t> cell_of_;    // by point; -1: out of range
  std::vector<float> staged_;       // pillar, point, 4
  std::vector<float> sums_;         // pillar, 4: of x, y, z
  std::vector<int32_t> written_;    // by block of pillars: rows of points that are not zero
  int64_t in_range_ = 0, dropped_ = 0;
};

}  // namespace strobe::models
