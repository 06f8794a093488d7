#include "analyze/dependency_graph.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <map>
#include <random>

#include "trace/timeline_maker.h"

namespace strobe::analyze {
namespace {

using test::TimelineMaker;
using trace::kNone;
using trace::RangeKind;

// A graph in which every operation starts as soon as what it depends on has ended.
struct RandomGraph {
  std::vector<Operation> operations;
  std::vector<Edge> edges;
};

RandomGraph random_graph(std::mt19937& random, int most) {
  RandomGraph graph;
  const int count = 2 + static_cast<int>(random() % static_cast<unsigned>(most - 1));
  std::vector<std::vector<int>> into(static_cast<size_t>(count));
  std::vector<int64_t> service(static_cast<size_t>(count)), end(static_cast<size_t>(count));
  std::vector<std::pair<int64_t, int>> by_start;
  for (int i = 0; i < count; ++i) {
    service[static_cast<size_t>(i)] = 1 + static_cast<int64_t>(random() % 20);
    for (int from = 0; from < i; ++from)
      if (random() % 3 == 0) into[static_cast<size_t>(i)].push_back(from);
    int64_t start = into[static_cast<size_t>(i)].empty() ? static_cast<int64_t>(random() % 10) : 0;
    for (const int from : into[static_cast<size_t>(i)]) start = std::max(start, end[static_cast<size_t>(from)]);
    end[static_cast<size_t>(i)] = start + service[static_cast<size_t>(i)];
    by_start.emplace_back(start, i);
  }
  std::stable_sort(by_start.begin(), by_start.end());
  std::vector<int32_t> place(static_cast<size_t>(count));
  for (size_t i = 0; i < by_start.size(); ++i) {
    const auto was = static_cast<size_t>(by_start[i].second);
    place[was] = static_cast<int32_t>(i);
    graph.operations.push_back({by_start[i].first, end[was], kNone, static_cast<int32_t>(random() % 3), kNone});
  }
  for (int i = 0; i < count; ++i)
    for (const int from : into[static_cast<size_t>(i)])
      graph.edges.push_back({place[static_cast<size_t>(from)], place[static_cast<size_t>(i)], EdgeType::kHandOver});
  return graph;
}

int64_t service_of(const Operation& operation) {
  return operation.end_ns - operation.start_ns;
}

// Every path that ends in an operation, one by one: its end when the first operation of the path starts as recorded.
int64_t end_by_brute_force(const RandomGraph& graph, const std::vector<int64_t>& services, int32_t operation) {
  int64_t ready = std::numeric_limits<int64_t>::min();
  for (const Edge& edge : graph.edges)
    if (edge.to == operation) ready = std::max(ready, end_by_brute_force(graph, services, edge.from));
  const auto at = static_cast<size_t>(operation);
  return (ready == std::numeric_limits<int64_t>::min() ? graph.operations[at].start_ns : ready) + services[at];
}

TEST(DependencyGraph, RandomGraphsAgainstAllPathsAndInjectedDelays) {
  std::mt19937 random(7);
  for (int round = 0; round < 1000; ++round) {
    const RandomGraph made = random_graph(random, 14);
    const DependencyGraph graph(made.operations, made.edges);
    ASSERT_EQ(graph.contradictions(), 0U);
    const auto last = graph.last_before(0, std::numeric_limits<int64_t>::max());
    std::vector<int64_t> services;
    for (const Operation& operation : made.operations) services.push_back(service_of(operation));
    const int64_t done = made.operations[static_cast<size_t>(last)].end_ns;
    ASSERT_EQ(end_by_brute_force(made, services, last), done);

    // The walk to the latest predecessor leaves no time out, back to an operation that nothing held up.
    int64_t at = done;
    for (int32_t operation = last;;) {
      ASSERT_EQ(made.operations[static_cast<size_t>(operation)].end_ns, at);
      at = made.operations[static_cast<size_t>(operation)].start_ns;
      const std::optional<Edge> edge = graph.latest(operation);
      if (!edge) break;
      operation = edge->from;
    }

    // A delay of any operation moves the end by what exceeds its slack.
    const auto latest = latest_ends(graph, 0, last);
    for (size_t i = 0; i < services.size(); ++i) {
      for (const int64_t delay : {int64_t{1}, int64_t{5}, int64_t{40}}) {
        std::vector<int64_t> delayed = services;
        delayed[i] += delay;
        const bool matters = latest[i] != std::numeric_limits<int64_t>::max();
        const int64_t slack = matters ? latest[i] - made.operations[i].end_ns : 0;
        const int64_t moved = matters ? std::max<int64_t>(0, delay - slack) : 0;
        ASSERT_EQ(end_by_brute_force(made, delayed, last), done + moved) << "round " << round << " operation " << i;
        const auto ends = replayed_ends(graph, 0, static_cast<int32_t>(services.size()) - 1, delayed);
        ASSERT_EQ(ends[static_cast<size_t>(last)], done + moved);
      }
    }
  }
}

TEST(DependencyGraph, NestedRangesBecomePiecesOfTheirOwnTime) {
  TimelineMaker maker;
  const int32_t lane = maker.lane(1);
  maker.range("outer", lane, 0, 100);
  maker.range("inner", lane, 20, 50);
  maker.range("innermost", lane, 20, 30);
  maker.range("next", lane, 120, 130);
  const trace::Timeline timeline = maker.finish();
  const DependencyGraph graph(timeline);
  std::vector<std::tuple<int64_t, int64_t, std::string>> pieces;
  for (const Operation& o : graph.operations())
    pieces.emplace_back(o.start_ns, o.end_ns, timeline.strings[timeline.ranges.name[static_cast<size_t>(o.range)]]);
  const std::vector<std::tuple<int64_t, int64_t, std::string>> expected{
      {0, 20, "outer"}, {20, 30, "innermost"}, {30, 50, "inner"}, {50, 100, "outer"}, {120, 130, "next"}};
  EXPECT_EQ(pieces, expected);
  EXPECT_EQ(graph.edge_count(), 4U);
}

// A thread launches on two streams, one waits for the other by an event, and a call waits for the end.
TEST(DependencyGraph, DeviceWork) {
  TimelineMaker maker;
  const int32_t thread = maker.lane(1);
  const int32_t first = maker.lane(7, "", 100, trace::Lane::Kind::kStream);
  const int32_t second = maker.lane(8, "", 100, trace::Lane::Kind::kStream);
  std::map<std::string, int32_t> ranges;
  const auto call = [&](const std::string& name, int64_t start, int64_t end, int64_t correlation) {
    const int32_t range = maker.range(name, thread, start, end);
    maker.timeline.ranges.kind.resize(static_cast<size_t>(range) + 1, RangeKind::kAnnotation);
    maker.timeline.ranges.kind.back() = RangeKind::kApi;
    maker.timeline.api_calls.push_back({range, correlation});
  };
  const auto work = [&](const std::string& name, int32_t lane, int64_t start, int64_t end, trace::DeviceOp op,
                        RangeKind kind = RangeKind::kKernel) {
    op.range = maker.range(name, lane, start, end);
    maker.timeline.ranges.kind.resize(static_cast<size_t>(op.range) + 1, RangeKind::kAnnotation);
    maker.timeline.ranges.kind.back() = kind;
    maker.timeline.device_ops.push_back(op);
  };
  for (int32_t lane : {first, second}) maker.timeline.lanes[static_cast<size_t>(lane)].device = 0;
  call("cudaLaunchKernel", 0, 10, 1);
  call("cudaEventRecord", 10, 12, 2);
  call("cudaStreamWaitEvent", 12, 14, 3);
  call("cudaLaunchKernel", 14, 20, 4);
  call("cudaStreamSynchronize", 20, 205, 5);
  work("a", first, 15, 100, {.correlation = 1});
  work("Stream Wait Event", second, 15, 100,
       {.correlation = 3, .sync_type = 2, .sync_stream = 7, .sync_correlation = 2}, RangeKind::kSync);
  work("b", second, 103, 200, {.correlation = 4});
  work("Stream Sync", second, 20, 200, {.correlation = 5, .sync_type = 3}, RangeKind::kSync);
  const trace::Timeline timeline = maker.finish();
  const DependencyGraph graph(timeline);
  std::map<std::string, int> types;
  int32_t kernel_b = kNone, after_wait = kNone;
  for (size_t i = 0; i < graph.operations().size(); ++i) {
    const auto operation = static_cast<int32_t>(i);
    const std::string_view name =
        timeline.strings[timeline.ranges.name[static_cast<size_t>(graph.operations()[i].range)]];
    if (name == "b") kernel_b = operation;
    if (name == "cudaStreamSynchronize") after_wait = operation;
    for (const Edge& edge : graph.into(operation)) ++types[name_of(edge.type)];
  }
  EXPECT_EQ(types["launch"], 2);
  EXPECT_EQ(types["event"], 1);
  EXPECT_EQ(types["sync"], 1);
  ASSERT_NE(kernel_b, kNone);
  ASSERT_TRUE(graph.latest(kernel_b));
  EXPECT_EQ(graph.latest(kernel_b)->type, EdgeType::kEvent);
  ASSERT_NE(after_wait, kNone);
  EXPECT_EQ(graph.operations()[static_cast<size_t>(after_wait)].start_ns, 200);
  EXPECT_EQ(graph.latest(after_wait)->from, kernel_b);
  EXPECT_EQ(graph.waiting_ns(after_wait), 180);
}

TEST(DependencyGraph, AnEffectBeforeItsCauseIsCountedAndLeftOut) {
  TimelineMaker maker;
  const int32_t a = maker.lane(1), b = maker.lane(2);
  maker.range("late", a, 100, 200);
  maker.range("early", b, 0, 50);
  maker.flow("queue", a, 150, b, 0);
  const DependencyGraph graph(maker.finish());
  EXPECT_EQ(graph.contradictions(), 1U);
}

TEST(DependencyGraph, BlockingCalls) {
  EXPECT_TRUE(is_blocking_call("cudaStreamSynchronize_v3020"));
  EXPECT_TRUE(is_blocking_call("cuCtxSynchronize"));
  EXPECT_TRUE(is_blocking_call("hipDeviceSynchronize"));
  EXPECT_TRUE(is_blocking_call("cudaMemcpy"));
  EXPECT_FALSE(is_blocking_call("cudaLaunchKernel"));
  EXPECT_FALSE(is_blocking_call("cudaEventQuery"));
  EXPECT_FALSE(is_blocking_call("memcpy"));
}

}  // namespace
}  // namespace strobe::analyze
