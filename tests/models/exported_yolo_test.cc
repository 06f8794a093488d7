// Outputs made by hand, in the layouts that the trainers document.
#include "models/exported_yolo.h"

#include <gmock/gmock.h>

#include <limits>

namespace strobe::models {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr int64_t kSide = 64;                            // cells: 64 + 16 + 4
const PicturePlacement kWhole = {0, 0, 64, 64, 64, 64};  // the picture is the input

std::unique_ptr<ExportedYoloDecoder> decoder_of(const std::vector<int64_t>& shape, DetectOptions options = {}) {
  auto made = ExportedYoloDecoder::create(std::span(&shape, 1), kSide, kSide, options);
  EXPECT_TRUE(made) << made.error().to_string();
  return made ? std::move(*made) : nullptr;
}

void expect_box(const Detection& box, int class_id, float score, float x, float y, float w, float h) {
  EXPECT_EQ(box.class_id, class_id);
  EXPECT_NEAR(box.score, score, 1e-6);
  EXPECT_NEAR(box.x, x, 1e-4);
  EXPECT_NEAR(box.y, y, 1e-4);
  EXPECT_NEAR(box.width, w, 1e-4);
  EXPECT_NEAR(box.height, h, 1e-4);
}

TEST(ExportedYolo, RowsWithObjectness) {
  const auto decoder = decoder_of({1, 3 * 84, 5 + 2});
  EXPECT_EQ(decoder->classes(), 2);
  EXPECT_THAT(decoder->description(), HasSubstr("1x252x7"));
  std::vector<float> rows(252 * 7);
  const auto put = [&](size_t row, std::vector<float> values) {
    std::copy(values.begin(), values.end(), &rows[7 * row]);
  };
  put(3, {20, 30, 10, 20, 0.9F, 0.1F, 0.8F});
  put(4, {21, 30, 10, 20, 0.8F, 0.1F, 0.8F});  // the same object, weaker
  put(100, {50, 50, 8, 8, 0.9F, 0.2F, 0.3F});  // 0.27: below the threshold
  put(251, {40, 12, 8, 8, 0.6F, 0.9F, 0.1F});
  put(5, {std::numeric_limits<float>::quiet_NaN(), 0, 1, 1, 1, 1, 0});
  const float* output = rows.data();
  const auto boxes = decoder->decode(std::span(&output, 1), kWhole);
  ASSERT_THAT(boxes, SizeIs(2));
  expect_box(boxes[0], 1, 0.72F, 15, 20, 10, 20);
  expect_box(boxes[1], 0, 0.54F, 36, 8, 8, 8);
}

TEST(ExportedYolo, PlanesWithoutObjectness) {
  const auto decoder = decoder_of({2, 4 + 3, 84});
  EXPECT_EQ(decoder->classes(), 3);
  std::vector<float> planes(7 * 84);
  const auto put = [&](size_t box, std::vector<float> values) {
    for (size_t plane = 0; plane < 7; ++plane) planes[plane * 84 + box] = values[plane];
  };
  put(0, {20, 30, 10, 20, 0.1F, 0.2F, 0.9F});
  put(83, {20, 30, 10, 20, 0.1F, 0.8F, 0.2F});  // another class: both stay
  const float* output = planes.data();
  const auto boxes = decoder->decode(std::span(&output, 1), kWhole);
  ASSERT_THAT(boxes, SizeIs(2));
  expect_box(boxes[0], 2, 0.9F, 15, 20, 10, 20);
  expect_box(boxes[1], 1, 0.8F, 15, 20, 10, 20);
}

TEST(ExportedYolo, EndToEndRowsAreTakenAsTheyAre) {
  const auto decoder = decoder_of({1, 300, 6});
  EXPECT_EQ(decoder->classes(), 0);
  std::vector<float> rows(300 * 6);
  const auto put = [&](size_t row, std::vector<float> values) {
    std::copy(values.begin(), values.end(), &rows[6 * row]);
  };
  put(0, {15, 20, 25, 40, 0.5F, 7});
  put(1, {15, 20, 25, 40, 0.7F, 7});  // no suppression: the network did it
  put(2, {0, 0, 9, 9, 0.9F, -1});     // no class
  const float* output = rows.data();
  const auto boxes = decoder->decode(std::span(&output, 1), kWhole);
  ASSERT_THAT(boxes, SizeIs(2));
  expect_box(boxes[0], 7, 0.7F, 15, 20, 10, 20);
  expect_box(boxes[1], 7, 0.5F, 15, 20, 10, 20);
}

TEST(ExportedYolo, LetterboxIsUndoneAndBoxesAreClipped) {
  const auto decoder = decoder_of({1, 5, 84});
  std::vector<float> planes(5 * 84);
  for (size_t plane = 0; plane < 5; ++plane) planes[plane * 84] = std::vector<float>{0, 32, 20, 16, 1}[plane];
  const float* output = planes.data();
  // A picture of 128 x 64 lies in rows 16 to 48 of the input.
  const auto boxes = decoder->decode(std::span(&output, 1), {0, 16, 64, 32, 128, 64});
  ASSERT_THAT(boxes, SizeIs(1));
  expect_box(boxes[0], 0, 1, 0, 16, 20, 32);
}

TEST(ExportedYolo, OtherOutputsAreSkippedAndUnknownOnesRefused) {
  const std::vector<std::vector<int64_t>> shapes = {{1, 3, 8, 8, 7}, {1, 252, 7}};
  const auto second = ExportedYoloDecoder::create(shapes, kSide, kSide, {});
  ASSERT_TRUE(second);
  std::vector<float> rows(252 * 7);
  std::vector<float> row = {20, 30, 10, 20, 1, 1, 0};
  std::copy(row.begin(), row.end(), rows.begin());
  const float* outputs[] = {nullptr, rows.data()};
  EXPECT_THAT((*second)->decode(outputs, kWhole), SizeIs(1));
  EXPECT_THAT((*second)->decode(std::span(outputs, 1), kWhole), IsEmpty());

  for (const std::vector<int64_t>& shape :
       {std::vector<int64_t>{1, 1000}, {1, 84, 90}, {1, 83, 7}, {1, 4, 84}, {1, 252, 5}, {1, 1001, 6}, {}}) {
    const auto refused = ExportedYoloDecoder::create(std::span(&shape, 1), kSide, kSide, {});
    EXPECT_FALSE(refused) << testing::PrintToString(shape);
  }
  const std::vector<int64_t> classes = {1, 1000};
  EXPECT_THAT(ExportedYoloDecoder::create(std::span(&classes, 1), kSide, kSide, {}).error().to_string(),
              HasSubstr("(1x1000)"));
}

}  // namespace
}  // namespace strobe::models
