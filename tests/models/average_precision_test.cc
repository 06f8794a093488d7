// Cases worked out by hand; random ones are held against pycocotools in tests/cli/frames_test.py.
#include "models/average_precision.h"

#include <gtest/gtest.h>

namespace strobe::models {
namespace {

// One category, pictures 1 and 2.
CocoDataset truth_of(std::vector<CocoAnnotation> boxes) {
  CocoDataset truth;
  for (const int64_t id : {1, 2}) truth.images.emplace_back().id = id;
  truth.categories = {{1, "person"}};
  truth.annotations = std::move(boxes);
  return truth;
}

CocoAnnotation box(int64_t image, double x, double width, std::optional<double> score = {}, bool is_crowd = false) {
  return {.id = 1,
          .image_id = image,
          .category_id = 1,
          .x = x,
          .y = 0,
          .width = width,
          .height = 50,
          .area = width * 50,
          .is_crowd = is_crowd,
          .score = score};
}

TEST(AveragePrecision, PerfectDetectionsScoreOne) {
  const auto truth = truth_of({box(1, 0, 50), box(2, 10, 50)});
  const auto result = average_precision(truth, {box(1, 0, 50, 0.9), box(2, 10, 50, 0.8)});
  EXPECT_DOUBLE_EQ(*result.ap, 1);
  EXPECT_DOUBLE_EQ(*result.ar100, 1);
  EXPECT_DOUBLE_EQ(*result.ap_medium, 1);  // 2500 pixels
  EXPECT_FALSE(result.ap_small);
  EXPECT_FALSE(result.ap_large);
  EXPECT_EQ(result.categories[0].truths, 2);
  EXPECT_EQ(result.categories[0].detections, 2);
}

// Scores 0.9 (hit), 0.8 (miss), 0.7 (hit) of two truths: precision 1 up to recall 0.5 (51 of the 101 recalls), then
// 2/3.
TEST(AveragePrecision, AMissBetweenTwoHits) {
  const auto truth = truth_of({box(1, 0, 50), box(2, 0, 50)});
  const auto result = average_precision(truth, {box(1, 0, 50, 0.9), box(1, 500, 50, 0.8), box(2, 0, 50, 0.7)});
  EXPECT_NEAR(*result.ap50, (51 + 50 * 2.0 / 3) / 101, 1e-12);
}

// An overlap of 0.6 (60 of 100 pixels) is a hit at 0.50, 0.55 and 0.60, and a miss above.
TEST(AveragePrecision, ThresholdsOfOverlap) {
  const auto truth = truth_of({box(1, 0, 100)});
  const auto result = average_precision(truth, {box(1, 0, 60, 0.5)});
  EXPECT_DOUBLE_EQ(*result.ap50, 1);
  EXPECT_DOUBLE_EQ(*result.ap75, 0);
  EXPECT_NEAR(*result.ap, 0.3, 1e-12);
}

TEST(AveragePrecision, WhatLiesInACrowdDoesNotHurt) {
  const auto truth = truth_of({box(1, 0, 50), box(1, 1000, 400, {}, true)});
  const auto result = average_precision(truth, {box(1, 1000, 50, 0.9), box(1, 1100, 50, 0.8), box(1, 0, 50, 0.7)});
  EXPECT_DOUBLE_EQ(*result.ap, 1);
  EXPECT_EQ(result.categories[0].truths, 1);
}

TEST(AveragePrecision, EachTruthIsTakenOnce) {
  const auto truth = truth_of({box(1, 0, 50)});
  const auto result = average_precision(truth, {box(1, 0, 50, 0.7), box(1, 0, 50, 0.9)});
  EXPECT_DOUBLE_EQ(*result.ap50, 1);  // the second one comes after full recall
  const auto both = average_precision(truth_of({box(1, 0, 50), box(2, 0, 50)}),
                                      {box(1, 0, 50, 0.9), box(1, 0, 50, 0.8), box(2, 0, 50, 0.7)});
  EXPECT_NEAR(*both.ap50, (51 + 50 * 2.0 / 3) / 101, 1e-12);
}

TEST(AveragePrecision, NothingFoundAndNothingToFind) {
  const auto missed = average_precision(truth_of({box(1, 0, 50)}), {});
  EXPECT_EQ(missed.ap, 0);
  EXPECT_EQ(missed.ar100, 0);
  const auto empty = average_precision(truth_of({}), {box(1, 0, 50, 0.5)});
  EXPECT_FALSE(empty.ap);
  EXPECT_FALSE(empty.categories[0].ap);
  EXPECT_EQ(empty.categories[0].detections, 1);
}

TEST(AveragePrecision, OfEachPictureOnlyTheBestCount) {
  std::vector<CocoAnnotation> found;
  for (int i = 0; i < 10; ++i) found.push_back(box(1, 1000 + 100 * i, 50, 0.9));
  found.push_back(box(1, 0, 50, 0.5));
  const auto result = average_precision(truth_of({box(1, 0, 50)}), found);
  EXPECT_EQ(result.ar1, 0);
  EXPECT_EQ(result.ar10, 0);
  EXPECT_EQ(result.ar100, 1);
}

}  // namespace
}  // namespace strobe::models
