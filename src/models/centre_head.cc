#include "models/centre_head.h"

#include <algorithm>

#include "models/centre_peaks.h"
#include "models/nms3d.h"

namespace strobe::models {

std::vector<Box3d> decode_centres(const CentreRule& rule, std::span<const float* const> heads,
                                  const CentreDecoding& how) {
  const int64_t cells = rule.rows * rule.columns;
  const float least = logit_of(how.score_threshold);
  static constexpr float kLargestExponent = 5;
  std::vector<Box3d> boxes, of_task;
  for (size_t task = 0; task < rule.tasks.size(); ++task) {
    const float* head = heads[task];
    const auto& classes = rule.tasks[task].classes;
    of_task.clear();
    for (const Peak& peak : find_peaks(head + kCentreRegression * cells, static_cast<int64_t>(classes.size()),
                                       rule.rows, rule.columns, least, how.most)) {
      const float* at = head + peak.row * rule.columns + peak.column;
      const auto value = [&](int64_t channel) { return at[channel * cells]; };
      const auto side = [&](int64_t channel) { return std::exp(std::min(value(channel), kLargestExponent)); };
      Box3d box;
      box.x = rule.low_x + (static_cast<float>(peak.column) + value(0)) * rule.cell_x;
      box.y = rule.low_y + (static_cast<float>(peak.row) + value(1)) * rule.cell_y;
      box.z = value(2);
      box.length = side(3);
      box.width = side(4);
      box.height = side(5);
      box.yaw = std::atan2(value(6), value(7));
      box.vx = value(8);
      box.vy = value(9);
      box.class_id = classes[static_cast<size_t>(peak.channel)];
      box.score = logistic(peak.value);
      of_task.push_back(box);
    }
    for (const int32_t kept : circle_nms(of_task, rule.radius)) boxes.push_back(of_task[static_cast<size_t>(kept)]);
  }
  std::stable_sort(boxes.begin(), boxes.end(), [](const Box3d& a, const Box3d& b) { return a.score > b.score; });
  return boxes;
}

}  // namespace strobe::models
