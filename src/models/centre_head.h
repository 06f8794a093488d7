// Heads that find objects by their centres (CenterPoint, Yin et al. 2021, arXiv:2006.11275), on a map seen from above.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "models/box3d.h"

namespace strobe::models {

// A head answers for some classes. Channels: offset x, y of the centre in its cell; z of the centre; logarithms of
// length, width, height; sine, cosine of the yaw; velocity x, y; a heat map of logits a class.
inline constexpr int64_t kCentreRegression = 10;
struct CentreTask {
  std::vector<int> classes;
};
struct CentreRule {
  float low_x = 0, low_y = 0, cell_x = 0, cell_y = 0;  // metres
  int64_t columns = 0, rows = 0;
  std::vector<CentreTask> tasks;
  std::vector<float> radius;  // by class: centres that are nearer are one object, metres
};
struct CentreDecoding {
  float score_threshold = 0.1F;
  size_t most = 83;  // of a task, as in CenterPoint's 500 over six
};
// heads: one map a task, (kCentreRegression + classes) x rows x columns. Best first, suppressed by circles within
// a class (CenterPoint: within a task).
std::vector<Box3d> decode_centres(const CentreRule& rule, std::span<const float* const> heads,
                                  const CentreDecoding& how);

}  // namespace strobe::models
