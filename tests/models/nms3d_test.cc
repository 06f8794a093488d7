#include "models/nms3d.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <limits>
#include <random>

#include "models/rotated_iou.h"

namespace strobe::models {
namespace {

using testing::ElementsAre;

std::vector<Box3d> random_boxes(size_t count, uint32_t seed) {
  std::mt19937 random(seed);
  const auto uniform = [&](float low, float high) { return std::uniform_real_distribution<float>(low, high)(random); };
  std::vector<Box3d> boxes(count);
  for (Box3d& box : boxes) {
    box.x = uniform(-20, 20);
    box.y = uniform(-20, 20);
    box.length = uniform(0.5F, 6);
    box.width = uniform(0.5F, 3);
    box.height = 1;
    box.yaw = uniform(-3.2F, 3.2F);
    box.class_id = static_cast<int>(random() % 3);
    box.score = std::round(uniform(0, 50)) / 50;  // some are equal
  }
  return boxes;
}

// All pairs, no shortcuts.
template <typename Suppressed>
std::vector<int32_t> plain(const std::vector<Box3d>& boxes, Suppressed suppressed) {
  std::vector<int32_t> order, kept;
  for (size_t i = 0; i < boxes.size(); ++i) order.push_back(static_cast<int32_t>(i));
  const auto at = [&](int32_t i) -> const Box3d& { return boxes[static_cast<size_t>(i)]; };
  std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) { return at(a).score > at(b).score; });
  for (const int32_t i : order)
    if (std::none_of(kept.begin(), kept.end(), [&](int32_t k) { return suppressed(at(k), at(i)); })) kept.push_back(i);
  return kept;
}

TEST(Nms3d, RotatedAgreesWithAllPairs) {
  for (uint32_t seed = 0; seed < 20; ++seed) {
    const auto boxes = random_boxes(1 + seed * 30, seed);
    for (const float iou : {0.01F, 0.2F, 0.7F}) {
      EXPECT_EQ(rotated_nms(boxes, iou), plain(boxes, [&](const Box3d& a, const Box3d& b) {
                  return a.class_id == b.class_id && bev_iou(a, b) > iou;
                }));
      EXPECT_EQ(rotated_nms(boxes, iou, true),
                plain(boxes, [&](const Box3d& a, const Box3d& b) { return bev_iou(a, b) > iou; }));
    }
  }
}

TEST(Nms3d, CircleAgreesWithAllPairs) {
  const std::vector<float> radius = {0.5F, 3};  // the third class has none
  for (uint32_t seed = 0; seed < 20; ++seed) {
    const auto boxes = random_boxes(1 + seed * 30, seed);
    EXPECT_EQ(circle_nms(boxes, radius), plain(boxes, [&](const Box3d& a, const Box3d& b) {
                if (a.class_id != b.class_id || a.class_id == 2) return false;
                const float r = radius[static_cast<size_t>(a.class_id)];
                return (a.x - b.x) * (a.x - b.x) + (a.y - b.y) * (a.y - b.y) < r * r;
              }));
  }
}

TEST(Nms3d, ByHand) {
  std::vector<Box3d> boxes(4);
  for (Box3d& box : boxes) box.length = box.width = box.height = 2;
  boxes[0].score = 0.5F;
  boxes[1].score = 0.9F;
  boxes[1].x = 0.5F;  // 3 / 5 of both
  boxes[2].score = 0.7F;
  boxes[2].x = 10;
  boxes[3].score = std::numeric_limits<float>::quiet_NaN();
  EXPECT_THAT(rotated_nms(boxes, 0.5F), ElementsAre(1, 2));
  EXPECT_THAT(rotated_nms(boxes, 0.61F), ElementsAre(1, 2, 0));
  EXPECT_THAT(rotated_nms(boxes, 0.61F, false, 2), ElementsAre(1, 2));
  EXPECT_THAT(circle_nms(boxes, std::vector<float>{0.6F}), ElementsAre(1, 2));
  EXPECT_THAT(circle_nms(boxes, std::vector<float>{0.4F}), ElementsAre(1, 2, 0));
  EXPECT_THAT(rotated_nms({}, 0.5F), ElementsAre());
}

}  // namespace
}  // namespace strobe::models
