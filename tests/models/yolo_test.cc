#include "models/yolo.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "models/graph_builder.h"

namespace strobe::models {
namespace {

constexpr int kClasses = 3;
constexpr int kPlanes = 5 + kClasses;

// One head of two anchors on a 4x6 grid (height x width) of a 64x96 input.
Graph one_head(float scale_x_y = 1, bool new_coords = false) {
  GraphBuilder builder("one-head");
  const LayerId input = *builder.input({2 * kPlanes, 64, 96});
  Pool pool;
  pool.kernel_h = pool.kernel_w = pool.stride_h = pool.stride_w = 16;
  const LayerId grid = *builder.append("grid", pool, {input});
  YoloHead head{{10, 20, 30, 40}, kClasses, scale_x_y, new_coords};
  builder.add_output(*builder.append("head", head, {grid}));
  return *std::move(builder).finish();
}

struct RawMap {
  std::vector<float> values = std::vector<float>(2 * kPlanes * 24, -20.0F);
  float& at(int anchor, int plane, int y, int x) {
    return values[static_cast<size_t>(((anchor * kPlanes + plane) * 4 + y) * 6 + x)];
  }
  void put(int anchor, int y, int x, std::initializer_list<float> planes) {
    int plane = 0;
    for (const float value : planes) at(anchor, plane++, y, x) = value;
  }
};

std::vector<Detection> decode(const Graph& graph, const RawMap& map, const PicturePlacement& placement,
                              const DetectOptions& options = {}) {
  const float* outputs[] = {map.values.data()};
  return YoloDecoder::create(graph, options)->decode(outputs, placement);
}

constexpr PicturePlacement kSameSize{0, 0, 96, 64, 96, 64};

double logistic(double x) {
  return 1 / (1 + std::exp(-x));
}

TEST(YoloDecoder, FollowsTheFormulas) {
  RawMap map;
  map.put(1, 2, 3, {0.4F, -0.3F, -0.2F, -0.5F, 1.0F, -3, 2.0F, 1.5F});
  const auto boxes = decode(one_head(1.05F), map, kSameSize);
  ASSERT_EQ(boxes.size(), 1U);
  EXPECT_EQ(boxes[0].class_id, 1);
  EXPECT_NEAR(boxes[0].score, logistic(1) * logistic(2), 1e-6);
  const double w = 30 * std::exp(-0.2), h = 40 * std::exp(-0.5);
  EXPECT_NEAR(boxes[0].width, w, 1e-4);
  EXPECT_NEAR(boxes[0].height, h, 1e-4);
  EXPECT_NEAR(boxes[0].x, 16 * (3 + 1.05 * logistic(0.4) - 0.025) - w / 2, 1e-4);
  EXPECT_NEAR(boxes[0].y, 16 * (2 + 1.05 * logistic(-0.3) - 0.025) - h / 2, 1e-4);
}

TEST(YoloDecoder, FollowsTheFormulasOfScaledYolov4) {
  RawMap map;
  for (float& value : map.values) value = 0;
  map.put(0, 1, 1, {0.6F, 0.3F, 0.7F, 0.4F, 0.9F, 0.1F, 0.2F, 0.8F});
  const auto boxes = decode(one_head(2, true), map, kSameSize);
  ASSERT_EQ(boxes.size(), 1U);
  EXPECT_EQ(boxes[0].class_id, 2);
  EXPECT_NEAR(boxes[0].score, 0.72, 1e-6);
  EXPECT_NEAR(boxes[0].width, 10 * 1.4 * 1.4, 1e-4);
  EXPECT_NEAR(boxes[0].height, 20 * 0.8 * 0.8, 1e-4);
  EXPECT_NEAR(boxes[0].x, 16 * (1 + 2 * 0.6 - 0.5) - 9.8, 1e-4);
  EXPECT_NEAR(boxes[0].y, 16 * (1 + 2 * 0.3 - 0.5) - 6.4, 1e-4);
}

TEST(YoloDecoder, MapsIntoThePictureAndClips) {
  RawMap map;
  map.put(0, 2, 3, {0, 0, 0, 0, 5, 5, -5, -5});        // centre (56, 40), 10x20
  map.put(1, 0, 0, {0, 0, 0.7F, 0.1F, 4, -5, 5, -5});  // over the top left corner
  // Letterboxed: a 240x120 picture lies at (0, 8), 96x48.
  const auto boxes = decode(one_head(), map, {0, 8, 96, 48, 240, 120});
  ASSERT_EQ(boxes.size(), 2U);
  EXPECT_NEAR(boxes[0].x, (56 - 5) * 2.5, 1e-3);
  EXPECT_NEAR(boxes[0].y, (40 - 10 - 8) * 2.5, 1e-3);
  EXPECT_NEAR(boxes[0].width, 25, 1e-3);
  EXPECT_NEAR(boxes[0].height, 50, 1e-3);
  EXPECT_EQ(boxes[1].x, 0);
  EXPECT_EQ(boxes[1].y, 0);
  EXPECT_NEAR(boxes[1].width, (8 + 15 * std::exp(0.7)) * 2.5, 1e-3);
  EXPECT_NEAR(boxes[1].height, (20 * std::exp(0.1)) * 2.5, 1e-3);
}

TEST(YoloDecoder, IgnoresBoxesOutsideThePictureAndBrokenNumbers) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  constexpr float kInf = std::numeric_limits<float>::infinity();
  RawMap map;
  map.put(0, 0, 0, {0, 0, -3, -3, 5, 5, 5, 5});  // in the black bar above the picture
  map.put(0, 2, 2, {kNan, 0, 0, 0, 5, 5, 5, 5});
  map.put(0, 2, 3, {0, 0, kInf, 0, 5, 5, 5, 5});
  map.put(0, 2, 4, {0, 0, 0, 0, kNan, 5, 5, 5});
  map.put(0, 2, 5, {0, 0, 0, 0, 5, kNan, kNan, kNan});
  EXPECT_TRUE(decode(one_head(), map, {0, 16, 96, 32, 96, 32}).empty());
}

// The slow obvious way, over random maps: every cell decoded, then compared.
TEST(YoloDecoder, SkipsNothingThatCounts) {
  std::mt19937 random(5);
  std::normal_distribution<float> normal(0, 2);
  const Graph graph = one_head();
  for (const float threshold : {0.0F, 0.05F, 0.3F, 0.9F, 1.0F}) {
    RawMap map;
    for (float& value : map.values) value = normal(random);
    size_t expected = 0;
    for (int cell = 0; cell < 48; ++cell) {
      const auto value = [&](int plane) { return map.at(cell / 24, plane, cell % 24 / 6, cell % 6); };
      const float best = std::max({value(5), value(6), value(7)});
      const auto objectness = static_cast<float>(logistic(value(4)));
      expected += objectness * static_cast<float>(logistic(best)) >= threshold;
    }
    const DetectOptions keep_all{threshold, 1.0F};
    // A picture far larger than any box, so that none falls outside.
    EXPECT_EQ(decode(graph, map, {-9600, -6400, 19296, 12864, 1000, 1000}, keep_all).size(), expected) << threshold;
  }
}

TEST(YoloDecoder, WantsHeads) {
  GraphBuilder builder("classifier");
  const LayerId input = *builder.input({3, 8, 8});
  ASSERT_TRUE(builder.append("pool", GlobalAveragePool{}, {input}));
  const auto decoder = YoloDecoder::create(*std::move(builder).finish(), {});
  ASSERT_FALSE(decoder);
  EXPECT_EQ(decoder.error().kind(), ErrorKind::kUnsupported);
}

Detection box(int class_id, float score, float x, float y, float w, float h) {
  return {class_id, score, x, y, w, h};
}

TEST(Iou, ByHand) {
  const Detection a = box(0, 1, 0, 0, 10, 10);
  EXPECT_FLOAT_EQ(iou(a, a), 1);
  EXPECT_FLOAT_EQ(iou(a, box(0, 1, 5, 0, 10, 10)), 50.0F / 150);
  EXPECT_FLOAT_EQ(iou(a, box(0, 1, 2, 2, 5, 5)), 0.25F);
  EXPECT_EQ(iou(a, box(0, 1, 10, 0, 10, 10)), 0);  // touching
  EXPECT_EQ(iou(box(0, 1, 3, 3, 0, 0), box(0, 1, 3, 3, 0, 0)), 0);
}

std::vector<Detection> random_boxes(std::mt19937& random, int count) {
  std::uniform_real_distribution<float> place(0, 100), size(1, 40), score(0, 1);
  std::vector<Detection> boxes;
  for (int i = 0; i < count; ++i) {
    boxes.push_back(
        box(static_cast<int>(random() % 3), score(random), place(random), place(random), size(random), size(random)));
  }
  return boxes;
}

TEST(Iou, IsSymmetricAndBetweenZeroAndOne) {
  std::mt19937 random(11);
  const auto boxes = random_boxes(random, 100);
  for (const Detection& a : boxes) {
    for (const Detection& b : boxes) {
      EXPECT_EQ(iou(a, b), iou(b, a));
      EXPECT_GE(iou(a, b), 0);
      EXPECT_LE(iou(a, b), 1);
    }
  }
}

TEST(NonMaximumSuppression, KeepsTheBestPerClass) {
  const auto kept = non_maximum_suppression(
      {box(0, 0.6F, 0, 0, 10, 10), box(0, 0.9F, 1, 0, 10, 10), box(1, 0.5F, 0, 0, 10, 10), box(0, 0.7F, 50, 0, 10, 10)},
      0.45F);
  ASSERT_EQ(kept.size(), 3U);
  EXPECT_EQ(kept[0].score, 0.9F);
  EXPECT_EQ(kept[1].score, 0.7F);
  EXPECT_EQ(kept[2].class_id, 1);
}

TEST(NonMaximumSuppression, HasItsDefiningProperties) {
  std::mt19937 random(3);
  for (const float threshold : {0.0F, 0.2F, 0.45F, 0.8F}) {
    const auto candidates = random_boxes(random, 200);
    const auto kept = non_maximum_suppression(candidates, threshold);
    for (size_t i = 0; i < kept.size(); ++i) {
      if (i > 0) {
        EXPECT_GE(kept[i - 1].score, kept[i].score);
      }
      for (size_t j = 0; j < i; ++j) {
        if (kept[i].class_id == kept[j].class_id) {
          EXPECT_LE(iou(kept[i], kept[j]), threshold);
        }
      }
    }
    // Whatever went was beaten by a kept box of its class that is no weaker.
    for (const Detection& candidate : candidates) {
      const bool explained = std::any_of(kept.begin(), kept.end(), [&](const Detection& k) {
        const bool same = k.score == candidate.score && k.x == candidate.x && k.y == candidate.y;
        return same ||
               (k.class_id == candidate.class_id && k.score >= candidate.score && iou(k, candidate) > threshold);
      });
      EXPECT_TRUE(explained);
    }
    EXPECT_EQ(non_maximum_suppression(kept, threshold).size(), kept.size());
  }
}

}  // namespace
}  // namespace strobe::models
