#include "gpu/timeline/gpu_timeline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "gpu/collector.h"
#include "gpu/cupti_abi.h"
#include "gpu/fake.h"
#include "gpu/log_file.h"
#include "record/clock.h"
#include "record/gpu_collection.h"
#include "strobe/record/annotate.h"
#include "trace/spool_import.h"

namespace strobe::gpu {
namespace {

using testing::Fake;
using testing::Folder;
using ::testing::HasSubstr;
using trace::kNone;
using trace::RangeKind;
using trace::Timeline;

// Records of our own ranges around what `work` does, with the collector on; everything as one timeline.
template <typename Work>
Timeline recorded(const Folder& folder, Work work, GpuSummary* summary = nullptr) {
  EXPECT_TRUE(record::start({.folder = folder.path()}));
  CollectOptions options;
  options.folder = folder.path();
  options.flush_period_ms = 20;
  EXPECT_TRUE(start_collecting(options));
  record::mark_clock();
  work();
  stop_collecting();
  EXPECT_TRUE(record::stop());
  auto timeline = trace::import_spool(folder.path());
  EXPECT_TRUE(timeline);
  const auto added = add_gpu_logs(*timeline, folder.path());
  EXPECT_TRUE(added) << (added ? "" : added.error().to_string());
  if (added && summary != nullptr) *summary = *added;
  return std::move(*timeline);
}

void wait_ns(int64_t duration) {
  for (const int64_t end = record::monotonic_ns() + duration; record::monotonic_ns() < end;) {
  }
}

std::string name_of(const Timeline& timeline, int32_t range) {
  return range == kNone ? "" : std::string(timeline.strings[timeline.ranges.name[static_cast<size_t>(range)]]);
}
std::vector<trace::DeviceOp> ops_of(const Timeline& timeline, RangeKind kind) {
  std::vector<trace::DeviceOp> found;
  for (const trace::DeviceOp& op : timeline.device_ops)
    if (timeline.ranges.kind[static_cast<size_t>(op.range)] == kind) found.push_back(op);
  return found;
}

TEST(GpuTimeline, AKernelIsUnderTheRangeThatLaunchedIt) {
  const Fake fake;
  const Folder folder;
  GpuSummary summary;
  const Timeline timeline = recorded(
      folder,
      [&] {
        for (int frame = 0; frame < 20; ++frame) {
          const record::Range infer("infer", frame);
          {
            const record::Range layer("conv1");
            // Calls and ranges come from two clocks: they are told apart when 2 us lie between them.
            wait_ns(4'000);
            fake.kernel("_Z4convPfi", 20'000, 1'000);
            wait_ns(4'000);
          }
          FakeLaunch copy{};
          copy.stream = 8, copy.duration_ns = 1000, copy.bytes = 1 << 20, copy.copy_kind = 2, copy.nested = 1;
          wait_ns(4'000);
          fake.launch(&copy);
          wait_ns(4'000);
        }
      },
      &summary);
  EXPECT_EQ(summary.logs, 1U);
  EXPECT_EQ(summary.before_call, 0U);
  EXPECT_TRUE(timeline.losses.faults.empty()) << timeline.losses.faults.begin()->first;
  const trace::Ranges& ranges = timeline.ranges;
  const auto kernels = ops_of(timeline, RangeKind::kKernel);
  ASSERT_EQ(kernels.size(), 20U);
  for (size_t i = 0; i < kernels.size(); ++i) {
    const auto kernel = static_cast<size_t>(kernels[i].range);
    EXPECT_EQ(name_of(timeline, kernels[i].range), "conv(float*, int)");
    // Both ends are mapped, and rounded.
    EXPECT_NEAR(static_cast<double>(ranges.end_ns[kernel] - ranges.start_ns[kernel]), 1'000, 1);
    EXPECT_EQ(kernels[i].grid[0], 80U);
    EXPECT_EQ(kernels[i].dynamic_shared, 2048);
    // kernel -> call -> layer -> stage -> frame
    ASSERT_NE(kernels[i].launch, kNone);
    EXPECT_EQ(name_of(timeline, kernels[i].launch), "cudaLaunchKernel");
    const int32_t layer = ranges.parent[static_cast<size_t>(kernels[i].launch)];
    EXPECT_EQ(name_of(timeline, layer), "conv1");
    ASSERT_NE(layer, kNone);
    EXPECT_EQ(name_of(timeline, ranges.parent[static_cast<size_t>(layer)]), "infer");
    EXPECT_EQ(ranges.frame[kernel], static_cast<int64_t>(i));
    // At least the delay after its call, up to what the clocks' mapping is off.
    EXPECT_NEAR(static_cast<double>(ranges.start_ns[kernel] - ranges.start_ns[static_cast<size_t>(kernels[i].launch)]),
                20'000, 2'000);
    const trace::Lane& lane = timeline.lanes[static_cast<size_t>(ranges.lane[kernel])];
    EXPECT_EQ(lane.kind, trace::Lane::Kind::kStream);
    EXPECT_EQ(lane.tid, 7);
    EXPECT_EQ(lane.device, 0);
    EXPECT_EQ(lane.context, 1);
    EXPECT_EQ(timeline.strings[lane.name], "stream 7");
  }
  // A call of the runtime around one of the driver with the same number: the outer one owns the copy.
  const auto copies = ops_of(timeline, RangeKind::kCopy);
  ASSERT_EQ(copies.size(), 20U);
  for (const trace::DeviceOp& copy : copies) {
    EXPECT_EQ(name_of(timeline, copy.range), "[CUDA memcpy Device-to-Host]");
    EXPECT_EQ(name_of(timeline, copy.launch), "cudaMemcpyAsync");
    EXPECT_EQ(copy.bytes, 1 << 20);
    EXPECT_EQ(copy.source_kind, 2);  // device
    EXPECT_EQ(copy.target_kind, 0);  // pageable
  }
  EXPECT_EQ(timeline.facts.at("gpu.0.name"), "Fake GPU 9000");
  EXPECT_EQ(timeline.facts.at("gpu.0.sm_count"), "132");
  EXPECT_EQ(timeline.facts.at("gpu.0.memory_bytes_per_s"), "3350000000000");
  EXPECT_EQ(timeline.facts.at("gpu.of." + std::to_string(::getpid()) + ".0"), "0");
  EXPECT_EQ(timeline.facts.at("gpu.collection"), "on");
  EXPECT_EQ(timeline.facts.at("gpu.causality.before_their_call"), "0");
}

TEST(GpuTimeline, CallsLieInTheirRangesWithinMicroseconds) {
  const Fake fake;
  const Folder folder;
  const Timeline timeline = recorded(folder, [&] {
    for (int i = 0; i < 200; ++i) {
      const record::Range range("launching");
      wait_ns(4'000);
      fake.kernel("k", 0, 10);
      wait_ns(4'000);
    }
  });
  size_t inside = 0, calls = 0;
  for (const trace::ApiCall& call : timeline.api_calls) {
    ++calls;
    inside += timeline.ranges.parent[static_cast<size_t>(call.range)] != kNone ? 1 : 0;
  }
  EXPECT_EQ(calls, 200U);
  EXPECT_EQ(inside, 200U);
}

TEST(GpuTimeline, AClockThatIsAheadOrStepsMakesNoDifference) {
  const Fake fake;
  const Folder folder;
  // An hour off, as a container's clock may be.
  const testing::Environment ahead("FAKE_CUPTI_AHEAD_NS", "3600000000000");
  const Timeline timeline = recorded(folder, [&] {
    const record::Range range("launching");
    fake.kernel("k", 1'000, 10);
  });
  const auto kernels = ops_of(timeline, RangeKind::kKernel);
  ASSERT_EQ(kernels.size(), 1U);
  EXPECT_EQ(name_of(timeline, timeline.ranges.parent[static_cast<size_t>(kernels[0].launch)]), "launching");
  EXPECT_LT(timeline.duration_ns, int64_t{60} * 1'000'000'000);
  EXPECT_EQ(timeline.facts.at("gpu.clock.steps"), "0");
}

TEST(GpuTimeline, AKernelBeforeItsCallIsCountedWithTheWorst) {
  const Fake fake;
  const Folder folder;
  GpuSummary summary;
  const Timeline timeline = recorded(
      folder,
      [&] {
        ::usleep(20'000);
        for (const int64_t early : {0, 0, 50'000, 8'000'000}) {
          FakeLaunch launch{};
          launch.kernel = "k", launch.stream = 7, launch.duration_ns = 10, launch.before_call_ns = early;
          fake.launch(&launch);
        }
      },
      &summary);
  EXPECT_EQ(summary.before_call, 2U);
  EXPECT_NEAR(static_cast<double>(summary.worst_before_call_ns), 8e6, 2e4);
  EXPECT_EQ(timeline.losses.faults.at("GPU operation that seems to begin before its call"), 2U);
  EXPECT_EQ(timeline.facts.at("gpu.causality.worst_ns"), std::to_string(summary.worst_before_call_ns));
}

TEST(GpuTimeline, AKernelWithoutTimesIsKeptAndFlagged) {
  const Fake fake;
  const Folder folder;
  const Timeline timeline = recorded(folder, [&] {
    FakeLaunch launch{};
    launch.kernel = "unmeasured", launch.stream = 7, launch.no_times = 1;
    fake.launch(&launch);
  });
  const auto kernels = ops_of(timeline, RangeKind::kKernel);
  ASSERT_EQ(kernels.size(), 1U);
  const auto row = static_cast<size_t>(kernels[0].range), call = static_cast<size_t>(kernels[0].launch);
  EXPECT_EQ(timeline.ranges.start_ns[row], timeline.ranges.end_ns[call]);
  EXPECT_EQ(timeline.ranges.end_ns[row], timeline.ranges.end_ns[call]);
  ASSERT_EQ(timeline.arguments.size(), 1U);
  EXPECT_EQ(timeline.strings[timeline.arguments.key[0]], "no_times");
  EXPECT_EQ(timeline.losses.faults.at("GPU operation without times, shown at its call's end"), 1U);
  EXPECT_EQ(timeline.losses.faults.size(), 1U);
}

// A log made by hand, with times that can be read.
class ByHand {
 public:
  explicit ByHand(const Folder& folder) : log_(std::move(*LogWriter::create(folder.path()))) {
    log_->add(ClockPair{{1'000'000}, 0, 1'000'000, 10});
  }
  LogWriter& log() { return *log_; }
  static Timeline timeline(const Folder& folder) {
    Timeline timeline;
    const auto added = add_gpu_logs(timeline, folder.path());
    EXPECT_TRUE(added) << (added ? "" : added.error().to_string());
    return timeline;
  }

 private:
  std::unique_ptr<LogWriter> log_;
};

// What CUPTI hands over by force while it is under way has a begin only; where its buffers on the device were full,
// ends were seen that lie before.
TEST(GpuTimeline, WhatHasNoEndBendsNothing) {
  const Folder folder;
  const auto self = static_cast<uint32_t>(::getpid());
  {
    ByHand hand(folder);
    LogWriter& log = hand.log();
    log.add(FunctionName{0, 211, log.intern("cudaLaunchKernel_ptsz_v7000")});
    Kernel kernel;
    kernel.place = {0, 1, 7}, kernel.name = log.intern("k");
    for (const uint32_t number : {1U, 2U, 3U}) {
      log.add(Call{{1'000'000 + 100 * number}, {1'000'010 + 100 * number}, 0, 211, self, self, number, 0});
      kernel.correlation = number;
      kernel.start = {number == 3 ? 0 : 1'000'050 + uint64_t{100} * number};
      kernel.end = {number == 2 ? 1'000'001U : 0U};
      log.add(kernel);
    }
    log.add(Call{{1'000'500}, {0}, 0, 131, self, self, 4, 0});
  }
  const Timeline timeline = ByHand::timeline(folder);
  const trace::Ranges& ranges = timeline.ranges;
  ASSERT_EQ(timeline.device_ops.size(), 3U);
  for (size_t i = 0; i < 3; ++i) {
    const auto row = static_cast<size_t>(timeline.device_ops[i].range);
    EXPECT_EQ(ranges.start_ns[row], static_cast<int64_t>(110 + 100 * i));
    EXPECT_EQ(ranges.end_ns[row], ranges.start_ns[row]);
  }
  for (size_t i = 0; i < ranges.size(); ++i) EXPECT_LE(ranges.start_ns[i], ranges.end_ns[i]);
  EXPECT_EQ(timeline.strings[ranges.name[0]], "cudaLaunchKernel");
  const std::map<std::string, uint64_t> expected{{"GPU operation without times, shown at its call's end", 3},
                                                 {"CUDA call without an end", 1}};
  const std::map<std::string, uint64_t> found(timeline.losses.faults.begin(), timeline.losses.faults.end());
  EXPECT_EQ(found, expected);
}

TEST(GpuTimeline, LaunchesOfWhichNoWorkCameAreTold) {
  const Folder folder;
  const auto self = static_cast<uint32_t>(::getpid());
  {
    ByHand hand(folder);
    LogWriter& log = hand.log();
    log.add(FunctionName{0, 211, log.intern("cudaLaunchKernel_v7000")});
    for (const uint32_t number : {1U, 2U})
      log.add(Call{{1'000'000 + 100 * number}, {1'000'010 + 100 * number}, 0, 211, self, self, number, 0});
    log.add(Sync{{1'000'400}, {1'000'500}, 4, 1, kNoNumber, 31, 0, 0});
  }
  EXPECT_EQ(ByHand::timeline(folder).losses.faults.at("launch, of none of which CUPTI gave the work"), 2U);
}

TEST(GpuTimeline, AWaitKnowsWhichRecordingOfTheEventItWaitsFor) {
  const Folder folder;
  {
    ByHand hand(folder);
    LogWriter& log = hand.log();
    log.add(Context{1, 0, 7, 0, 0, 0});
    // Stream 8 waits for what stream 7 recorded last; the event's handle, 5, was used before.
    log.add(Sync{{1'000'100}, {1'000'300}, 2, 1, 8, 30, 5, 902});
    log.add(EventRecorded{{0, 1, 7}, 10, 5, 901, {}});
    log.add(EventRecorded{{0, 1, 7}, 20, 5, 902, {}});
    log.add(Sync{{1'000'400}, {1'000'500}, 4, 1, kNoNumber, 31, 0, 0});
  }
  const Timeline timeline = ByHand::timeline(folder);
  ASSERT_EQ(timeline.device_ops.size(), 2U);
  const trace::DeviceOp& wait = timeline.device_ops[0];
  EXPECT_EQ(wait.sync_type, 2);
  EXPECT_EQ(wait.sync_stream, 7);
  EXPECT_EQ(wait.sync_correlation, 20);
  EXPECT_EQ(timeline.ranges.start_ns[0], 100);
  EXPECT_EQ(timeline.ranges.end_ns[0], 300);
  const auto lane = static_cast<size_t>(timeline.ranges.lane[1]);
  EXPECT_EQ(timeline.strings[timeline.lanes[lane].name], "context 1");
  EXPECT_EQ(timeline.lanes[lane].device, 0);  // out of the context's record
}

TEST(GpuTimeline, MemoryClocksAndSamplesAreCounters) {
  const Folder folder;
  {
    ByHand hand(folder);
    LogWriter& log = hand.log();
    const auto allocate = [&log](uint64_t time, bool release, uint64_t address, uint64_t bytes, uint32_t kind = 3) {
      log.add(Memory{{time}, release ? 1U : 0U, kind, 0, 0, 0, 1, 7, 0, address, bytes, 0, 0});
    };
    allocate(1'000'300, false, 0x2000, 50);
    allocate(1'000'100, false, 0x1000, 100);  // out of order, as buffers of several threads are
    allocate(1'000'500, true, 0x1000, 100);
    allocate(1'000'600, true, 0x9000, 7);  // allocated before the recording
    allocate(1'000'700, false, 0x3000, 9, 2);
    log.add(Environment{{1'000'800}, 0, 1, {1755, 2619, 4, 16, 1}});
    log.add(Sample{900, 0, log.intern("busy_percent"), 87.5, 0});
    log.add(Sample{950, 0, log.intern("process_sm_percent"), 12, 4321});
  }
  const Timeline timeline = ByHand::timeline(folder);
  std::vector<std::tuple<std::string, int64_t, int32_t, double>> found;
  const auto& counters = timeline.counters;
  for (size_t i = 0; i < counters.size(); ++i)
    found.emplace_back(timeline.strings[counters.name[i]], counters.time_ns[i], counters.pid[i], counters.value[i]);
  const int32_t self = ::getpid();
  EXPECT_THAT(
      found,
      ::testing::ElementsAre(
          std::tuple("gpu.0.allocated_bytes", 100, self, 100.0), std::tuple("gpu.0.allocated_bytes", 300, self, 150.0),
          std::tuple("gpu.0.allocated_bytes", 500, self, 50.0), std::tuple("gpu.pinned_bytes", 700, self, 9.0),
          std::tuple("gpu.0.sm_clock_mhz", 800, self, 1755.0), std::tuple("gpu.0.memory_clock_mhz", 800, self, 2619.0),
          std::tuple("gpu.0.clock_event_reasons", 800, self, 1.0), std::tuple("gpu.0.busy_percent", 900, self, 87.5),
          std::tuple("gpu.0.process_sm_percent", 950, 4321, 12.0)));
}

TEST(GpuTimeline, TheRestOfWhatALogHolds) {
  const Folder folder;
  const auto self = static_cast<uint32_t>(::getpid());
  {
    ByHand hand(folder);
    LogWriter& log = hand.log();
    log.add(FunctionName{1, 307, log.intern("cuLaunchKernel_ptsz")});
    log.add(External{3, 41, 777});
    log.add(Call{{1'000'100}, {1'000'200}, 1, 307, self, self, 41, 700});
    log.add(Call{{1'000'210}, {1'000'220}, 0, 9999, self, self, 42, 0});
    log.add(Overhead{{1'000'150}, {1'000'250}, 2U << 16, self, self, 0});
    log.add(Marker{{1'000'010}, 2, 1, self, self, log.intern("layer"), log.intern("TRT")});
    log.add(Marker{{1'000'400}, 4, 1, self, self, {}, {}});
    log.add(Marker{{1'000'500}, 4, 99, self, self, {}, {}});  // its start was lost
    log.add(Marker{{1'000'450}, 1, 2, self, self, log.intern("now"), {}});
    log.add(GraphLaunch{{1'000'300}, {1'000'380}, {0, 1, 7}, 41, 6});
    log.add(Stream{1, 7, -3, 2});
    ObjectName stream;
    stream.object = 5, stream.place = {0, 1, 7}, stream.name = log.intern("main");
    log.add(stream);
    log.add(Loss{"dropped", 5});
    log.add(Complete{{1'000'600}});
  }
  const Timeline timeline = ByHand::timeline(folder);
  const trace::Ranges& ranges = timeline.ranges;
  std::vector<std::string> names;
  for (size_t i = 0; i < ranges.size(); ++i) names.push_back(name_of(timeline, static_cast<int32_t>(i)));
  EXPECT_THAT(names, ::testing::ElementsAre("layer", "cuLaunchKernel", "CUPTI instrumentation",
                                            "CUDA runtime call 9999", "CUDA graph 6"));
  EXPECT_EQ(timeline.strings[ranges.domain_of(0)], "TRT");
  EXPECT_EQ(ranges.parent[1], 0);
  EXPECT_EQ(ranges.kind[2], RangeKind::kOverhead);
  ASSERT_EQ(timeline.device_ops.size(), 1U);
  EXPECT_EQ(timeline.device_ops[0].launch, 1);
  EXPECT_EQ(timeline.strings[timeline.lanes[static_cast<size_t>(ranges.lane[4])].name], "stream 7 (main)");
  ASSERT_EQ(timeline.arguments.size(), 2U);
  EXPECT_EQ(std::get<int64_t>(timeline.arguments.value[0]), 700);  // return_value
  EXPECT_EQ(std::get<int64_t>(timeline.arguments.value[1]), 777);  // external_id
  EXPECT_EQ(timeline.losses.dropped_records, 5U);
  EXPECT_EQ(timeline.losses.faults.at("end of a marker without its start"), 1U);
  EXPECT_EQ(timeline.facts.at("gpu.stream_priority." + std::to_string(self) + ".1.7"), "-3");
  // No end: the process was killed, and the trace says up to when it knows everything.
  ASSERT_EQ(timeline.marks.size(), 2U);
  EXPECT_EQ(timeline.strings[timeline.marks.name[1]], "GPU records are complete up to here");
  EXPECT_EQ(timeline.marks.time_ns[1], 600);
}

// Captured on one thread in two layers, launched on another in a frame; times in ns after 1 ms.
//   thread 1:  warm_up 0 -------------------------------------- 400
//                conv 10 ----- 100  fc 110 ---- 200   cudaGraphInstantiate 300-350 (node 11 of 1, 12 of 2, 13 of 3)
//                  launch 40-60          (a driver's call that is not recorded, at 150)
//   thread 2:  infer 1000 ----- 1100: cudaGraphLaunch 1010-1020
TEST(GpuTimeline, AGraphsKernelsKnowWhereTheyWereCaptured) {
  const Folder folder;
  const auto self = static_cast<uint32_t>(::getpid());
  {
    ByHand hand(folder);
    LogWriter& log = hand.log();
    const auto marker = [&](uint32_t id, uint32_t thread, const char* name, uint64_t start, uint64_t end) {
      log.add(Marker{{1'000'000 + start}, 2, id, self, thread, log.intern(name), {}});
      log.add(Marker{{1'000'000 + end}, 4, id, self, thread, {}, {}});
    };
    marker(1, self, "warm_up", 0, 400), marker(2, self, "conv", 10, 100), marker(3, self, "fc", 110, 200);
    marker(4, self + 1, "infer", 1'000, 1'100);
    log.add(FunctionName{0, 211, log.intern("cudaLaunchKernel_v7000")});
    log.add(FunctionName{0, 311, log.intern("cudaGraphLaunch_v10000")});
    log.add(FunctionName{0, 306, log.intern("cudaGraphInstantiate_v12000")});
    const auto kernel = [&](const char* name, uint64_t start, uint32_t number, uint64_t node) {
      Kernel one;
      one.start = {1'000'000 + start}, one.end = {1'000'010 + start}, one.place = {0, 1, 7};
      one.correlation = number, one.name = log.intern(name), one.graph_node = node, one.graph = 2;
      log.add(one);
    };
    for (const uint64_t shift : {0, 500}) {
      kernel("conv_k", 1'030 + shift, 77, 21), kernel("fc_k", 1'050 + shift, 77, 12);
      kernel("unknown_k", 1'070 + shift, 77, 13), kernel("round_k", 1'080 + shift, 77, 31);
    }
    log.add(Call{{1'001'010}, {1'001'020}, 0, 311, self, self + 1, 77, 0});
    log.add(Call{{1'000'040}, {1'000'060}, 0, 211, self, self, 70, 0});
    log.add(Call{{1'000'300}, {1'000'350}, 0, 306, self, self, 71, 0});
    // Node 1 went through two graphs; node 3 was captured before the recording; 31 and 32 are each the other's copy.
    const auto node = [&](uint64_t time, uint64_t id, uint64_t original) {
      log.add(GraphNode{{1'000'000 + time}, self, id, original, 0});
    };
    node(50, 1, 0), node(150, 2, 0);
    node(310, 11, 0), node(310, 11, 1), node(320, 12, 0), node(321, 12, 2), node(330, 13, 0), node(331, 13, 3);
    node(340, 21, 11), node(341, 31, 32), node(342, 32, 31);
  }
  const Timeline timeline = ByHand::timeline(folder);
  EXPECT_TRUE(timeline.losses.faults.empty());
  const auto kernels = ops_of(timeline, RangeKind::kKernel);
  ASSERT_EQ(kernels.size(), 8U);
  for (const trace::DeviceOp& op : kernels) {
    EXPECT_EQ(name_of(timeline, op.launch), "cudaGraphLaunch");
    const std::string name = name_of(timeline, op.range), capture = name_of(timeline, op.capture);
    SCOPED_TRACE(name);
    if (name == "conv_k") {
      EXPECT_EQ(capture, "cudaLaunchKernel");
      EXPECT_EQ(name_of(timeline, timeline.ranges.parent[static_cast<size_t>(op.capture)]), "conv");
    } else {
      EXPECT_EQ(capture, name == "fc_k" ? "fc" : "");
    }
  }
}

TEST(GpuTimeline, AFolderWithoutLogsChangesNothing) {
  const Folder folder;
  Timeline timeline;
  const auto summary = add_gpu_logs(timeline, folder.path());
  ASSERT_TRUE(summary);
  EXPECT_EQ(summary->logs, 0U);
  std::ofstream(folder.path() / "1-0.gpu") << "no log";
  EXPECT_FALSE(add_gpu_logs(timeline, folder.path()));
}

}  // namespace
}  // namespace strobe::gpu
