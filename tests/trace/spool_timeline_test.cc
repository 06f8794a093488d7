#include "trace/spool_timeline.h"

#include <gtest/gtest.h>

namespace strobe::trace {
namespace {

using record::SpoolEvent;
using record::SpoolThread;
using Type = SpoolEvent::Type;

SpoolEvent event(Type type, int64_t time, std::string_view name = {}, int64_t frame = kNoFrame, uint64_t id = 0) {
  SpoolEvent result;
  result.type = type;
  result.time_ns = time;
  result.name = name;
  result.frame = frame;
  result.id = id;
  return result;
}

SpoolThread thread(int32_t tid, int32_t pid = 7, int64_t offset = 1'000'000) {
  return {pid, tid, "camera", offset, true};
}

uint64_t fault(const Timeline& timeline, const std::string& kind) {
  const auto found = timeline.losses.faults.find(kind);
  return found == timeline.losses.faults.end() ? 0 : found->second;
}

TEST(SpoolTimeline, NestedRangesOfTwoThreadsOnOneClock) {
  SpoolTimeline events;
  const SpoolThread a = thread(1), b = thread(2);
  SpoolEvent thread_name = event(Type::kThreadName, 1000);
  thread_name.text = "reader";
  events.add(a, thread_name);
  events.add(a, event(Type::kRangeBegin, 1010, "read", 3));
  events.add(a, event(Type::kRangeBegin, 1020, "decode"));
  events.add(a, event(Type::kRangeEnd, 1030));
  events.add(a, event(Type::kRangeEnd, 1050));
  events.add(b, event(Type::kRangeBegin, 1005, "infer", 2));
  events.add(b, event(Type::kRangeEnd, 1100));
  const Timeline timeline = events.take();

  ASSERT_EQ(timeline.ranges.size(), 3U);
  EXPECT_EQ(timeline.ranges.start_ns, (std::vector<int64_t>{5, 10, 20}));
  EXPECT_EQ(timeline.ranges.end_ns, (std::vector<int64_t>{100, 50, 30}));
  EXPECT_EQ(timeline.ranges.frame, (std::vector<int64_t>{2, 3, 3}));
  EXPECT_EQ(timeline.ranges.parent, (std::vector<int32_t>{kNone, kNone, 1}));
  EXPECT_EQ(timeline.ranges.lane, (std::vector<int32_t>{1, 0, 0}));
  EXPECT_EQ(timeline.strings[timeline.lanes[0].name], "reader");
  EXPECT_EQ(timeline.lanes[1].tid, 2);
  ASSERT_EQ(timeline.processes.size(), 1U);
  EXPECT_EQ(timeline.strings[timeline.processes[0].name], "camera");
  EXPECT_EQ(timeline.duration_ns, 100);
  EXPECT_EQ(timeline.utc_start_ns, 1'001'000);
  EXPECT_TRUE(timeline.losses.faults.empty());
}

SpoolEvent argument(int64_t value, bool of_event) {
  SpoolEvent result = event(Type::kArgumentInt, 0, "bytes");
  result.integer = value;
  result.of_event = of_event;
  return result;
}

TEST(SpoolTimeline, CategoriesAreKeptWhereThereAreSome) {
  SpoolTimeline events;
  events.add(thread(1), event(Type::kRangeBegin, 10, "plain"));
  SpoolEvent range = event(Type::kRangeBegin, 20, "conv");
  range.category = "layer";
  range.domain = "engine";
  events.add(thread(1), range);
  SpoolEvent mark = event(Type::kMark, 15, "drop");
  mark.category = "loss";
  events.add(thread(2), mark);
  const Timeline timeline = events.take();
  EXPECT_EQ(timeline.ranges.category.size(), 2U);
  EXPECT_EQ(timeline.ranges.category_of(0), 0U);
  EXPECT_EQ(timeline.strings[timeline.ranges.category_of(1)], "layer");
  EXPECT_EQ(timeline.strings[timeline.ranges.domain_of(1)], "engine");
  EXPECT_EQ(timeline.strings[timeline.marks.category_of(0)], "loss");
  EXPECT_TRUE(timeline.marks.domain.empty());
}

TEST(SpoolTimeline, ArgumentsOfEventsStayWithTheirEvent) {
  SpoolTimeline events;
  const SpoolThread a = thread(1), b = thread(2);
  events.add(a, event(Type::kRangeBegin, 10, "outer"));
  events.add(a, event(Type::kMark, 12, "late mark"));
  events.add(a, argument(1, true));
  events.add(a, argument(2, false));
  events.add(a, event(Type::kAsyncBegin, 20, "request", kNoFrame, 7));
  events.add(a, argument(3, true));
  events.add(b, event(Type::kMark, 11, "early mark"));
  events.add(b, event(Type::kAsyncEnd, 30, "request", kNoFrame, 7));
  events.add(b, argument(4, true));
  events.add(b, event(Type::kAsyncEnd, 31, "unknown", kNoFrame, 9));
  events.add(b, argument(5, true));
  const Timeline timeline = events.take();
  EXPECT_EQ(timeline.arguments.range, (std::vector<int32_t>{0, 1, 1}));
  std::vector<int64_t> values;
  for (const auto& value : timeline.arguments.value) values.push_back(std::get<int64_t>(value));
  EXPECT_EQ(values, (std::vector<int64_t>{2, 3, 4}));
  EXPECT_EQ(timeline.mark_arguments.mark, (std::vector<int32_t>{1})) << "marks are sorted by time";
  EXPECT_EQ(fault(timeline, "argument outside any range"), 1U);
}

TEST(SpoolTimeline, AnEndByIdAloneEndsTheLatestThatBeganWithIt) {
  SpoolTimeline events;
  events.add(thread(1), event(Type::kAsyncBegin, 10, "first", kNoFrame, 7));
  events.add(thread(1), event(Type::kAsyncEndAny, 20, "", kNoFrame, 7));
  events.add(thread(2), event(Type::kAsyncBegin, 30, "second", kNoFrame, 7));
  events.add(thread(1), event(Type::kAsyncEndAny, 40, "", kNoFrame, 7));
  events.add(thread(3, 8), event(Type::kAsyncEndAny, 50, "", kNoFrame, 7));
  const Timeline timeline = events.take();
  EXPECT_EQ(timeline.ranges.end_ns, (std::vector<int64_t>{10, 30}));
  EXPECT_EQ(timeline.ranges.open, (std::vector<uint8_t>{0, 0}));
  EXPECT_EQ(fault(timeline, "asynchronous end without a begin"), 1U) << "that of the other process";
}

TEST(SpoolTimeline, CountersOfThreadsNameTheirThread) {
  SpoolTimeline events;
  events.add(thread(1), event(Type::kCounter, 10, "queue"));
  SpoolEvent own = event(Type::kCounter, 20, "cache misses");
  own.of_thread = true;
  events.add(thread(2), own);
  const Timeline timeline = events.take();
  EXPECT_EQ(timeline.counters.lane_of(0), kNone);
  EXPECT_EQ(timeline.counters.lane_of(1), 1);
}

TEST(SpoolTimeline, TheOffsetOfTheEarliestThreadDatesTheTrace) {
  SpoolTimeline events;
  events.add(thread(1, 7, 500), event(Type::kMark, 1000, "later"));
  events.add(thread(2, 8, 900), event(Type::kMark, 400, "earlier"));
  const Timeline timeline = events.take();
  EXPECT_EQ(timeline.utc_start_ns, 1300);
  EXPECT_EQ(timeline.marks.time_ns, (std::vector<int64_t>{0, 600}));
  EXPECT_EQ(timeline.strings[timeline.marks.name[0]], "earlier");
  EXPECT_EQ(timeline.processes.size(), 2U);
}

TEST(SpoolTimeline, UnclosedRangesEndWithTheTrace) {
  SpoolTimeline events;
  events.add(thread(1), event(Type::kRangeBegin, 10, "outer", 1));
  events.add(thread(1), event(Type::kRangeBegin, 20, "inner"));
  events.add(thread(1), event(Type::kAsyncBegin, 25, "request", kNoFrame, 9));
  events.add(thread(2), event(Type::kMark, 90, "last"));
  const Timeline timeline = events.take();
  EXPECT_EQ(timeline.ranges.end_ns, (std::vector<int64_t>{80, 80, 80}));
  EXPECT_EQ(timeline.ranges.open, (std::vector<uint8_t>{1, 1, 1}));
  EXPECT_EQ(timeline.ranges.parent, (std::vector<int32_t>{kNone, 0, kNone}));
  EXPECT_TRUE(timeline.losses.faults.empty());
}

TEST(SpoolTimeline, UnmatchedPopsAreCountedAndTheRestIsKept) {
  SpoolTimeline events;
  events.add(thread(1), event(Type::kRangeEnd, 5));
  events.add(thread(1), event(Type::kRangeBegin, 10, "read"));
  events.add(thread(1), event(Type::kRangeEnd, 20));
  events.add(thread(1), event(Type::kRangeEnd, 21));
  const Timeline timeline = events.take();
  EXPECT_EQ(fault(timeline, "unmatched pop"), 2U);
  ASSERT_EQ(timeline.ranges.size(), 1U);
  EXPECT_EQ(timeline.ranges.open[0], 0);
}

TEST(SpoolTimeline, AsynchronousRangesEndOnAnotherThreadAndIdsAreReused) {
  SpoolTimeline events;
  // Thread by thread: the ends come before the begins of the other thread.
  events.add(thread(1), event(Type::kAsyncEnd, 30, "request", kNoFrame, 1));
  events.add(thread(1), event(Type::kAsyncEnd, 70, "request", kNoFrame, 1));
  events.add(thread(1), event(Type::kAsyncEnd, 75, "request", kNoFrame, 2));
  events.add(thread(2), event(Type::kAsyncBegin, 10, "request", 4, 1));
  events.add(thread(2), event(Type::kAsyncBegin, 50, "request", 5, 1));
  events.add(thread(2), event(Type::kAsyncBegin, 60, "other", 6, 2));
  events.add(thread(3, 99), event(Type::kAsyncBegin, 12, "request", 8, 1));  // another process's id 1
  events.add(thread(3, 99), event(Type::kAsyncEnd, 14, "request", kNoFrame, 1));
  const Timeline timeline = events.take();
  EXPECT_EQ(timeline.ranges.start_ns, (std::vector<int64_t>{0, 2, 40, 50}));
  EXPECT_EQ(timeline.ranges.end_ns, (std::vector<int64_t>{20, 4, 60, 65}));
  EXPECT_EQ(timeline.ranges.frame, (std::vector<int64_t>{4, 8, 5, 6}));
  EXPECT_EQ(timeline.ranges.is_async, (std::vector<uint8_t>{1, 1, 1, 1}));
  EXPECT_EQ(timeline.ranges.open, (std::vector<uint8_t>{0, 0, 0, 1}));
  EXPECT_EQ(fault(timeline, "asynchronous end without a begin"), 1U);
}

TEST(SpoolTimeline, ArgumentsBelongToTheInnermostOpenRange) {
  SpoolTimeline events;
  SpoolEvent batch = event(Type::kArgumentInt, 12, "batch");
  batch.integer = 8;
  SpoolEvent stage = event(Type::kArgumentText, 13, "stage");
  stage.text = "infer";
  SpoolEvent load = event(Type::kArgumentDouble, 15, "load");
  load.number = 0.25;
  events.add(thread(1), batch);  // outside any range
  events.add(thread(1), event(Type::kRangeBegin, 12, "outer"));
  events.add(thread(1), batch);
  events.add(thread(1), event(Type::kRangeBegin, 13, "inner"));
  events.add(thread(1), stage);
  events.add(thread(1), event(Type::kRangeEnd, 14));
  events.add(thread(1), load);
  const Timeline timeline = events.take();
  EXPECT_EQ(timeline.arguments.range, (std::vector<int32_t>{0, 0, 1}));
  EXPECT_EQ(std::get<int64_t>(timeline.arguments.value[0]), 8);
  EXPECT_EQ(std::get<double>(timeline.arguments.value[1]), 0.25);
  EXPECT_EQ(timeline.strings[std::get<StringId>(timeline.arguments.value[2])], "infer");
  EXPECT_EQ(fault(timeline, "argument outside any range"), 1U);
}

TEST(SpoolTimeline, FlowsJoinDeparturesAndArrivals) {
  SpoolTimeline events;
  events.add(thread(1), event(Type::kRangeBegin, 0, "push", 1));
  events.add(thread(1), event(Type::kFlowOut, 5, "queue", kNoFrame, 1));
  events.add(thread(1), event(Type::kFlowOut, 6, "queue", kNoFrame, 2));  // never taken
  events.add(thread(1), event(Type::kRangeEnd, 10));
  events.add(thread(2), event(Type::kFlowIn, 20, "queue", kNoFrame, 1));  // outside any range
  events.add(thread(2), event(Type::kRangeBegin, 30, "pop", 1));
  events.add(thread(2), event(Type::kFlowIn, 35, "queue", kNoFrame, 1));  // a second arrival
  events.add(thread(2), event(Type::kFlowIn, 36, "queue", kNoFrame, 3));
  events.add(thread(2), event(Type::kRangeEnd, 40));
  const Timeline timeline = events.take();
  EXPECT_EQ(timeline.flows.from_ns, (std::vector<int64_t>{5, 5}));
  EXPECT_EQ(timeline.flows.to_ns, (std::vector<int64_t>{20, 35}));
  EXPECT_EQ(timeline.flows.from_range, (std::vector<int32_t>{0, 0}));
  EXPECT_EQ(timeline.flows.to_range, (std::vector<int32_t>{kNone, 1}));
  EXPECT_EQ(timeline.flows.to_lane, (std::vector<int32_t>{1, 1}));
  EXPECT_EQ(fault(timeline, "flow that never arrived"), 1U);
  EXPECT_EQ(fault(timeline, "flow that arrived without a departure"), 1U);
}

TEST(SpoolTimeline, TheLastFactOfAKeyCountsWhateverThreadComesFirst) {
  SpoolTimeline events;
  const auto fact = [](int64_t time, std::string_view value) {
    SpoolEvent result = event(Type::kFact, time, "engine");
    result.text = value;
    return result;
  };
  events.add(thread(1), fact(50, "openvino"));
  events.add(thread(2), fact(20, "torch"));
  EXPECT_EQ(events.take().facts.at("engine"), "openvino");
}

TEST(SpoolTimeline, DropsAndCountersAreKept) {
  SpoolTimeline events;
  SpoolEvent dropped = event(Type::kDropped, 5);
  dropped.integer = 12;
  SpoolEvent depth = event(Type::kCounter, 9, "queue depth");
  depth.number = 3;
  events.add(thread(1), dropped);
  events.add(thread(1), dropped);
  events.add(thread(1), depth);
  const Timeline timeline = events.take();
  EXPECT_EQ(timeline.losses.dropped_records, 24U);
  EXPECT_EQ(timeline.counters.value, (std::vector<double>{3}));
  EXPECT_EQ(timeline.counters.time_ns, (std::vector<int64_t>{4}));
}

TEST(SpoolTimeline, NoEventsMakeAnEmptyTimelineAndTheObjectIsReusable) {
  SpoolTimeline events;
  EXPECT_EQ(events.take().duration_ns, 0);
  events.add(thread(1), event(Type::kMark, 10, "a"));
  EXPECT_EQ(events.take().marks.size(), 1U);
  EXPECT_EQ(events.take().marks.size(), 0U);
}

TEST(SpoolTimeline, AbsurdTimesDoNotOverflow) {
  SpoolTimeline events;
  events.add(thread(1), event(Type::kRangeBegin, INT64_MAX, "a"));
  events.add(thread(1), event(Type::kRangeEnd, INT64_MIN + 1));
  events.add(thread(2), event(Type::kMark, -5, "b"));
  const Timeline timeline = events.take();
  EXPECT_EQ(timeline.duration_ns, int64_t{1} << 60);
  EXPECT_EQ(timeline.ranges.size(), 1U);
}

}  // namespace
}  // namespace strobe::trace
