#include "models/centre_head.h"

#include <gmock/gmock.h>

#include <random>

#include "models/centre_peaks.h"

namespace strobe::models {
namespace {

using testing::SizeIs;

TEST(Peaks, AgreeWithAPlainSearch) {
  std::mt19937 random(4);
  for (int round = 0; round < 20; ++round) {
    const int64_t channels = 1 + round % 3, rows = 1 + round, columns = 5 + 3 * round;
    std::vector<float> map(static_cast<size_t>(channels * rows * columns));
    for (float& value : map) value = static_cast<float>(random() % 40);  // many are equal
    const auto value = [&](int64_t c, int64_t y, int64_t x) {
      return map[static_cast<size_t>((c * rows + y) * columns + x)];
    };
    std::vector<Peak> wanted;
    for (int64_t c = 0; c < channels; ++c) {
      for (int64_t y = 0; y < rows; ++y) {
        for (int64_t x = 0; x < columns; ++x) {
          bool largest = value(c, y, x) >= 20;
          for (int64_t ny = y - 1; ny <= y + 1; ++ny)
            for (int64_t nx = x - 1; nx <= x + 1; ++nx)
              if (ny >= 0 && nx >= 0 && ny < rows && nx < columns && value(c, ny, nx) > value(c, y, x)) largest = false;
          if (largest)
            wanted.push_back(
                {value(c, y, x), static_cast<int32_t>(c), static_cast<int32_t>(y), static_cast<int32_t>(x)});
        }
      }
    }
    std::stable_sort(wanted.begin(), wanted.end(), [](const Peak& a, const Peak& b) { return a.value > b.value; });
    const auto found = find_peaks(map.data(), channels, rows, columns, 20, 1000);
    ASSERT_EQ(found.size(), wanted.size());
    for (size_t i = 0; i < found.size(); ++i) {
      EXPECT_EQ(found[i].value, wanted[i].value);
      EXPECT_EQ(found[i].row, wanted[i].row);
      EXPECT_EQ(found[i].column, wanted[i].column);
    }
    EXPECT_LE(find_peaks(map.data(), channels, rows, columns, 20, 3).size(), 3U);
  }
}

TEST(CentreHead, DecodesByHand) {
  CentreRule rule;
  rule.low_x = -8;
  rule.low_y = -4;
  rule.cell_x = rule.cell_y = 0.5F;
  rule.columns = 32;
  rule.rows = 16;
  rule.tasks = {{{0}}, {{1, 2}}};
  rule.radius = {2, 1, 1};
  const size_t cells = 32 * 16;
  std::vector<float> first((kCentreRegression + 1) * cells, -9), second((kCentreRegression + 2) * cells, -9);
  const auto put = [&](std::vector<float>& head, size_t row, size_t column, std::vector<float> values, size_t heat,
                       float logit) {
    for (size_t c = 0; c < values.size(); ++c) head[c * cells + row * 32 + column] = values[c];
    head[(kCentreRegression + heat) * cells + row * 32 + column] = logit;
  };
  const std::vector<float> car = {0.25F, 0.75F, -1, std::log(4.0F), std::log(2.0F), std::log(1.5F), 1, 0, 3, -2};
  put(first, 3, 10, car, 0, 2);
  put(first, 3, 11, car, 0, 1);  // no peak
  put(first, 3, 13, car, 0, 1);  // a peak 1.5 m away: within the circle
  put(first, 12, 20, car, 0, 0.5F);
  put(second, 3, 10, car, 1, 3);
  const float* heads[] = {first.data(), second.data()};
  const auto boxes = decode_centres(rule, heads, {.score_threshold = 0.3F});
  ASSERT_THAT(boxes, SizeIs(3));
  EXPECT_EQ(boxes[0].class_id, 2) << "of the second task the second class, the best of all";
  const Box3d& box = boxes[1];
  EXPECT_EQ(box.class_id, 0);
  EXPECT_FLOAT_EQ(box.x, -8 + 10.25F / 2);
  EXPECT_FLOAT_EQ(box.y, -4 + 3.75F / 2);
  EXPECT_FLOAT_EQ(box.z, -1);
  EXPECT_FLOAT_EQ(box.length, 4);
  EXPECT_FLOAT_EQ(box.width, 2);
  EXPECT_FLOAT_EQ(box.height, 1.5F);
  EXPECT_FLOAT_EQ(box.yaw, 1.5707964F);
  EXPECT_FLOAT_EQ(box.vx, 3);
  EXPECT_FLOAT_EQ(box.vy, -2);
  EXPECT_NEAR(box.score, 1 / (1 + std::exp(-2.0)), 1e-6);
  EXPECT_FLOAT_EQ(boxes[2].x, -8 + 20.25F / 2);
}

}  // namespace
}  // namespace strobe::models
