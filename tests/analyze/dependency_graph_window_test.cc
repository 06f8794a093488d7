// The graph of a window holds exactly what the whole trace's graph says of it.
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "analyze/critical_path.h"
#include "analyze/dependency_graph.h"
#include "importers/importer.h"
#include "support/test_data.h"
#include "trace/timeline_maker.h"

namespace strobe::analyze {
namespace {

using test::TimelineMaker;
using trace::kNone;
using trace::RangeKind;
using trace::Timeline;

std::string text_of(const Operation& o, bool with_wait) {
  return std::to_string(o.start_ns) + ".." + std::to_string(o.end_ns) + " of range " + std::to_string(o.range) +
         " on " + std::to_string(o.lane) + (with_wait ? " after " + std::to_string(o.waited_in) : "");
}

// Operations that start in a window, in order, and what leads to them.
std::vector<std::string> content(const DependencyGraph& graph, const TimeSpan& window) {
  std::vector<std::string> found;
  for (size_t i = 0; i < graph.operations().size(); ++i) {
    const Operation& self = graph.operations()[i];
    if (!window.holds(self.start_ns)) continue;
    std::string line = text_of(self, true);
    // Of what came before a window nobody asks in what it waited.
    for (const Edge& edge : graph.into(static_cast<int32_t>(i)))
      line += std::string("; ") + name_of(edge.type) + " from " +
              text_of(graph.operations()[static_cast<size_t>(edge.from)], false);
    found.push_back(std::move(line));
  }
  return found;
}

void expect_same_in_windows(const Timeline& timeline, const DependencyGraph& whole, std::mt19937& random, int windows,
                            int64_t longest) {
  for (int i = 0; i < windows; ++i) {
    const auto from = static_cast<int64_t>(random() % static_cast<uint64_t>(timeline.duration_ns));
    const TimeSpan window{from, from + static_cast<int64_t>(random() % static_cast<uint64_t>(longest))};
    const DependencyGraph part(timeline, window);
    ASSERT_EQ(content(part, window), content(whole, window)) << window.from_ns << " to " << window.to_ns;
    ASSERT_EQ(part.last_before(window.from_ns, window.to_ns) == kNone,
              whole.last_before(window.from_ns, window.to_ns) == kNone);
  }
}

// Threads that hand over, launch on streams, wait for them and for room in queues, with pauses between.
Timeline random_work(uint32_t seed) {
  std::mt19937 random(seed);
  const auto below = [&random](int64_t limit) { return static_cast<int64_t>(random() % static_cast<uint64_t>(limit)); };
  TimelineMaker maker;
  constexpr int kThreads = 3, kStreams = 2;
  int32_t threads[kThreads], streams[kStreams];
  for (int i = 0; i < kThreads; ++i) threads[i] = maker.lane(i + 1);
  for (int i = 0; i < kStreams; ++i) streams[i] = maker.lane(7 + i, "", 100, trace::Lane::Kind::kStream, 0);
  int64_t now[kThreads] = {0, 3, 5}, busy[kStreams] = {0, 0}, correlation = 0;
  for (int step = 0; step < 120; ++step) {
    const auto t = static_cast<size_t>(below(kThreads));
    int64_t& at = now[t];
    at += below(4) == 0 ? below(60) : 0;
    const int64_t begin = at;
    for (int64_t i = below(4); i >= 0; --i) {
      const auto s = static_cast<size_t>(below(kStreams));
      const int64_t start = at + below(3), end = start + 1 + below(8);
      switch (below(7)) {
        case 0:
        case 1: {
          maker.api_call("cudaLaunchKernel", threads[t], start, end, ++correlation);
          const int64_t run = std::max(busy[s], start + below(20));
          busy[s] = run + 1 + below(15);
          maker.device_op(RangeKind::kKernel, "kernel", streams[s], run, busy[s], correlation);
          break;
        }
        case 2:
          maker.api_call("cudaDeviceSynchronize", threads[t], start, std::max(end, busy[s] + 2), ++correlation);
          at = std::max(at, busy[s] + 2);
          break;
        case 3: {
          maker.api_call("cudaStreamWaitEvent", threads[t], start, end, ++correlation);
          auto& op = maker.device_op(RangeKind::kSync, "wait", streams[s], end, end + 1, correlation);
          op.sync_type = 2;
          op.sync_stream = 8 - static_cast<int32_t>(s);
          break;
        }
        case 4:
          maker.range("back-pressure", threads[t], start, end);
          break;
        case 5: {
          const auto to = static_cast<size_t>(below(kThreads));
          maker.flow(below(2) ? "a" : "b", threads[t], start, threads[to], std::max(now[to], start) + below(5));
          break;
        }
        default:
          maker.range("inner", threads[t], start, end);
      }
      at = std::max(at, end) + below(2);
    }
    maker.range("outer", threads[t], begin, at);
  }
  for (const int64_t time : {now[0], now[1], now[2], busy[0], busy[1]})
    maker.timeline.duration_ns = std::max(maker.timeline.duration_ns, time);
  return maker.finish();
}

TEST(DependencyGraphWindow, RandomWork) {
  std::mt19937 random(3);
  for (uint32_t seed = 0; seed < 60; ++seed) {
    const Timeline timeline = random_work(seed);
    SCOPED_TRACE("seed " + std::to_string(seed));
    expect_same_in_windows(timeline, DependencyGraph(timeline), random, 20, 200);
    if (HasFatalFailure()) return;
  }
}

TEST(DependencyGraphWindow, AnyTimeline) {
  std::mt19937 random(4);
  for (uint32_t seed = 0; seed < 2000; ++seed) {
    const Timeline timeline = test::random_timeline(seed, 80);
    SCOPED_TRACE("seed " + std::to_string(seed));
    expect_same_in_windows(timeline, DependencyGraph(timeline), random, 10, 300);
    if (HasFatalFailure()) return;
  }
}

TEST(DependencyGraphWindow, RealTrace) {
  const auto file = test::shared_data("traces/kineto/big_v100_216k.json.gz");
  STROBE_REQUIRE_DATA(file);
  auto timeline = importers::import_trace(file, {});
  ASSERT_TRUE(timeline) << timeline.error().to_string();
  std::mt19937 random(5);
  expect_same_in_windows(*timeline, DependencyGraph(*timeline), random, 12, 50'000'000);
}

TEST(DependencyGraphWindow, SeveralReplaysAtOnceAreThoseOneByOne) {
  for (uint32_t seed = 0; seed < 30; ++seed) {
    const Timeline timeline = random_work(seed);
    const DependencyGraph graph(timeline);
    const auto operations = graph.operations();
    const auto last = static_cast<int32_t>(operations.size()) - 1;
    for (const int32_t first : {0, last / 3}) {
      std::vector<int32_t> number(timeline.strings.size(), kNone);
      std::vector<int64_t> expected;
      for (const char* name : {"outer", "kernel", "cudaLaunchKernel", "inner"}) {
        const int64_t id = timeline.strings.find(name);
        ASSERT_NE(id, kNone);
        number[static_cast<size_t>(id)] = static_cast<int32_t>(expected.size());
        std::vector<int64_t> services;
        for (int32_t i = first; i <= last; ++i) {
          const Operation& o = operations[static_cast<size_t>(i)];
          services.push_back(timeline.ranges.name[static_cast<size_t>(o.range)] == id ? 0 : o.end_ns - o.start_ns);
        }
        expected.push_back(replayed_ends(graph, first, last, services).back());
      }
      EXPECT_EQ(ends_without(graph, first, last, expected.size(), number, timeline.ranges.name), expected);
    }
  }
}

}  // namespace
}  // namespace strobe::analyze
