#include "report/level_of_detail.h"

#include <gtest/gtest.h>

namespace strobe::report {
namespace {

struct Line {
  trace::Ranges ranges;
  std::vector<int32_t> row;
  void add(int64_t start, int64_t end, trace::StringId name) {
    row.push_back(static_cast<int32_t>(ranges.size()));
    ranges.start_ns.push_back(start);
    ranges.end_ns.push_back(end);
    ranges.name.push_back(name);
  }
};

// A range of 10 us every 20 us, and one of 5 ms after each thousand of them.
Line many(size_t count) {
  Line line;
  int64_t time = 0;
  for (size_t i = 0; i < count; ++i) {
    const bool is_long = i % 1000 == 999;
    line.add(time, time + (is_long ? 5'000'000 : 10'000), is_long ? 1 : 2);
    time += is_long ? 5'010'000 : 20'000;
  }
  return line;
}

TEST(LevelOfDetail, FewRangesStayAsTheyAre) {
  const Line line = many(5000);
  const Detail detail = choose_detail(line.ranges, {&line.row}, 5000, 0);
  EXPECT_EQ(detail.drawn_together, 0U);
  const auto boxes = boxes_of(line.ranges, line.row, detail);
  ASSERT_EQ(boxes.size(), 5000U);
  for (size_t i = 0; i < boxes.size(); ++i) {
    EXPECT_EQ(boxes[i].range, static_cast<int32_t>(i));
    EXPECT_EQ(boxes[i].count, 1);
  }
}

TEST(LevelOfDetail, ManyBecomeFewAndNothingIsLost) {
  const Line line = many(100'000);
  const Detail detail = choose_detail(line.ranges, {&line.row}, 6000, 0);
  const auto boxes = boxes_of(line.ranges, line.row, detail);
  EXPECT_LE(boxes.size(), 6000U);
  EXPECT_GT(boxes.size(), 2000U);
  int64_t count = 0, busy = 0, all_busy = 0, together = 0, long_ones = 0, before = 0;
  for (const Box& box : boxes) {
    count += box.count;
    busy += box.busy_ns;
    together += box.count > 1 ? box.count : 0;
    long_ones += box.count == 1 && box.end_ns - box.start_ns == 5'000'000 ? 1 : 0;
    EXPECT_GE(box.start_ns, before);
    EXPECT_LE(box.busy_ns, box.end_ns - box.start_ns);
    before = box.end_ns;
  }
  for (size_t i = 0; i < line.ranges.size(); ++i) all_busy += line.ranges.end_ns[i] - line.ranges.start_ns[i];
  EXPECT_EQ(count, 100'000);
  EXPECT_EQ(busy, all_busy);
  EXPECT_EQ(together, static_cast<int64_t>(detail.drawn_together));
  EXPECT_EQ(long_ones, 100);  // those that are long enough to be seen
}

TEST(LevelOfDetail, TheBeginningShowsEveryRange) {
  const Line line = many(100'000);
  const int64_t from = 1'000'000;
  const Detail detail = choose_detail(line.ranges, {&line.row}, 6000, from);
  EXPECT_EQ(detail.full_from_ns, from);
  ASSERT_GT(detail.full_until_ns, from);
  size_t inside = 0;
  for (const Box& box : boxes_of(line.ranges, line.row, detail)) {
    if (box.start_ns < from || box.start_ns >= detail.full_until_ns) continue;
    EXPECT_EQ(box.count, 1);
    ++inside;
  }
  EXPECT_EQ(inside, 1999U);  // a third of the boxes; its last one is where detail ends
}

TEST(LevelOfDetail, BoxOfSeveralSpeaksForTheNameWithMostTime) {
  Line line;
  line.add(0, 100, 7);
  line.add(100, 160, 8);
  line.add(200, 260, 8);
  line.add(5000, 9000, 9);
  Detail detail;
  detail.shortest_ns = 1000;
  const auto boxes = boxes_of(line.ranges, line.row, detail);
  ASSERT_EQ(boxes.size(), 2U);
  EXPECT_EQ(boxes[0].count, 3);
  EXPECT_EQ(line.ranges.name[static_cast<size_t>(boxes[0].range)], 8U);
  EXPECT_EQ(boxes[0].start_ns, 0);
  EXPECT_EQ(boxes[0].end_ns, 260);
  EXPECT_EQ(boxes[0].busy_ns, 220);
  EXPECT_EQ(boxes[1].count, 1);
}

}  // namespace
}  // namespace strobe::report
