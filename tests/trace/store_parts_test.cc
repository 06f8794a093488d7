// A trace file of which only a part is read.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "trace/store.h"

namespace strobe::trace {
namespace {

// One call that launches one kernel, with an argument, a flow, a mark and a counter.
Timeline small_timeline() {
  Timeline t;
  t.lanes.push_back({.kind = Lane::Kind::kThread, .pid = 1, .tid = 1});
  t.lanes.push_back({.kind = Lane::Kind::kStream, .pid = 1, .tid = 7, .device = 0});
  const auto add = [&t](const char* name, int32_t lane, int64_t start, int64_t end, RangeKind kind) {
    t.ranges.start_ns.push_back(start);
    t.ranges.end_ns.push_back(end);
    t.ranges.name.push_back(t.strings.intern(name));
    t.ranges.lane.push_back(lane);
    t.ranges.frame.push_back(kNoFrame);
    t.ranges.is_async.push_back(0);
    t.ranges.open.push_back(0);
    t.ranges.kind.push_back(kind);
  };
  add("cudaLaunchKernel", 0, 10, 20, RangeKind::kApi);
  add("relu", 1, 30, 50, RangeKind::kKernel);
  t.api_calls.push_back({.range = 0, .correlation = 5});
  t.device_ops.emplace_back();
  t.device_ops.back().range = 1;
  t.device_ops.back().correlation = 5;
  for (const int64_t number : {3, 4}) {
    t.arguments.range.push_back(0);
    t.arguments.key.push_back(t.strings.intern("n"));
    t.arguments.value.emplace_back(number);
  }
  t.arguments.range.push_back(1);
  t.arguments.key.push_back(t.strings.intern("text"));
  t.arguments.value.emplace_back(t.strings.intern("what"));
  t.marks.time_ns.push_back(5);
  t.marks.name.push_back(t.strings.intern("mark"));
  t.marks.lane.push_back(0);
  t.marks.frame.push_back(kNoFrame);
  t.counters.time_ns.push_back(6);
  t.counters.name.push_back(t.strings.intern("depth"));
  t.counters.pid.push_back(1);
  t.counters.value.push_back(2.5);
  t.duration_ns = 60;
  t.finish();
  return t;
}

class PartsOfStore : public testing::Test {
 protected:
  void SetUp() override {
    path_ = std::filesystem::path(testing::TempDir()) /
            ("store-parts-" + std::string(testing::UnitTest::GetInstance()->current_test_info()->name()) + ".sqlite");
    const auto written = write_store(small_timeline(), path_);
    ASSERT_TRUE(written) << written.error().to_string();
  }
  void TearDown() override { std::filesystem::remove(path_); }

  Timeline read(StoreParts parts) {
    auto timeline = read_store(path_, parts);
    EXPECT_TRUE(timeline) << timeline.error().to_string();
    return std::move(*timeline);
  }

  std::filesystem::path path_;
};

TEST_F(PartsOfStore, AllIsAll) {
  const Timeline t = read(StoreParts::kAll);
  EXPECT_EQ(t.ranges.size(), 2U);
  ASSERT_EQ(t.arguments.size(), 3U);
  EXPECT_EQ(t.arguments.range, (std::vector<int32_t>{0, 0, 1}));
  EXPECT_EQ(std::get<int64_t>(t.arguments.value[0]), 3);
  EXPECT_EQ(std::get<int64_t>(t.arguments.value[1]), 4);
  EXPECT_EQ(t.strings[std::get<StringId>(t.arguments.value[2])], "what");
  EXPECT_EQ(t.marks.size(), 1U);
  EXPECT_EQ(t.counters.size(), 1U);
  ASSERT_EQ(t.device_ops.size(), 1U);
  EXPECT_EQ(t.device_ops[0].launch, 0);
}

TEST_F(PartsOfStore, OperationsHaveTheirLaunches) {
  const Timeline t = read(StoreParts::kOperations);
  EXPECT_EQ(t.ranges.size(), 2U);
  ASSERT_EQ(t.device_ops.size(), 1U);
  EXPECT_EQ(t.device_ops[0].launch, 0);
  EXPECT_EQ(t.api_calls.size(), 1U);
  EXPECT_EQ(t.arguments.size() + t.marks.size() + t.counters.size() + t.flows.size(), 0U);
}

TEST_F(PartsOfStore, RangesAreTheSame) {
  const Timeline all = read(StoreParts::kAll), t = read(StoreParts::kRanges);
  EXPECT_EQ(t.ranges.start_ns, all.ranges.start_ns);
  EXPECT_EQ(t.ranges.name, all.ranges.name);
  EXPECT_EQ(t.ranges.kind, all.ranges.kind);
  EXPECT_EQ(t.duration_ns, 60);
  EXPECT_EQ(t.device_ops.size() + t.api_calls.size() + t.arguments.size(), 0U);
}

}  // namespace
}  // namespace strobe::trace
