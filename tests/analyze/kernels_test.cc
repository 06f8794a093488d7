#include "analyze/kernels.h"

#include <gmock/gmock.h>

#include <map>

#include "analyze/device_maker.h"
#include "importers/importer.h"
#include "support/test_data.h"

namespace strobe::analyze {
namespace {

using test::DeviceMaker;
using testing::Contains;
using testing::HasSubstr;

// One thread, one stream; times in ns.
//   step     0 ---------------------------------------- 1000
//   conv       10 ------ 100     relu 110 --- 200
//   launch       20-30                120-140           launch 2000-2010 (outside everything)
//   gemm              50 ------------------- 300        gemm 2005-2105 (starts while its call still runs)
//   relu_k                                    330-380
trace::Timeline three_kernels() {
  DeviceMaker maker;
  const int32_t thread = maker.lane(1), stream = maker.stream(7);
  maker.range("step", thread, 0, 1000, 5);
  maker.op("aten::conv", thread, 10, 100);
  maker.op("aten::relu", thread, 110, 200);
  const int32_t first = maker.api("cudaLaunchKernel", thread, 20, 30);
  const int32_t second = maker.api("cudaLaunchKernel", thread, 120, 140);
  const int32_t third = maker.api("cudaLaunchKernel", thread, 2000, 2010);
  maker.kernel("gemm", stream, 50, 300, first);
  maker.kernel("relu_k", stream, 330, 380, second);
  maker.kernel("gemm", stream, 2005, 2105, third);
  maker.kernel("relu_k", stream, 3000, 3050);  // no launch in the trace
  return maker.finish();
}

TEST(Kernels, ByNameWithTheWayToTheirStart) {
  const Table table = kernels(three_kernels(), {});
  ASSERT_EQ(table.row_count(), 2U);
  EXPECT_EQ(table.text(0, "name"), "gemm");
  EXPECT_EQ(*table.number(0, "count"), 2);
  EXPECT_EQ(*table.number(0, "total_ns"), 350);
  EXPECT_NEAR(*table.number(0, "share"), 350.0 / 450, 1e-15);
  // gemm: 30 = 10 call + 0 stream + 20 rest; and 5 = 5 call + 0 + 0.
  EXPECT_EQ(*table.number(0, "launched"), 2);
  EXPECT_EQ(*table.number(0, "launch_latency_ns"), 17.5);
  EXPECT_EQ(*table.number(0, "call_ns"), 7.5);
  EXPECT_EQ(*table.number(0, "stream_wait_ns"), 0);
  EXPECT_EQ(*table.number(0, "queue_delay_ns"), 10);
  // relu_k: 210 = 20 call + 160 behind gemm (140..300) + 30 rest.
  EXPECT_EQ(table.text(1, "name"), "relu_k");
  EXPECT_EQ(*table.number(1, "launched"), 1);
  EXPECT_EQ(*table.number(1, "launch_latency_ns"), 210);
  EXPECT_EQ(*table.number(1, "call_ns"), 20);
  EXPECT_EQ(*table.number(1, "stream_wait_ns"), 160);
  EXPECT_EQ(*table.number(1, "queue_delay_ns"), 30);
  EXPECT_DOUBLE_EQ(*table.coverage, 0.75);
  EXPECT_THAT(table.notes, Contains(HasSubstr("1 kernel has no launch call")));
}

// One launch in frame 5 asks for two nodes of a graph, which were captured in two layers of another thread before.
TEST(Kernels, AGraphsKernelsBelongToTheLayerOfTheirCapture) {
  DeviceMaker maker;
  const int32_t thread = maker.lane(1), other = maker.lane(2), stream = maker.stream(7);
  maker.op("aten::conv", thread, 0, 100);
  const int32_t captured = maker.api("cudaLaunchKernel", thread, 10, 20);
  const int32_t relu = maker.range("relu", thread, 110, 200);
  const int32_t nowhere = maker.api("cudaLaunchKernel", thread, 300, 310);
  maker.range("step", other, 1000, 2000, 5);
  const int32_t launch = maker.api("cudaGraphLaunch", other, 1010, 1020);
  const std::pair<const char*, int32_t> nodes[] = {
      {"conv_k", captured}, {"relu_k", relu}, {"bare_k", nowhere}, {"old_k", trace::kNone}};
  int64_t at = 1100;
  for (const auto& [name, capture] : nodes) {
    maker.kernel(name, stream, at, at + 50, launch);
    maker.timeline.device_ops.back().capture = capture;
    at += 100;
  }
  const trace::Timeline timeline = maker.finish();
  const Table layers = kernels(timeline, {KernelsBy::kLayer, 0, {}});
  std::map<std::string, std::string> layer_of;
  for (size_t i = 0; i < layers.row_count(); ++i) layer_of[layers.text(i, "name")] = layers.text(i, "layer");
  EXPECT_EQ(layer_of, (std::map<std::string, std::string>{
                          {"conv_k", "aten::conv"}, {"relu_k", "relu"}, {"bare_k", "step"}, {"old_k", "step"}}));
  EXPECT_EQ(*layers.number(*test::row_with(layers, "name", "conv_k"), "launch_latency_ns"), 1100 - 1010);
  const Table ranges = kernels(timeline, {KernelsBy::kRange, 0, {}});
  EXPECT_EQ(ranges.text(*test::row_with(ranges, "name", "conv_k"), "range"), "step");  // an operator is no annotation
  const Table frames = kernels(timeline, {KernelsBy::kFrame, 0, {}});
  for (size_t i = 0; i < frames.row_count(); ++i) EXPECT_EQ(*frames.number(i, "frame"), 5);
}

TEST(Kernels, ByLayerRangeAndFrame) {
  const trace::Timeline timeline = three_kernels();
  const Table layers = kernels(timeline, {KernelsBy::kLayer, 0, {}});
  ASSERT_EQ(layers.row_count(), 4U);
  EXPECT_EQ(layers.text(0, "layer"), "aten::conv");
  EXPECT_EQ(*layers.number(0, "total_ns"), 250);
  EXPECT_EQ(layers.text(*test::row_with(layers, "layer", "aten::relu"), "name"), "relu_k");
  const Table ranges = kernels(timeline, {KernelsBy::kRange, 0, {}});
  EXPECT_EQ(ranges.text(0, "range"), "step");
  EXPECT_EQ(ranges.text(0, "name"), "gemm");
  EXPECT_EQ(*ranges.number(0, "count"), 1);
  const Table frames = kernels(timeline, {KernelsBy::kFrame, 1, {}});
  ASSERT_EQ(frames.row_count(), 1U);
  EXPECT_EQ(*frames.number(0, "frame"), 5);  // the call's range has it
  EXPECT_THAT(parse_kernels_by("x").error().to_string(), HasSubstr("expected name, layer"));
}

TEST(Kernels, OfAnEngineAndOfALogWithoutKernels) {
  trace::Timeline engine;
  auto& strings = engine.strings;
  engine.layers.push_back({strings.intern("conv1"), 0, 0, 0, 0, 0});
  engine.layers.push_back({strings.intern("relu1"), 0, 0, 0, 0, 0});
  engine.kernels.push_back({strings.intern("k"), 0, 0, {0, 1}, {100, 300}});
  engine.kernels.push_back({strings.intern("untimed"), 0, 0, {}, {}});
  const Table table = kernels(engine, {KernelsBy::kLayer, 0, {}});
  ASSERT_EQ(table.row_count(), 2U);
  EXPECT_EQ(table.text(0, "layer"), "conv1+relu1");
  EXPECT_EQ(*table.number(0, "mean_ns"), 200);
  EXPECT_EQ(*table.number(0, "jitter_ns"), 200);
  EXPECT_EQ(*table.number(1, "count"), 0);
  EXPECT_FALSE(table.number(1, "mean_ns"));

  trace::Timeline log;
  Table summary("GPU activities", {{"name", ""}});
  summary.add_row({std::string("gemm")});
  log.tables.push_back(summary);
  EXPECT_EQ(kernels(log, {}).text(0, "name"), "gemm");
  EXPECT_THAT(kernels(trace::Timeline(), {}).notes, Contains("no kernel in this trace"));
}

// Against a look at all earlier operations and all ranges of the thread, for each kernel.
TEST(Kernels, EqualTheDefinitionsOnRandomTimelines) {
  for (uint32_t seed = 1; seed <= 20; ++seed) {
    const trace::Timeline timeline = test::random_device_timeline(seed, 120);
    const trace::Ranges& r = timeline.ranges;
    struct Sum {
      int64_t count = 0, total = 0, launched = 0, latency = 0, call = 0, wait = 0, queue = 0;
    };
    std::map<std::pair<std::string, std::string>, Sum> expected;
    for (const trace::DeviceOp& op : timeline.device_ops) {
      const auto k = static_cast<size_t>(op.range);
      if (r.kind[k] != trace::RangeKind::kKernel) continue;
      std::string layer;
      if (op.launch != trace::kNone) {
        const auto l = static_cast<size_t>(op.launch);
        int64_t shortest = INT64_MAX;
        for (size_t i = 0; i < r.size(); ++i) {
          const bool around = r.lane[i] == r.lane[l] && r.start_ns[i] <= r.start_ns[l] && r.end_ns[i] >= r.end_ns[l];
          if (r.kind[i] != trace::RangeKind::kOperator || !around || r.end_ns[i] - r.start_ns[i] > shortest) continue;
          shortest = r.end_ns[i] - r.start_ns[i];
          layer = timeline.strings[r.name[i]];
        }
      }
      Sum& sum = expected[{layer, std::string(timeline.strings[r.name[k]])}];
      ++sum.count;
      sum.total += r.end_ns[k] - r.start_ns[k];
      if (op.launch == trace::kNone) continue;
      const auto l = static_cast<size_t>(op.launch);
      ++sum.launched;
      sum.latency += r.start_ns[k] - r.start_ns[l];
      sum.call += std::min(r.start_ns[k], r.end_ns[l]) - r.start_ns[l];
      int64_t ready = r.end_ns[l];
      for (size_t i = 0; i < k; ++i)
        if (r.lane[i] == r.lane[k]) ready = std::max(ready, r.end_ns[i]);
      sum.queue += std::max<int64_t>(0, r.start_ns[k] - ready);
    }
    const Table table = kernels(timeline, {KernelsBy::kLayer, 0, {}});
    ASSERT_EQ(table.row_count(), expected.size());
    for (size_t row = 0; row < table.row_count(); ++row) {
      const Sum& sum = expected[{table.text(row, "layer"), table.text(row, "name")}];
      EXPECT_EQ(*table.number(row, "count"), static_cast<double>(sum.count));
      EXPECT_EQ(*table.number(row, "total_ns"), static_cast<double>(sum.total));
      EXPECT_EQ(*table.number(row, "launched"), static_cast<double>(sum.launched));
      if (sum.launched == 0) continue;
      const auto mean = [&](int64_t total) { return static_cast<double>(total) / static_cast<double>(sum.launched); };
      EXPECT_NEAR(*table.number(row, "launch_latency_ns"), mean(sum.latency), 1e-9);
      EXPECT_NEAR(*table.number(row, "call_ns"), mean(sum.call), 1e-9);
      EXPECT_NEAR(*table.number(row, "queue_delay_ns"), mean(sum.queue), 1e-9);
      EXPECT_NEAR(
          *table.number(row, "launch_latency_ns"),
          *table.number(row, "call_ns") + *table.number(row, "stream_wait_ns") + *table.number(row, "queue_delay_ns"),
          1e-9);
    }
  }
}

// 3,442 kernels, of which 1,810 were launched before the window.
TEST(Kernels, OfARealNsightExport) {
  const auto file = test::shared_data("traces/nsys/h100_2gpu_video_inference_1s.sqlite");
  STROBE_REQUIRE_DATA(file);
  const auto timeline = importers::import_trace(file, {});
  ASSERT_TRUE(timeline) << timeline.error().to_string();
  const Table table = kernels(*timeline, {});
  double count = 0, launched = 0;
  for (size_t row = 0; row < table.row_count(); ++row) {
    count += *table.number(row, "count");
    launched += *table.number(row, "launched");
  }
  EXPECT_EQ(count, 3442);
  EXPECT_EQ(launched, 1632);
  EXPECT_DOUBLE_EQ(*table.coverage, 1632.0 / 3442);
  EXPECT_THAT(table.notes, Contains(HasSubstr("1810 kernels have no launch call")));
}

// A log of a Jetson Nano that holds sums only.
TEST(Kernels, OfARealNvprofLog) {
  const auto file = test::shared_data("traces/nvprof/profiling_torch_log_full.txt");
  STROBE_REQUIRE_DATA(file);
  const auto timeline = importers::import_trace(file, {});
  ASSERT_TRUE(timeline) << timeline.error().to_string();
  const Table table = kernels(*timeline, {});
  EXPECT_EQ(table.text(0, "name"), "maxwell_scudnn_winograd_128x128_ldg1_ldg4_mobile_relu_tile148t_nt_v0");
  EXPECT_THAT(table.notes, Contains(HasSubstr("made from a log")));
}

}  // namespace
}  // namespace strobe::analyze
