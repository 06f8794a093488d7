#include "models/nms3d.h"

#include <algorithm>
#include <numeric>

#include "models/rotated_iou.h"
#include "models/voxel_simd.h"

namespace strobe::models {
namespace {

// The boxes that stayed, as columns.
struct Kept {
  std::vector<float> x, y, reach;
  std::vector<int32_t> class_id, index;
  std::vector<uint8_t> near;
  explicit Kept(size_t most) : near(most + 1) {
    for (auto* column : {&x, &y, &reach}) column->reserve(most);
    class_id.reserve(most);
    index.reserve(most);
  }
  void add(const Box3d& box, float its_reach, int32_t at) {
    x.push_back(box.x);
    y.push_back(box.y);
    reach.push_back(its_reach);
    class_id.push_back(box.class_id);
    index.push_back(at);
  }
};

// near[i] = whether the distance to (x, y) is less than reach[i] + own. Returns whether any is.
STROBE_VOXEL_BODY bool near_body(const float* __restrict x, const float* __restrict y, const float* __restrict reach,
                                 float at_x, float at_y, float own, size_t count, uint8_t* __restrict near) {
  uint8_t any = 0;
  for (size_t i = 0; i < count; ++i) {
    const float dx = x[i] - at_x, dy = y[i] - at_y, sum = reach[i] + own;
    near[i] = dx * dx + dy * dy < sum * sum ? 1 : 0;
    any |= near[i];
  }
  return any != 0;
}
STROBE_VOXEL_KERNEL(bool, near_of,
                    (const float* x, const float* y, const float* reach, float at_x, float at_y, float own,
                     size_t count, uint8_t* near),
                    near_body(x, y, reach, at_x, at_y, own, count, near))

std::vector<int32_t> by_score(std::span<const Box3d> boxes) {
  std::vector<int32_t> order(boxes.size());
  std::iota(order.begin(), order.end(), 0);
  std::erase_if(order, [&](int32_t i) { return std::isnan(boxes[static_cast<size_t>(i)].score); });
  std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    return boxes[static_cast<size_t>(a)].score > boxes[static_cast<size_t>(b)].score;
  });
  return order;
}

// reach_of(box): radius within which another box may matter, half of it each; suppressed(better, box).
template <typename Reach, typename Suppressed>
std::vector<int32_t> greedy(std::span<const Box3d> boxes, bool any_class, size_t most, Reach reach_of,
                            Suppressed suppressed) {
  if (most == 0) most = boxes.size();
  Kept kept(std::min(most, boxes.size()));
  for (const int32_t at : by_score(boxes)) {
    if (kept.index.size() >= most) break;
    const Box3d& box = boxes[static_cast<size_t>(at)];
    const float reach = reach_of(box);
    const size_t count = kept.index.size();
    bool stays = true;
    if (near_of(kept.x.data(), kept.y.data(), kept.reach.data(), box.x, box.y, reach, count, kept.near.data())) {
      for (size_t i = 0; i < count && stays; ++i) {
        if (!kept.near[i] || (!any_class && kept.class_id[i] != box.class_id)) continue;
        stays = !suppressed(boxes[static_cast<size_t>(kept.index[i])], box);
      }
    }
    if (stays) kept.add(box, reach, at);
  }
  return std::move(kept.index);
}

}  // namespace

std::vector<int32_t> rotated_nms(std::span<const Box3d> boxes, float iou, bool any_class, size_t most) {
  return greedy(
      boxes, any_class, most, [](const Box3d& box) { return 0.5F * std::hypot(box.length, box.width); },
      [iou](const Box3d& better, const Box3d& box) { return bev_iou(better, box) > iou; });
}

std::vector<int32_t> circle_nms(std::span<const Box3d> boxes, std::span<const float> radius, size_t most) {
  const auto half = [&](const Box3d& box) {
    const auto id = static_cast<size_t>(box.class_id);
    return box.class_id >= 0 && id < radius.size() ? 0.5F * radius[id] : 0.0F;
  };
  // Of one class both halves are equal: nearer than the radius is all there is to ask.
  return greedy(boxes, false, most, half, [](const Box3d&, const Box3d&) { return true; });
}

}  // namespace strobe::models
