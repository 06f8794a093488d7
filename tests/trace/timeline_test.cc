#include "strobe/trace/timeline.h"

#include <gtest/gtest.h>

#include "trace/timeline_maker.h"

namespace strobe::trace {
namespace {

using test::TimelineMaker;

std::vector<std::string> names(const Timeline& timeline) {
  std::vector<std::string> texts;
  for (const StringId name : timeline.ranges.name) texts.emplace_back(timeline.strings[name]);
  return texts;
}

TEST(Strings, KeepsEachTextOnceWithStableIds) {
  Strings strings;
  EXPECT_EQ(strings.intern(""), 0U);
  const StringId read = strings.intern("read");
  for (int i = 0; i < 10000; ++i) strings.intern("layer " + std::to_string(i));
  EXPECT_EQ(strings.intern("read"), read);
  EXPECT_EQ(strings[read], "read");
  EXPECT_EQ(strings.find("read"), read);
  EXPECT_EQ(strings.find("write"), kNone);
  EXPECT_EQ(strings.size(), 10002U);
  const Strings moved = std::move(strings);
  EXPECT_EQ(moved[read], "read");
}

TEST(Timeline, ParentsComeFromNestingOnTheSameLane) {
  TimelineMaker maker;
  const int32_t a = maker.lane(1), b = maker.lane(2);
  // Given in no order at all: the sort puts a parent before its children, also where both start together.
  maker.range("inner", a, 10, 20);
  maker.range("other thread", b, 12, 15);
  maker.range("outer", a, 10, 50);
  maker.range("after", a, 50, 60);
  maker.range("innermost", a, 12, 20);
  const Timeline timeline = maker.finish();
  EXPECT_EQ(names(timeline), (std::vector<std::string>{"outer", "inner", "innermost", "other thread", "after"}));
  EXPECT_EQ(timeline.ranges.parent, (std::vector<int32_t>{kNone, 0, 1, kNone, kNone}));
  EXPECT_TRUE(timeline.losses.faults.empty());
}

TEST(Timeline, EqualIntervalsKeepTheOrderInWhichTheyBegan) {
  TimelineMaker maker;
  const int32_t lane = maker.lane(1);
  maker.range("outer", lane, 5, 9);
  maker.range("inner", lane, 5, 9);
  const Timeline timeline = maker.finish();
  EXPECT_EQ(names(timeline), (std::vector<std::string>{"outer", "inner"}));
  EXPECT_EQ(timeline.ranges.parent, (std::vector<int32_t>{kNone, 0}));
}

TEST(Timeline, EmptyRangesNestToo) {
  TimelineMaker maker;
  const int32_t lane = maker.lane(1);
  maker.range("outer", lane, 0, 10);
  maker.range("at the end", lane, 10, 10);
  maker.range("next", lane, 10, 20);
  maker.range("at the start", lane, 0, 0);
  const Timeline timeline = maker.finish();
  EXPECT_EQ(names(timeline), (std::vector<std::string>{"outer", "at the start", "next", "at the end"}));
  EXPECT_EQ(timeline.ranges.parent, (std::vector<int32_t>{kNone, 0, kNone, 2}));
  EXPECT_TRUE(timeline.losses.faults.empty());
}

TEST(Timeline, OverlapsOfOneLaneAreCountedAndDoNotNest) {
  TimelineMaker maker;
  const int32_t lane = maker.lane(1);
  maker.range("whole", lane, 0, 100);
  maker.range("a", lane, 10, 30);
  maker.range("b", lane, 20, 40);  // begins in a, ends outside
  maker.range("in both", lane, 22, 25);
  maker.range("in b", lane, 32, 38);
  const Timeline timeline = maker.finish();
  EXPECT_EQ(timeline.ranges.parent, (std::vector<int32_t>{kNone, 0, 0, 2, 2}));
  EXPECT_EQ(timeline.losses.faults.size(), 1U);
  EXPECT_EQ(timeline.losses.faults.begin()->second, 1U);
}

TEST(Timeline, AsynchronousRangesNeitherNestNorCountAsOverlaps) {
  TimelineMaker maker;
  const int32_t lane = maker.lane(1);
  maker.range("outer", lane, 0, 10, 7);
  maker.range("async", lane, 2, 20, kNoFrame, true);
  maker.range("inner", lane, 3, 9);
  const Timeline timeline = maker.finish();
  EXPECT_EQ(timeline.ranges.parent, (std::vector<int32_t>{kNone, kNone, 0}));
  EXPECT_EQ(timeline.ranges.frame, (std::vector<int64_t>{7, kNoFrame, 7}));
  EXPECT_TRUE(timeline.losses.faults.empty());
}

TEST(Timeline, FramesAreInheritedThroughAllLevels) {
  TimelineMaker maker;
  const int32_t lane = maker.lane(1);
  maker.range("stage", lane, 0, 100, 4);
  maker.range("model", lane, 10, 90);
  maker.range("layer", lane, 20, 30);
  maker.range("own", lane, 40, 60, 5);
  maker.range("of own", lane, 45, 50);
  maker.range("no frame", lane, 200, 210);
  EXPECT_EQ(maker.finish().ranges.frame, (std::vector<int64_t>{4, 4, 4, 5, 5, kNoFrame}));
}

TEST(Timeline, ArgumentsAndFlowsFollowTheirRanges) {
  TimelineMaker maker;
  const int32_t lane = maker.lane(1);
  const int32_t late = maker.range("late", lane, 50, 60);
  const int32_t early = maker.range("early", lane, 0, 10);
  maker.argument(late, "batch", int64_t{8});
  maker.argument(early, "batch", int64_t{4});
  maker.argument(late, "engine", std::string("torch"));
  maker.flow("queue", lane, 5, lane, 55, early, late);
  const Timeline timeline = maker.finish();
  EXPECT_EQ(timeline.arguments.range, (std::vector<int32_t>{0, 1, 1}));
  EXPECT_EQ(std::get<int64_t>(timeline.arguments.value[0]), 4);
  EXPECT_EQ(std::get<int64_t>(timeline.arguments.value[1]), 8);
  EXPECT_EQ(timeline.strings[std::get<StringId>(timeline.arguments.value[2])], "torch");
  EXPECT_EQ(timeline.flows.from_range[0], 0);
  EXPECT_EQ(timeline.flows.to_range[0], 1);
}

TEST(Timeline, FlowsFindTheInnermostRangeAtEitherEnd) {
  TimelineMaker maker;
  const int32_t a = maker.lane(1), b = maker.lane(2);
  maker.range("outer", a, 0, 100);
  maker.range("inner", a, 10, 20);
  maker.range("pop", b, 50, 70);
  maker.flow("in inner", a, 15, b, 60);
  maker.flow("after inner", a, 30, b, 45);  // to: before any range of b
  maker.flow("too late", a, 101, b, 70);    // from: after outer; to: at the end of pop
  const Timeline timeline = maker.finish();
  EXPECT_EQ(timeline.flows.from_range, (std::vector<int32_t>{1, 0, kNone}));
  EXPECT_EQ(timeline.flows.to_range, (std::vector<int32_t>{2, kNone, 2}));
}

TEST(Timeline, RangesThatEndBeforeTheyStartBecomeEmptyAndAreCounted) {
  TimelineMaker maker;
  maker.range("broken", maker.lane(1), 10, 4);
  const Timeline timeline = maker.finish();
  EXPECT_EQ(timeline.ranges.end_ns[0], 10);
  EXPECT_EQ(timeline.losses.faults.size(), 1U);
}

// The slow obvious way: among the ranges of the lane that contain this one, the one that stands last before it, unless
// a later one has cut it off.
TEST(Timeline, AgreesWithBruteForceOnRandomRanges) {
  for (uint32_t seed = 0; seed < 200; ++seed) {
    const Timeline timeline = test::random_timeline(seed, 60);
    const Ranges& ranges = timeline.ranges;
    for (size_t i = 0; i < ranges.size(); ++i) {
      if (i > 0) {
        EXPECT_TRUE(ranges.start_ns[i - 1] < ranges.start_ns[i] ||
                    (ranges.start_ns[i - 1] == ranges.start_ns[i] && ranges.end_ns[i - 1] >= ranges.end_ns[i]));
      }
      int32_t expected = kNone;
      const auto nests = [&ranges](size_t row) { return !ranges.is_async[row] && !is_device(ranges.kind[row]); };
      for (size_t k = 0; k < i && nests(i); ++k)
        if (nests(k) && ranges.lane[k] == ranges.lane[i] && ranges.end_ns[k] >= ranges.end_ns[i])
          expected = static_cast<int32_t>(k);
      ASSERT_EQ(ranges.parent[i], expected) << "seed " << seed << ", range " << i;
      if (expected != kNone && ranges.frame[i] == kNoFrame) {
        EXPECT_EQ(ranges.frame[static_cast<size_t>(expected)], kNoFrame);
      }
    }
  }
}

TEST(Timeline, FinishingTwiceChangesNothing) {
  for (uint32_t seed = 0; seed < 50; ++seed) {
    Timeline once = test::random_timeline(seed, 80);
    Timeline twice = test::random_timeline(seed, 80);
    const Losses losses = twice.losses;
    twice.finish();
    twice.losses = losses;
    EXPECT_EQ(test::difference(once, twice), "") << "seed " << seed;
  }
}

// Two processes number their calls alike; one call launches two kernels; one kernel was launched before the recording.
TEST(Timeline, DeviceOperationsFindTheCallOfTheirProcessAndItsFrame) {
  TimelineMaker maker;
  const int32_t thread_a = maker.lane(1, "", 100), thread_b = maker.lane(1, "", 200);
  const int32_t stream_a = maker.lane(7, "", 100, Lane::Kind::kStream);
  const int32_t stream_b = maker.lane(7, "", 200, Lane::Kind::kStream);
  const auto device = [&](const char* name, int32_t lane, int64_t start, int64_t end, int64_t correlation) {
    DeviceOp op;
    op.range = maker.range(name, lane, start, end);
    op.correlation = correlation;
    maker.timeline.device_ops.push_back(op);
    maker.timeline.ranges.kind.resize(maker.timeline.ranges.size(), RangeKind::kAnnotation);
    maker.timeline.ranges.kind.back() = RangeKind::kKernel;
  };
  const auto call = [&](int32_t lane, int64_t start, int64_t end, int64_t correlation) {
    maker.timeline.api_calls.push_back({maker.range("launch", lane, start, end), correlation});
    maker.timeline.ranges.kind.resize(maker.timeline.ranges.size(), RangeKind::kAnnotation);
    maker.timeline.ranges.kind.back() = RangeKind::kApi;
  };
  device("late", stream_b, 60, 90, 5);  // written before its call and out of order
  maker.range("infer", thread_a, 0, 30, 4);
  call(thread_a, 10, 12, 5);
  device("first", stream_a, 20, 40, 5);
  device("second", stream_a, 30, 50, 5);  // streams overlap: no fault, no parent
  call(thread_b, 40, 41, 5);
  device("orphan", stream_a, 55, 56, 99);
  const Timeline timeline = maker.finish();

  ASSERT_EQ(timeline.device_ops.size(), 4U);
  std::map<std::string, std::pair<int64_t, int64_t>> seen;  // start of the launch, frame
  for (const DeviceOp& op : timeline.device_ops) {
    const auto range = static_cast<size_t>(op.range);
    EXPECT_EQ(timeline.ranges.parent[range], kNone);
    EXPECT_TRUE(is_device(timeline.ranges.kind[range]));
    seen[std::string(timeline.strings[timeline.ranges.name[range]])] = {
        op.launch == kNone ? -1 : timeline.ranges.start_ns[static_cast<size_t>(op.launch)],
        timeline.ranges.frame[range]};
  }
  const std::map<std::string, std::pair<int64_t, int64_t>> expected = {
      {"first", {10, 4}}, {"second", {10, 4}}, {"late", {40, kNoFrame}}, {"orphan", {-1, kNoFrame}}};
  EXPECT_EQ(seen, expected);
  EXPECT_TRUE(timeline.losses.faults.empty());
}

}  // namespace
}  // namespace strobe::trace
