#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
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

}  // namespace
}  // namespace strobe::record
