#include "gpu/collector.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <thread>

#include "gpu/buffer_pool.h"
#include "gpu/cupti_abi.h"
#include "gpu/fake.h"
#include "gpu/log_file.h"

namespace strobe::gpu {
namespace {

using Variable = testing::Environment;
using testing::Fake;
using testing::Folder;
using ::testing::HasSubstr;

// A whole log by kind.
struct Read {
  explicit Read(const std::filesystem::path& folder) {
    for (const auto& path : log_files(folder)) {
      const auto log = read_log(path, [this](const Record& record) { records.push_back(record); });
      EXPECT_TRUE(log && log->faults.empty());
    }
  }
  template <typename Kind>
  std::vector<Kind> all() const {
    std::vector<Kind> found;
    for (const Record& record : records)
      if (const auto* one = std::get_if<Kind>(&record)) found.push_back(*one);
    return found;
  }
  std::string fact(const std::string& key) const {
    std::string value;
    for (const Fact& one : all<Fact>())
      if (one.key == key) value = one.value;
    return value;
  }
  uint64_t lost(const std::string& kind) const {
    uint64_t sum = 0;
    for (const Loss& one : all<Loss>())
      if (one.kind == kind) sum += one.count;
    return sum;
  }
  std::vector<Record> records;
};

CollectOptions into(const Folder& folder) {
  CollectOptions options;
  options.folder = folder.path();
  options.flush_period_ms = 20;
  return options;
}

TEST(Collector, WhatADeviceDidIsInTheLog) {
  const Fake fake;
  const Folder folder;
  ASSERT_TRUE(start_collecting(into(folder)));
  EXPECT_TRUE(collecting());
  for (int i = 0; i < 1000; ++i) fake.kernel(i % 2 == 0 ? "even" : "odd", 5000, 1000);
  FakeLaunch copy{};
  copy.stream = 8, copy.duration_ns = 10, copy.bytes = 4096, copy.copy_kind = 1;
  fake.launch(&copy);
  fake.synchronize(7);
  const CollectTotals totals = stop_collecting();
  EXPECT_EQ(totals.dropped, 0U);
  EXPECT_FALSE(totals.flush_timed_out);
  EXPECT_FALSE(collecting());
  const Read read(folder.path());
  EXPECT_EQ(read.all<Kernel>().size(), 1000U);
  EXPECT_EQ(read.all<Copy>().size(), 1U);
  EXPECT_EQ(read.all<Sync>().size(), 1U);
  EXPECT_EQ(read.all<Call>().size(), 1002U);  // without cudaGetDevice, which was switched off
  EXPECT_EQ(read.all<Device>().size(), 1U);
  EXPECT_EQ(read.fact("gpu.collection"), "on");
  EXPECT_EQ(read.all<End>().size(), 1U);
  EXPECT_GE(read.all<ClockPair>().size(), 2U);
  EXPECT_GE(read.all<Complete>().size(), 1U);
  EXPECT_EQ(totals.records, 1000U + 1 + 1 + 1002 + 1 + 1);  // kernels, copy, sync, calls, device, context
  // Two names of kernels, the device's and those of three functions.
  EXPECT_EQ(read.all<TextDefinition>().size(), 6U);
  EXPECT_EQ(read.all<FunctionName>().size(), 3U);
  EXPECT_EQ(fake.outstanding(), 0U);
}

TEST(Collector, OnlyCallsOfTheDriverThatDoSomethingAreAskedFor) {
  const Fake fake;
  const Folder folder;
  ASSERT_TRUE(start_collecting(into(folder)));
  EXPECT_EQ(fake.driver_function_enabled(307), 1U);  // cuLaunchKernel
  EXPECT_EQ(fake.driver_function_enabled(304), 0U);  // cuCtxGetCurrent
  EXPECT_EQ(fake.enabled(cupti::kDriver), 0U);
  EXPECT_EQ(fake.runtime_function_disabled(17), 1U);   // cudaGetDevice
  EXPECT_EQ(fake.runtime_function_disabled(10), 1U);   // cudaGetLastError
  EXPECT_EQ(fake.runtime_function_disabled(410), 1U);  // cudaStreamGetCaptureInfo_v2_ptsz
  EXPECT_EQ(fake.runtime_function_disabled(16), 0U);   // cudaSetDevice, which may make a context
  EXPECT_EQ(fake.runtime_function_disabled(211), 0U);  // cudaLaunchKernel
  EXPECT_EQ(fake.enabled(3), 0U);                      // the kind that serialises kernels is never on
  EXPECT_EQ(fake.enabled(cupti::kConcurrentKernel), 1U);
  stop_collecting();
  EXPECT_EQ(fake.enabled(cupti::kConcurrentKernel), 0U);
}

TEST(Collector, NodesOfGraphsAreFollowedFromTheirCaptureToTheirKernels) {
  const Fake fake;
  const Folder folder;
  CollectOptions options = into(folder);
  options.graph_nodes = true;
  ASSERT_TRUE(start_collecting(options));
  FakeLaunch gemm{}, copy{};
  gemm.kernel = "gemm", gemm.duration_ns = 100;
  copy.copy_kind = 1, copy.bytes = 64, copy.duration_ns = 100;
  void* graph = nullptr;
  pid_t other = 0;
  std::thread([&] {
    other = ::gettid();
    graph = fake.graph_capture(nullptr, &gemm);
  }).join();
  fake.graph_capture(graph, &copy);
  void* const instance = fake.graph_instantiate(graph);
  const uint32_t first = fake.graph_launch(instance, 7), second = fake.graph_launch(instance, 7);
  stop_collecting();
  const Read read(folder.path());
  EXPECT_TRUE(read.all<GraphLaunch>().empty());
  const auto nodes = read.all<GraphNode>();
  ASSERT_EQ(nodes.size(), 6U);  // two captured; two copies, each told of as a node and as a copy
  EXPECT_EQ(nodes[0].thread, static_cast<uint32_t>(other));
  EXPECT_EQ(nodes[1].thread, static_cast<uint32_t>(::gettid()));
  EXPECT_EQ(nodes[0].type, 0U);
  EXPECT_EQ(nodes[1].type, 1U);
  EXPECT_EQ(nodes[3].original, nodes[0].node);
  EXPECT_EQ(nodes[5].original, nodes[1].node);
  const auto kernels = read.all<Kernel>();
  ASSERT_EQ(kernels.size(), 2U);
  EXPECT_EQ(kernels[0].correlation, first);
  EXPECT_EQ(kernels[1].correlation, second);
  for (const Kernel& kernel : kernels) EXPECT_EQ(kernel.graph_node, nodes[3].node);
  for (const Copy& one : read.all<Copy>()) EXPECT_EQ(one.graph_node, nodes[5].node);
  // Of the call that captured it: CUPTI called back while it ran.
  const auto calls = read.all<Call>();
  EXPECT_TRUE(std::any_of(calls.begin(), calls.end(), [&](const Call& call) {
    return call.thread == nodes[0].thread && call.start <= nodes[0].time && nodes[0].time <= call.end;
  }));
}

void launch_graph_of_one_kernel(const Fake& fake) {
  FakeLaunch gemm{};
  gemm.kernel = "gemm", gemm.duration_ns = 100;
  fake.graph_launch(fake.graph_instantiate(fake.graph_capture(nullptr, &gemm)), 7);
}

TEST(Collector, AGraphIsOneRecordALaunchUnlessAskedOtherwise) {
  const Fake fake;
  const Folder folder;
  ASSERT_TRUE(start_collecting(into(folder)));
  launch_graph_of_one_kernel(fake);
  stop_collecting();
  const Read read(folder.path());
  EXPECT_EQ(read.all<GraphLaunch>().size(), 1U);
  EXPECT_TRUE(read.all<Kernel>().empty());
  EXPECT_TRUE(read.all<GraphNode>().empty());
}

TEST(Collector, AProgramsEnvironmentAsksForNodesAndAnOldLibrarySaysThatItCannot) {
  const Variable wanted(kGraphNodesVariable, "1");
  EXPECT_TRUE(CollectOptions().graph_nodes);
  const Fake fake("libstrobe_fake_gpu_old.so");
  const Folder folder;
  ASSERT_TRUE(start_collecting(into(folder)));
  launch_graph_of_one_kernel(fake);
  stop_collecting();
  const Read read(folder.path());
  EXPECT_EQ(read.all<Kernel>().size(), 1U);
  EXPECT_THAT(read.fact("gpu.not_collected.graph_captures"), HasSubstr("where the nodes of graphs come from"));
}

TEST(Collector, AnOldLibraryLosesFeaturesOnly) {
  const Fake fake("libstrobe_fake_gpu_old.so");
  const Folder folder;
  ASSERT_TRUE(start_collecting(into(folder)));
  EXPECT_EQ(fake.enabled(cupti::kDriver), 1U);  // all calls, since functions cannot be told apart
  fake.kernel("k", 0, 10);
  stop_collecting();
  const Read read(folder.path());
  EXPECT_EQ(read.all<Kernel>().size(), 1U);
  EXPECT_TRUE(read.all<FunctionName>().empty());
  EXPECT_THAT(read.fact("gpu.thread_ids"), HasSubstr("not the kernel's"));
}

TEST(Collector, BuffersAreBoundedAndWhatFindsNoneIsCounted) {
  const Fake fake;
  const Folder folder;
  CollectOptions options = into(folder);
  options.buffer_bytes = 4096, options.most_buffers = 2;
  options.flush_period_ms = 10'000;
  ASSERT_TRUE(start_collecting(options));
  // Far more than two buffers hold, faster than anyone decodes.
  for (int i = 0; i < 20'000; ++i) fake.kernel("k", 0, 10);
  const CollectTotals totals = stop_collecting();
  const Read read(folder.path());
  EXPECT_EQ(read.fact("gpu.buffers"), "2");
  EXPECT_EQ(read.lost("dropped"), totals.dropped);
  // Every record is either there or counted.
  EXPECT_EQ(read.all<Kernel>().size() + read.all<Call>().size() + totals.dropped, 40'000U);
}

TEST(Collector, ALibraryThatNeedsBuffersGetsSomeThatAreThrownAway) {
  const Fake fake;
  const Folder folder;
  const Variable old("FAKE_CUPTI_VERSION", "22");
  CollectOptions options = into(folder);
  options.buffer_bytes = 4096, options.most_buffers = 1;
  options.flush_period_ms = 10'000;
  ASSERT_TRUE(start_collecting(options));
  for (int i = 0; i < 20'000; ++i) fake.kernel("k", 0, 10);
  const CollectTotals totals = stop_collecting();
  const Read read(folder.path());
  EXPECT_EQ(read.fact("gpu.buffers"), "1");
  EXPECT_EQ(read.all<Kernel>().size() + read.all<Call>().size() + totals.dropped, 40'000U);
}

TEST(Collector, ManyThreadsLaunchAtOnce) {
  const Fake fake;
  const Folder folder;
  CollectOptions options = into(folder);
  options.buffer_bytes = 64 << 10;
  ASSERT_TRUE(start_collecting(options));
  std::vector<std::thread> threads;
  for (uint32_t i = 0; i < 4; ++i)
    threads.emplace_back([&fake, i] {
      for (int launch = 0; launch < 2000; ++launch) fake.kernel("k", 0, 10, i);
    });
  for (std::thread& thread : threads) thread.join();
  const CollectTotals totals = stop_collecting();
  const Read read(folder.path());
  EXPECT_EQ(read.all<Kernel>().size() + read.all<Call>().size() + totals.dropped, 16'000U);
}

TEST(Collector, RefusalsAreOneLineAndLeaveNothingBehind) {
  const Fake fake;
  const Folder folder;
  const auto refusal = [&](const char* name, const char* value) {
    const Variable set(name, value);
    const auto begun = start_collecting(into(folder));
    EXPECT_FALSE(begun);
    EXPECT_TRUE(log_files(folder.path()).empty());
    return begun ? std::string() : begun.error().to_string();
  };
  EXPECT_THAT(refusal("FAKE_CUDA_DEVICES", "0"), HasSubstr("no CUDA device"));
  EXPECT_THAT(refusal("FAKE_CUPTI_OTHER_CLIENT", "Kineto"), HasSubstr("another CUPTI client: Kineto"));
  EXPECT_THAT(refusal("FAKE_CUPTI_ENABLE_10", "999"), HasSubstr("CUPTI error 999"));
  EXPECT_THAT(refusal("FAKE_CUPTI_ENABLE_5", "35"), HasSubstr("no permission"));
  {
    const Variable other("FAKE_CUPTI_OTHER_CLIENT", "Kineto");
    EXPECT_FALSE(start_collecting_or_say_why(into(folder)));
  }
  EXPECT_THAT(Read(folder.path()).fact("gpu.collection"), HasSubstr("off: another CUPTI client: Kineto"));
  // After all that it can still begin.
  ASSERT_TRUE(start_collecting(into(folder)));
  EXPECT_FALSE(start_collecting(into(folder)));
  stop_collecting();
}

TEST(Collector, AKindThatIsNotToBeHadIsAGapThatIsTold) {
  const Fake fake;
  const Folder folder;
  const Variable without("FAKE_CUPTI_ENABLE_49", "27");
  ASSERT_TRUE(start_collecting(into(folder)));
  fake.kernel("k", 0, 10);
  stop_collecting();
  const Read read(folder.path());
  EXPECT_THAT(read.fact("gpu.not_collected.memory"), HasSubstr("not supported on this device"));
  EXPECT_EQ(read.all<Kernel>().size(), 1U);
}

TEST(Collector, WhatIsFlushedIsInTheFileBeforeTheEnd) {
  const Fake fake;
  const Folder folder;
  const pid_t child = ::fork();
  if (child == 0) {
    if (!start_collecting(into(folder))) ::_exit(1);
    for (int i = 0; i < 10; ++i) fake.kernel("k", 0, 10);
    // Until they are in the file: then the process dies without any end.
    for (int tries = 0; tries < 2000; ++tries) {
      if (Read(folder.path()).all<Kernel>().size() == 10 && !Read(folder.path()).all<Complete>().empty())
        ::kill(::getpid(), SIGKILL);
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    ::_exit(2);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  ASSERT_TRUE(WIFSIGNALED(status));
  const Read read(folder.path());
  EXPECT_EQ(read.all<Kernel>().size(), 10U);
  EXPECT_TRUE(read.all<End>().empty());
}

TEST(Collector, AForkedChildIsSilent) {
  const Fake fake;
  const Folder folder;
  ASSERT_TRUE(start_collecting(into(folder)));
  fake.kernel("k", 0, 10);
  const pid_t child = ::fork();
  if (child == 0) {
    for (int i = 0; i < 1000; ++i) fake.kernel("child", 0, 10);
    stop_collecting();
    ::_exit(collecting() ? 1 : 0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  stop_collecting();
  EXPECT_EQ(Read(folder.path()).all<Kernel>().size(), 1U);
}

TEST(Collector, AFlushThatNeverReturnsIsGivenUp) {
  const Fake fake;
  const Folder folder;
  const pid_t child = ::fork();
  if (child == 0) {
    ::setenv("FAKE_CUPTI_FLUSH_HANGS", "1", 1);
    CollectOptions options = into(folder);
    options.stop_timeout_ms = 50;
    if (!start_collecting(options)) ::_exit(1);
    fake.kernel("k", 0, 10);
    ::_exit(stop_collecting().flush_timed_out ? 0 : 2);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  const Read read(folder.path());
  ASSERT_EQ(read.all<End>().size(), 1U);
  EXPECT_EQ(read.all<End>()[0].flush_timed_out, 1U);
}

TEST(BufferPool, GivesZeroedBuffersUpToItsBound) {
  BufferPool pool({.buffer_bytes = 4096, .ready = 2, .most = 3});
  uint8_t* a = pool.take(10);
  uint8_t* b = pool.take(20);
  ASSERT_NE(a, nullptr);
  ASSERT_NE(b, nullptr);
  EXPECT_EQ(pool.take(30), nullptr);  // nothing is made where it is asked for
  EXPECT_EQ(pool.refused(), 1U);
  pool.refill();
  EXPECT_EQ(pool.allocated(), 3U);
  uint8_t* c = pool.take(40);
  ASSERT_NE(c, nullptr);
  pool.refill();
  EXPECT_EQ(pool.take(50), nullptr);
  EXPECT_EQ(pool.outside().count, 3U);
  EXPECT_EQ(pool.outside().oldest_ns, 10);
  std::fill(a, a + 4096, uint8_t{7});
  EXPECT_TRUE(pool.give_back(a, 4096));
  EXPECT_FALSE(pool.give_back(a, 4096));
  EXPECT_EQ(pool.outside().oldest_ns, 20);
  uint8_t* again = pool.take(60);
  EXPECT_EQ(again, a);
  EXPECT_TRUE(std::all_of(again, again + 4096, [](uint8_t byte) { return byte == 0; }));
  pool.give_back(again, 0), pool.give_back(b, 0), pool.give_back(c, 0);
}

}  // namespace
}  // namespace strobe::gpu
