#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "record/recorded.h"
#include "strobe/record/annotate.h"
#include "support/test_data.h"

namespace strobe::record {
namespace {

using strobe::test::ScratchFolder;
using test::Event;
using test::read_all;
using test::Type;
using testing::ElementsAre;
using testing::IsEmpty;

Options options_for(const ScratchFolder& folder) {
  Options options;
  options.folder = folder.path();
  options.process_name = "tested";
  return options;
}

TEST(RoundTrip, EveryKindOfEventComesBackInOrder) {
  const ScratchFolder folder;
  ASSERT_TRUE(start(options_for(folder)));
  EXPECT_TRUE(recording());
  const Name decode("decode");
  const Name batch("batch");
  {
    Range outer(decode, 7);
    outer.arg(batch, int64_t{-8}).arg(Name("ratio"), 0.25).arg(Name("file"), std::string_view("a, \"b\"\n"));
    flow_out(Name("queue"), 42);
    {
      std::string dynamic = "layer ";
      dynamic += std::to_string(3);
      Range inner(std::string_view{dynamic}, int64_t{1} << 40);
      flow_in(Name("queue"), 42);
    }
  }
  async_begin(Name("frame"), 11, 9);
  async_begin(Name("frame"), 12, -5);
  mark(Name("here"), 3);
  mark(Name("far"), INT64_MIN);
  counter(Name("depth"), -2.5);
  async_end(Name("frame"), 11);
  name_thread("main loop");
  fact("engine", "openvino");
  push(decode);
  pop();
  auto totals = stop();
  name_thread("");
  ASSERT_TRUE(totals) << totals.error().to_string();
  EXPECT_FALSE(recording());
  EXPECT_EQ(totals->dropped, 0U);

  auto recorded = read_all(folder.path());
  ASSERT_TRUE(recorded) << recorded.error().to_string();
  EXPECT_THAT(recorded->summary.faults, IsEmpty());
  ASSERT_EQ(recorded->threads.size(), 1U);
  const auto& thread = recorded->threads[0];
  EXPECT_EQ(thread.pid, ::getpid());
  EXPECT_EQ(thread.tid, ::gettid());
  EXPECT_EQ(thread.process_name, "tested");
  EXPECT_TRUE(thread.ended);
  std::vector<std::string> lines;
  for (const Event& event : thread.events) {
    lines.push_back(std::to_string(static_cast<int>(event.type)) + " " + event.name + " " +
                    std::to_string(event.frame) + " " + std::to_string(event.id) + " " + std::to_string(event.integer) +
                    " " + std::to_string(event.number) + " " + event.text);
  }
  const auto line = [](Type type, const std::string& rest) {
    return std::to_string(static_cast<int>(type)) + " " + rest;
  };
  EXPECT_THAT(
      lines,
      ElementsAre(
          line(Type::kRangeBegin, "decode 7 0 0 0.000000 "), line(Type::kArgumentInt, "batch -1 0 -8 0.000000 "),
          line(Type::kArgumentDouble, "ratio -1 0 0 0.250000 "),
          line(Type::kArgumentText, "file -1 0 0 0.000000 a, \"b\"\n"), line(Type::kFlowOut, "queue -1 42 0 0.000000 "),
          line(Type::kRangeBegin, "layer 3 1099511627776 0 0 0.000000 "),
          line(Type::kFlowIn, "queue -1 42 0 0.000000 "), line(Type::kRangeEnd, " -1 0 0 0.000000 "),
          line(Type::kRangeEnd, " -1 0 0 0.000000 "), line(Type::kAsyncBegin, "frame 9 11 0 0.000000 "),
          line(Type::kAsyncBegin, "frame -5 12 0 0.000000 "), line(Type::kMark, "here 3 0 0 0.000000 "),
          line(Type::kMark, "far -9223372036854775808 0 0 0.000000 "), line(Type::kCounter, "depth -1 0 0 -2.500000 "),
          line(Type::kAsyncEnd, "frame -1 11 0 0.000000 "), line(Type::kThreadName, " -1 0 0 0.000000 main loop"),
          line(Type::kFact, "engine -1 0 0 0.000000 openvino"), line(Type::kRangeBegin, "decode -1 0 0 0.000000 "),
          line(Type::kRangeEnd, " -1 0 0 0.000000 ")));
  EXPECT_EQ(totals->records, lines.size());
  EXPECT_EQ(recorded->summary.events, lines.size());
  for (size_t i = 1; i < thread.events.size(); ++i)
    EXPECT_GE(thread.events[i].time_ns, thread.events[i - 1].time_ns) << i;
}

std::string describe(const Event& event) {
  std::string line = event.name + " " + event.category + "/" + event.domain + " frame " + std::to_string(event.frame) +
                     " id " + std::to_string(event.id);
  if (event.type == Type::kArgumentInt) line = event.name + "=" + std::to_string(event.integer);
  if (event.type == Type::kArgumentDouble) line = event.name + "=" + std::to_string(event.number);
  if (event.type == Type::kArgumentText) line = event.name + "=" + event.text;
  if (event.type == Type::kCounter) line = event.name + "=" + std::to_string(event.number);
  return std::string(event.of_event ? "event " : "") + (event.of_thread ? "thread " : "") + line;
}

TEST(RoundTrip, CategoriesPayloadAndDynamicNamesInEveryCombination) {
  const ScratchFolder folder;
  ASSERT_TRUE(start(options_for(folder)));
  const Name fixed("fixed"), key("key"), text("text");
  const Category none, own("stage"), foreign("layers", "engine"), odd(":1:", "5:");
  constexpr int64_t kFar = int64_t{1} << 40;
  { const Range range(fixed, 1, own); }
  { const Range range(fixed, kFar, foreign); }
  { const Range range("dynamic", 2, odd); }
  { const Range range("dynamic", kFar, own); }
  {
    Range range(fixed, 3, none);
    range.arg(Batch{4, 8});
  }
  push("pushed", kNoFrame, foreign);
  pop();
  mark(fixed, 5, own, {{key, 1}, {text, "words"}, {key, 0.5}});
  mark("dynamic mark", kFar, foreign, {{key, uint8_t{200}}});
  async_begin("request", 77, kFar, foreign, {{key, -1}});
  async_end("request", 77, {{text, ""}});
  async_begin(fixed, 78, 6, own);
  async_end(78, {{key, true}});
  counter(key, 3);
  thread_counter(key, int64_t{-4});
  thread_counter(key, 0.25);
  auto totals = stop();
  ASSERT_TRUE(totals) << totals.error().to_string();

  auto recorded = read_all(folder.path());
  ASSERT_TRUE(recorded) << recorded.error().to_string();
  EXPECT_THAT(recorded->summary.faults, IsEmpty());
  ASSERT_EQ(recorded->threads.size(), 1U);
  std::vector<std::string> lines;
  for (const Event& event : recorded->threads[0].events)
    if (event.type != Type::kRangeEnd) lines.push_back(describe(event));
  EXPECT_THAT(
      lines, ElementsAre("fixed stage/ frame 1 id 0", "fixed layers/engine frame 1099511627776 id 0",
                         "dynamic :1:/5: frame 2 id 0", "dynamic stage/ frame 1099511627776 id 0",
                         "fixed / frame 3 id 0", "batch_index=4", "total_items=8", "pushed layers/engine frame -1 id 0",
                         "fixed stage/ frame 5 id 0", "event key=1", "event text=words", "event key=0.500000",
                         "dynamic mark layers/engine frame 1099511627776 id 0", "event key=200",
                         "request layers/engine frame 1099511627776 id 77", "event key=-1", "request / frame -1 id 77",
                         "event text=", "fixed stage/ frame 6 id 78", " / frame -1 id 78", "event key=1",
                         "key=3.000000", "thread key=-4.000000", "thread key=0.250000"));
  EXPECT_EQ(totals->records, recorded->summary.events);
}

TEST(RoundTrip, WholeNumbersOfCountersKeepEveryDigit) {
  const ScratchFolder folder;
  ASSERT_TRUE(start(options_for(folder)));
  counter(Name("bytes"), INT64_MAX);
  counter(Name("bytes"), INT64_MIN);
  ASSERT_TRUE(stop());
  auto recorded = read_all(folder.path());
  ASSERT_TRUE(recorded);
  ASSERT_EQ(recorded->threads.at(0).events.size(), 2U);
  EXPECT_EQ(recorded->threads[0].events[0].integer, INT64_MAX);
  EXPECT_EQ(recorded->threads[0].events[1].integer, INT64_MIN);
}

// A mark and its payload are recorded or lost as one, and a payload never joins another event.
TEST(RoundTrip, AnEventTooLargeForTheRingIsLostWithItsPayload) {
  const ScratchFolder folder;
  Options options = options_for(folder);
  options.ring_bytes = 16'384;
  ASSERT_TRUE(start(options));
  const Name name("large"), key("key");
  const std::string text(2000, 'x');
  const std::vector<Arg> many(20, Arg(key, text));
  mark(Name("before"));
  mark(name, 1, {}, std::span<const Arg>(many));
  mark(Name("after"), 2, {}, {{key, text}});
  auto totals = stop();
  ASSERT_TRUE(totals);
  EXPECT_EQ(totals->dropped, 1U);
  auto recorded = read_all(folder.path());
  ASSERT_TRUE(recorded);
  EXPECT_EQ(recorded->count(Type::kMark, "large"), 0U);
  EXPECT_EQ(recorded->count(Type::kArgumentText), 1U);
  EXPECT_THAT(recorded->summary.faults, IsEmpty());
}

}  // namespace
}  // namespace strobe::record
