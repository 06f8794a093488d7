#include "models/pillar_anchors.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <numbers>
#include <random>

#include "models/rotated_iou.h"

namespace strobe::models {
namespace {

using testing::ElementsAre;
using testing::SizeIs;

constexpr float kPi = std::numbers::pi_v<float>;

AnchorRule cars() {
  AnchorRule rule;
  rule.low_x = 0;
  rule.low_y = -10;
  rule.cell_x = rule.cell_y = 1;
  rule.columns = 30;
  rule.rows = 20;
  rule.sizes = {{4, 2, 1.5F, -1, 0, 0.6F, 0.45F}, {1, 0.5F, 1.7F, -0.6F, 1, 0.5F, 0.35F}};
  rule.classes = 2;
  return rule;
}

Box3d car(float x, float y, float yaw) {
  Box3d box;
  box.x = x;
  box.y = y;
  box.z = -0.9F;
  box.length = 4.2F;
  box.width = 1.9F;
  box.height = 1.6F;
  box.yaw = yaw;
  return box;
}

TEST(Anchors, StandInTheMiddleOfTheirCells) {
  const AnchorRule rule = cars();
  EXPECT_EQ(rule.count(), 4 * 600);
  const Box3d anchor = anchor_box(rule, (1 * 20 + 3) * 30 + 7);  // the first size, turned; row 3, column 7
  EXPECT_FLOAT_EQ(anchor.x, 7.5F);
  EXPECT_FLOAT_EQ(anchor.y, -6.5F);
  EXPECT_FLOAT_EQ(anchor.length, 4);
  EXPECT_FLOAT_EQ(anchor.yaw, kPi / 2);
  EXPECT_EQ(anchor_box(rule, 2 * 600).class_id, 1);
}

TEST(Anchors, CodesByHandAndBack) {
  const Box3d anchor = anchor_box(cars(), 0);  // 0.5, -9.5
  Box3d box = car(2.5F, -8.5F, 0.3F);
  std::vector<float> code(7);
  encode_box(box, anchor, code);
  const float diagonal = std::sqrt(20.0F);
  EXPECT_NEAR(code[0], 2 / diagonal, 1e-6);
  EXPECT_NEAR(code[1], 1 / diagonal, 1e-6);
  EXPECT_NEAR(code[2], 0.1 / 1.5, 1e-6);
  EXPECT_NEAR(code[3], std::log(0.95), 1e-6);
  EXPECT_NEAR(code[4], std::log(1.05), 1e-6);
  EXPECT_NEAR(code[6], 0.3, 1e-6);
  const Box3d back = decode_box(code, anchor);
  EXPECT_NEAR(iou_3d(back, box), 1, 1e-5);
  code.resize(9);
  box.vx = 3;
  box.vy = -1;
  encode_box(box, anchor, code);
  EXPECT_EQ(decode_box(code, anchor).vy, -1);
  code[4] = 1e30F;
  EXPECT_TRUE(std::isfinite(decode_box(code, anchor).length));
}

TEST(Anchors, LearnTheBoxesThatTheyOverlap) {
  const AnchorRule rule = cars();
  std::vector<Box3d> boxes = {car(10.5F, 0.5F, 0.1F), car(20.6F, 3.4F, kPi / 2), car(35, 0, 0)};
  boxes.push_back(car(5.3F, -4.4F, 0));  // a pedestrian between four cells: overlaps none by half
  boxes.back().length = 0.6F;
  boxes.back().width = 0.3F;
  boxes.back().class_id = 1;
  const AnchorTargets targets = assign_anchors(rule, boxes);
  ASSERT_EQ(targets.label.size(), static_cast<size_t>(rule.count()));
  ASSERT_EQ(targets.codes.size(), 7 * targets.positives.size());
  int of_class[2] = {0, 0};
  for (size_t i = 0; i < targets.positives.size(); ++i) {
    const int32_t at = targets.positives[i];
    const Box3d anchor = anchor_box(rule, at);
    const Box3d box = decode_box({targets.codes.data() + 7 * i, 7}, anchor);
    EXPECT_EQ(targets.label[static_cast<size_t>(at)], 1 + anchor.class_id);
    ++of_class[anchor.class_id];
    const auto learned =
        std::find_if(boxes.begin(), boxes.end(), [&](const Box3d& one) { return iou_3d(one, box) > 0.999F; });
    ASSERT_NE(learned, boxes.end());
    EXPECT_EQ(learned->class_id, anchor.class_id);
    EXPECT_EQ(targets.directions[i], direction_of(learned->yaw, rule.direction_offset));
    EXPECT_TRUE(nearest_bev_iou(anchor, *learned) >= 0.6F || anchor.class_id == 1);
  }
  EXPECT_GE(of_class[0], 2);
  EXPECT_EQ(of_class[1], 1) << "the best one, though it overlaps by less than is asked for";
  const auto label_of = [&](float x, float y) {
    const auto cell = static_cast<size_t>((static_cast<int>(y + 10)) * 30 + static_cast<int>(x));
    return targets.label[cell];
  };
  EXPECT_EQ(label_of(10.5F, 0.5F), 1);
  EXPECT_EQ(label_of(12.5F, 0.5F), 0) << "2 metres on: 2.1 x 1.9 of 13.9 square metres";
  EXPECT_EQ(label_of(11.5F, 0.5F), -1) << "1 metre on: neither";
  EXPECT_THAT(assign_anchors(rule, {}).positives, SizeIs(0));
}

TEST(Anchors, WhatIsEncodedIsDecoded) {
  AnchorRule rule = cars();
  std::mt19937 random(2);
  const auto uniform = [&](float low, float high) { return std::uniform_real_distribution<float>(low, high)(random); };
  const auto cells = static_cast<size_t>(rule.rows * rule.columns);
  for (const int64_t code : {7, 9}) {
    rule.code = code;
    std::vector<Box3d> boxes;
    for (int i = 0; i < 4; ++i) {
      boxes.push_back(car(4 + 7 * static_cast<float>(i) + uniform(-1, 1), uniform(-7, 7), uniform(-kPi, kPi)));
      if (code == 9) boxes.back().vx = uniform(-9, 9);
    }
    const AnchorTargets targets = assign_anchors(rule, boxes);
    // Maps as a network that has learned its targets by heart would make them.
    std::vector<float> classes(4 * 2 * cells, -9), codes(4 * static_cast<size_t>(code) * cells), directions(8 * cells);
    for (size_t i = 0; i < targets.positives.size(); ++i) {
      const auto at = static_cast<size_t>(targets.positives[i]), kind = at / cells, cell = at % cells;
      const auto class_id = static_cast<size_t>(targets.label[at] - 1);
      classes[(kind * 2 + class_id) * cells + cell] = uniform(2, 4);
      for (size_t k = 0; k < static_cast<size_t>(code); ++k)
        codes[(kind * static_cast<size_t>(code) + k) * cells + cell] = targets.codes[i * static_cast<size_t>(code) + k];
      // The yaw is learned up to half turns.
      codes[(kind * static_cast<size_t>(code) + 6) * cells + cell] += i % 2 == 0 ? kPi : 0;
      directions[(kind * 2 + static_cast<size_t>(targets.directions[i])) * cells + cell] = 1;
    }
    std::vector<Box3d> candidates;
    const auto found =
        decode_anchors(rule, {classes.data(), codes.data(), directions.data()}, {.score_threshold = 0.5F}, candidates);
    ASSERT_EQ(found.size(), boxes.size());
    for (const Box3d& box : found) {
      const auto same = std::find_if(boxes.begin(), boxes.end(), [&](const Box3d& one) {
        return iou_3d(one, box) > 0.999F && std::abs(wrap_angle(one.yaw - box.yaw)) < 1e-4F && one.vx == box.vx;
      });
      EXPECT_NE(same, boxes.end()) << box.x << " " << box.y << " " << box.yaw;
      EXPECT_GT(box.score, 0.85F);
    }
  }
}

}  // namespace
}  // namespace strobe::models
