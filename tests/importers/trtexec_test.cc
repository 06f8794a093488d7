#include "importers/trtexec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "importers/importer.h"
#include "support/test_data.h"

namespace strobe::importers {
namespace {

using trace::RangeKind;
using trace::Timeline;

Timeline read(std::string_view text) {
  EXPECT_TRUE(looks_like_trtexec(text));
  const auto stream = ByteStream::of_text(text);
  auto timeline = import_trtexec(*stream, {});
  EXPECT_TRUE(timeline) << (timeline ? "" : timeline.error().to_string());
  return timeline ? std::move(*timeline) : Timeline{};
}

constexpr std::string_view kTimes =
    "[\n  { \"startEnqMs\" : 1.5, \"endEnqMs\" : 1.75, \"startH2dMs\" : 1.6, \"endH2dMs\" : 1.7, \"startComputeMs\" : "
    "1.7, "
    "\"endComputeMs\" : 4.2, \"startD2hMs\" : 4.2, \"endD2hMs\" : 4.3, \"h2dMs\" : 0.0996, \"computeMs\" : 2.49856, "
    "\"d2hMs\" : 0.1, \"latencyMs\" : 2.69816 }\n"
    ", { \"startEnqMs\" : 4, \"endEnqMs\" : 5, \"startH2dMs\" : 5, \"endH2dMs\" : 6, \"startComputeMs\" : 6, "
    "\"endComputeMs\" : 7, \"startD2hMs\" : 7, \"endD2hMs\" : 8 }\n]\n";

TEST(Trtexec, TimesAreRangesByFrame) {
  const Timeline timeline = read(kTimes);
  EXPECT_THAT(timeline.losses.faults, testing::IsEmpty());
  ASSERT_EQ(timeline.ranges.size(), 10U);
  EXPECT_EQ(timeline.duration_ns, 6500000);
  std::map<std::string, std::pair<int64_t, int64_t>> first;
  for (size_t i = 0; i < timeline.ranges.size(); ++i) {
    const std::string name(timeline.strings[timeline.ranges.name[i]]);
    if (timeline.ranges.frame[i] == 0)
      first[name] = {timeline.ranges.start_ns[i], timeline.ranges.end_ns[i] - timeline.ranges.start_ns[i]};
    if (name == "compute") {
      EXPECT_EQ(timeline.ranges.kind[i], RangeKind::kGraph);
    }
  }
  using Pair = std::pair<int64_t, int64_t>;
  EXPECT_EQ(first["enqueue"], Pair(0, 250000));
  EXPECT_EQ(first["H2D"], Pair(100000, 99600));
  EXPECT_EQ(first["compute"], Pair(200000, 2498560)) << "durations have more digits than ends";
  EXPECT_EQ(first["D2H"], Pair(2700000, 100000));
  EXPECT_EQ(first["inference"], Pair(100000, 2700000));
  ASSERT_EQ(timeline.device_ops.size(), 6U);
  EXPECT_EQ(timeline.device_ops[0].copy_kind, 1);
  EXPECT_EQ(timeline.device_ops[2].copy_kind, 2);
}

TEST(Trtexec, OlderNamesOfTheCopies) {
  const Timeline timeline = read(
      R"([{"startInMs":1,"endInMs":2,"startComputeMs":2,"endComputeMs":3,"startOutMs":3,"endOutMs":4,"inMs":1,"computeMs":1,
      "outMs":1,"latencyMs":3,"endToEndMs":3}])");
  EXPECT_EQ(timeline.ranges.size(), 4U);
}

TEST(Trtexec, ProfileIsKernelsAndATable) {
  const Timeline timeline = read(
      "[\n  { \"count\" : 167 }\n, { \"name\" : \"conv1 + relu\", \"timeMs\" : 17.1, \"averageMs\" : 0.102395, "
      "\"medianMs\" : 0.102, \"percentage\" : 12.5 }\n, { \"name\" : \"b\", \"timeMs\" : 1, \"averageMs\" : 0.5, "
      "\"percentage\" : 87.5 }\n]\n");
  EXPECT_EQ(timeline.facts.at("trtexec.profiled_runs"), "167");
  ASSERT_EQ(timeline.kernels.size(), 2U);
  EXPECT_EQ(timeline.strings[timeline.kernels[0].name], "conv1 + relu");
  EXPECT_THAT(timeline.kernels[0].duration_ns, testing::ElementsAre(102395));
  ASSERT_EQ(timeline.tables.size(), 1U);
  EXPECT_EQ(*timeline.tables[0].number(0, "total_ns"), 17100000);
  EXPECT_EQ(*timeline.tables[0].number(0, "median_ns"), 102000);
  EXPECT_FALSE(timeline.tables[0].number(1, "median_ns").has_value());
  EXPECT_DOUBLE_EQ(*timeline.tables[0].number(1, "share"), 0.875);
}

TEST(Trtexec, LayersWithAndWithoutDetail) {
  const Timeline timeline = read(
      R"({"Layers": ["plain", {"Name": "conv", "LayerType": "CaskConvolution", "Inputs": [], "Outputs": [{"Name": "o",
      "Dimensions": [1,64,80,80], "Format/Datatype": "x"}], "TacticName": "sm80_xmma"}], "Bindings": ["images"]})");
  ASSERT_EQ(timeline.layers.size(), 2U);
  EXPECT_EQ(timeline.strings[timeline.layers[0].name], "plain");
  EXPECT_EQ(timeline.strings[timeline.layers[1].type], "CaskConvolution");
  EXPECT_EQ(timeline.strings[timeline.layers[1].shape], "1x64x80x80");
  EXPECT_EQ(timeline.strings[timeline.kernels[1].implementation], "sm80_xmma");
  EXPECT_THAT(timeline.kernels[1].layers, testing::ElementsAre(1));
}

TEST(Trtexec, ACutFileKeepsWholeInferences) {
  const Timeline timeline = read(kTimes.substr(0, kTimes.size() - 20));
  EXPECT_EQ(timeline.ranges.size(), 5U);
  EXPECT_EQ(timeline.losses.faults.size(), 1U);
}

TEST(Import, FormatsAreToldByContent) {
  test::ScratchFolder scratch;
  const auto format_of = [&scratch](std::string_view text) {
    std::ofstream(scratch / "file", std::ios::binary) << text;
    const auto timeline = import_trace(scratch / "file", {});
    return timeline ? timeline->facts.at("import.format") : timeline.error().to_string();
  };
  EXPECT_EQ(format_of(kTimes), "trtexec");
  EXPECT_EQ(format_of("\xef\xbb\xbf {\"traceEvents\":[]}"), "chrome");
  EXPECT_EQ(format_of("{\"schemaVersion\": 1, \"traceEvents\": []}"), "kineto");
  EXPECT_EQ(format_of("[{\"ph\":\"i\",\"name\":\"a\",\"pid\":1,\"tid\":1,\"ts\":1}]"), "chrome");
  EXPECT_EQ(format_of("[1/3] loading\n==5== NVPROF is profiling process 5, command: x\n"), "nvprof");
  EXPECT_EQ(format_of(""), "file: is empty, expected a trace");
  EXPECT_THAT(format_of("hello"), testing::StartsWith("file: no known trace format; expected PyTorch"));
}

TEST(Import, ErrorsAreOneLine) {
  test::ScratchFolder scratch;
  EXPECT_EQ(import_trace(scratch / "absent", {}).error().kind(), ErrorKind::kNotFound);
  EXPECT_EQ(import_trace(scratch.path(), {}).error().kind(), ErrorKind::kIo);
  ImportOptions options;
  options.format = "perf";
  EXPECT_EQ(import_trace(scratch / "absent", options).error().to_string(),
            "no format 'perf'; known: kineto, chrome, nsys, nvprof, trtexec");
}

}  // namespace
}  // namespace strobe::importers
