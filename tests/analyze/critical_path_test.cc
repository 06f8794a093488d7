#include "analyze/critical_path.h"

#include <gtest/gtest.h>

#include <random>

#include "analyze/passes.h"
#include "trace/timeline_maker.h"

namespace strobe::analyze {
namespace {

using test::TimelineMaker;

// The segments tile [start, start + length].
void expect_tiles(const CriticalPath& path) {
  int64_t sum = 0;
  for (size_t i = 0; i < path.segments.size(); ++i) {
    sum += path.segments[i].end_ns - path.segments[i].start_ns;
    if (i == 0) continue;
    ASSERT_EQ(path.segments[i].start_ns, path.segments[i - 1].end_ns) << "segment " << i;
  }
  EXPECT_EQ(sum, path.length_ns);
  double rows = 0;
  for (size_t row = 0; row < path.rows.row_count(); ++row) rows += *path.rows.number(row, "path_ns");
  EXPECT_EQ(static_cast<int64_t>(rows), path.length_ns);
}

double row_of(const Table& table, const std::string& name, const char* column) {
  for (size_t row = 0; row < table.row_count(); ++row)
    if (table.text(row, "name") == name) return table.number(row, column).value_or(-1);
  return -1;
}

// Two stages: "read" takes 10, "infer" 30, a queue of one place between them, so that the reader waits for room.
trace::Timeline two_stages(int frames) {
  TimelineMaker maker;
  maker.timeline.facts["pipeline.stages"] = "read,infer";
  const int32_t main = maker.lane(1), reader = maker.lane(2, "stage read"), worker = maker.lane(3, "stage infer");
  std::vector<int64_t> infer_start(static_cast<size_t>(frames));
  int64_t read_at = 0, infer_free = 0;
  for (int f = 0; f < frames; ++f) {
    const auto at = static_cast<size_t>(f);
    const int64_t read_end = read_at + 10;
    maker.range("read", reader, read_at, read_end, f);
    // Room is when the frame before was taken.
    const int64_t room = f >= 2 ? infer_start[at - 1] : 0;
    const int64_t pushed = std::max(read_end, room);
    if (pushed > read_end) maker.range("back-pressure", reader, read_end, pushed, f);
    infer_start[at] = std::max(pushed, infer_free);
    infer_free = infer_start[at] + 30;
    maker.range("infer", worker, infer_start[at], infer_free, f);
    maker.flow("queue:infer", reader, read_end, worker, infer_start[at]);
    read_at = pushed;
  }
  maker.range("run", main, 0, infer_free);
  return maker.finish();
}

TEST(CriticalPath, FramesOfAPipelineAreTiledByStagesAndQueues) {
  const trace::Timeline timeline = two_stages(8);
  for (int64_t frame = 0; frame < 8; ++frame) {
    for (const bool strict : {false, true}) {
      auto path = critical_path(timeline, {.range = {}, .instance = 0, .frame = frame, .strict = strict});
      ASSERT_TRUE(path) << path.error().to_string();
      expect_tiles(*path);
    }
  }
  // Frame 5 was read at 100 (after room at 100), waited for two others and was inferred from 160 on.
  auto account = critical_path(timeline, {.range = {}, .instance = 0, .frame = 5});
  ASSERT_TRUE(account);
  EXPECT_EQ(row_of(account->rows, "read", "path_ns"), 10);
  EXPECT_EQ(row_of(account->rows, "infer", "path_ns"), 30);
  EXPECT_EQ(row_of(account->rows, "queue:infer", "path_ns"), static_cast<double>(account->length_ns - 40));
  // Who held it up: nothing but inference of the frames before.
  auto strict = critical_path(timeline, {.range = {}, .instance = 0, .frame = 5, .strict = true});
  ASSERT_TRUE(strict);
  EXPECT_GE(row_of(strict->rows, "infer", "share"), 0.9);
}

TEST(CriticalPath, TheWholeRunIsBoundByItsSlowestStage) {
  const trace::Timeline timeline = two_stages(20);
  auto path = critical_path(timeline, {});
  ASSERT_TRUE(path) << path.error().to_string();
  expect_tiles(*path);
  const double infer = row_of(path->rows, "infer", "path_ns");
  EXPECT_EQ(infer, 20 * 30);
  EXPECT_EQ(row_of(path->rows, "infer", "slack_ns"), 0);
  EXPECT_EQ(row_of(path->rows, "infer", "drag_ns"), static_cast<double>(path->length_ns) - 20 * 10);
}

TEST(CriticalPath, SegmentsTileEveryWindowOfAnyTimeline) {
  for (uint32_t seed = 1; seed <= 60; ++seed) {
    const trace::Timeline timeline = test::random_timeline(seed, 120);
    auto whole = critical_path(timeline, {});
    if (!whole) continue;  // nothing on threads
    expect_tiles(*whole);
    for (size_t i = 0; i < timeline.ranges.size(); i += 7) {
      const std::string name(timeline.strings[timeline.ranges.name[i]]);
      if (name.empty()) continue;
      const auto path = critical_path(timeline, {.range = name, .instance = 0});
      if (path) expect_tiles(*path);
    }
  }
}

TEST(CriticalPath, SaysWhatIsNotThere) {
  const trace::Timeline timeline = two_stages(3);
  const auto no_range = critical_path(timeline, {.range = "infr"});
  ASSERT_FALSE(no_range);
  EXPECT_NE(no_range.error().message().find("did you mean infer"), std::string::npos) << no_range.error().message();
  EXPECT_EQ(no_range.error().exit_code(), 2);
  const auto no_instance = critical_path(timeline, {.range = "infer", .instance = 3});
  ASSERT_FALSE(no_instance);
  EXPECT_NE(no_instance.error().message().find("has 3 instances"), std::string::npos) << no_instance.error().message();
  const auto no_frame = critical_path(timeline, {.range = {}, .instance = 0, .frame = 7});
  ASSERT_FALSE(no_frame);
  EXPECT_NE(no_frame.error().message().find("0 to 2"), std::string::npos) << no_frame.error().message();
  EXPECT_FALSE(critical_path(trace::Timeline(), {}));
  EXPECT_FALSE(critical_path_hta(trace::Timeline(), {}));
}

}  // namespace
}  // namespace strobe::analyze
