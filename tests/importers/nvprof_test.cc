#include "importers/nvprof.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <charconv>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <set>

#include "importers/importer.h"
#include "support/test_data.h"

namespace strobe::importers {
namespace {

using trace::RangeKind;
using trace::Timeline;

Timeline read(std::string_view text, size_t block = ByteStream::kBlockBytes) {
  EXPECT_TRUE(looks_like_nvprof(text));
  const auto stream = ByteStream::of_text(text, block);
  auto timeline = import_nvprof(*stream, {});
  EXPECT_TRUE(timeline) << (timeline ? "" : timeline.error().to_string());
  return timeline ? std::move(*timeline) : Timeline{};
}

const Table& table(const Timeline& timeline, std::string_view title) {
  static const Table kNone;
  for (const Table& one : timeline.tables)
    if (one.title() == title) return one;
  ADD_FAILURE() << "no table " << title;
  return kNone;
}

// Every row as "table|name|column=value|...", numbers with all their digits.
std::multiset<std::string> rows_of(const Timeline& timeline) {
  std::multiset<std::string> rows;
  for (const Table& one : timeline.tables) {
    for (size_t row = 0; row < one.row_count(); ++row) {
      std::string line = one.title().substr(std::string_view("nvprof ").size()) + "|" + one.text(row, "name");
      for (size_t column = 2; column < one.columns().size(); ++column) {
        line += "|" + one.columns()[column].name + "=";
        std::array<char, 32> digits{};
        const Cell& cell = one.rows()[row][column];
        if (const auto* whole = std::get_if<int64_t>(&cell)) line += std::to_string(*whole);
        // Like Python's repr: the shortest text that gives the number back.
        if (const auto* real = std::get_if<double>(&cell)) {
          const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), *real, std::chars_format::fixed);
          line.append(digits.data(), end.ptr);
          if (line.find('.', line.rfind('=')) == std::string::npos) line += ".0";
        }
      }
      rows.insert(line);
    }
  }
  return rows;
}

TEST(NvprofReal, EveryNumberIsWhatPythonReads) {
  const auto path = test::shared_data("traces/nvprof/profiling_torch_log_full.txt");
  STROBE_REQUIRE_DATA(path);
  if (std::system("python3 -c 'import re' >/dev/null 2>&1") != 0) GTEST_SKIP() << "python3 is absent";
  const auto timeline = import_trace(path, {});
  ASSERT_TRUE(timeline) << timeline.error().to_string();
  EXPECT_EQ(timeline->facts.at("import.format"), "nvprof");
  EXPECT_THAT(timeline->losses.faults, testing::IsEmpty());
  std::multiset<std::string> expected;
  const std::string script = std::string(STROBE_IMPORTERS_TESTS) + "/nvprof_truth.py";
  FILE* pipe = ::popen(("python3 '" + script + "' '" + path.string() + "'").c_str(), "r");
  std::array<char, 4096> line{};
  while (std::fgets(line.data(), line.size(), pipe)) {
    std::string text = line.data();
    text.pop_back();
    expected.insert(text);
  }
  ::pclose(pipe);
  EXPECT_EQ(expected.size(), 109U);
  EXPECT_EQ(rows_of(*timeline), expected);
}

TEST(NvprofReal, KnownCells) {
  const auto path = test::shared_data("traces/nvprof/profiling_torch_log_full.txt");
  STROBE_REQUIRE_DATA(path);
  const auto timeline = import_trace(path, {});
  ASSERT_TRUE(timeline);
  const Table& gpu = table(*timeline, "nvprof GPU activities");
  EXPECT_EQ(gpu.row_count(), 23U);
  EXPECT_EQ(gpu.text(0, "name"), "maxwell_scudnn_winograd_128x128_ldg1_ldg4_mobile_relu_tile148t_nt_v0");
  EXPECT_DOUBLE_EQ(*gpu.number(0, "share"), 0.5821);
  EXPECT_EQ(*gpu.number(0, "total_ns"), 13112800000);
  EXPECT_EQ(*gpu.number(0, "calls"), 2016);
  EXPECT_EQ(*gpu.number(0, "avg_ns"), 6504400);
  EXPECT_EQ(*gpu.number(0, "pid"), 261);
  const Table& path_table = table(*timeline, "nvprof dependency analysis");
  EXPECT_EQ(path_table.text(20, "name"), "cudaStreamSynchronize");
  EXPECT_EQ(*path_table.number(20, "path_ns"), 48755587);
  EXPECT_EQ(*path_table.number(20, "waiting_ns"), 12524525000);
  EXPECT_EQ(timeline->facts.at("nvprof.command").substr(0, 28), "python3 pytorch_inference.py");
}

TEST(Nvprof, OlderSummariesOfSeveralProcessesBetweenTheProgramsLines) {
  const Timeline timeline = read(
      "hello\r\n==7== NVPROF is profiling process 7, command: ./a.out 1\r\n"
      "50.00%  no row\n==7== Profiling result:\r\n"
      "Time(%)      Time     Calls       Avg       Min       Max  Name\r\n"
      " 60.00%  1.5000ms         3  500.00us      4ns  1.2000s  void f<int, 2>(int)\r\n"
      "progress 40%\r\n 40.00%  2.0000us\r\n"
      "==7== API calls:\nTime(%)      Time     Calls       Avg       Min       Max  Name\n"
      "100.00%  2.000min         1  2.000min  2.000min  2.000min  cudaFree\n"
      "==8== NVPROF is profiling process 8, command: ./b.out\n==8== Profiling result:\n"
      "Time(%)      Time     Calls       Avg       Min       Max  Name\n"
      "100.00%      5ns         1      5ns      5ns      5ns  g\n",
      16);
  EXPECT_THAT(timeline.losses.faults, testing::ElementsAre(testing::Pair("torn row of a table", 1)));
  EXPECT_EQ(timeline.processes.size(), 2U);
  const Table& gpu = table(timeline, "nvprof GPU activities");
  ASSERT_EQ(gpu.row_count(), 2U);
  EXPECT_EQ(gpu.text(0, "name"), "void f<int, 2>(int)");
  EXPECT_EQ(*gpu.number(0, "max_ns"), 1200000000);
  EXPECT_EQ(*gpu.number(0, "min_ns"), 4);
  EXPECT_EQ(*gpu.number(1, "pid"), 8);
  EXPECT_EQ(*table(timeline, "nvprof API calls").number(0, "total_ns"), 120000000000);
}

TEST(Nvprof, TracesBecomeKernelsCopiesAndCalls) {
  const Timeline timeline = read(
      "==31050== Profiling result:\n"
      "   Start  Duration            Grid Size      Block Size     Regs*    SSMem*    DSMem*      Size  Throughput  "
      "SrcMemType  DstMemType           Device   Context    Stream  Name\n"
      "182.84ms  23.136us                    -               -         -         -         -  256.00KB  10.552GB/s    "
      "Pageable      Device  Tesla P100-PCIE         1         7  [CUDA memcpy HtoD]\n"
      "182.80ms  1.0000us                    -               -         -         -         -         -           -     "
      "      "
      "-           -                -         -         -  cudaLaunch (setup_rng(int*) [118])\n"
      "182.89ms  1.9769ms            (512 2 1)       (128 1 1)        31       48B    1.50KB         -           -     "
      "      "
      "-           -  Tesla P100-PCIE         1         7  setup_rng(curandStateXORWOW*, unsigned long) [118]\n"
      "196.33ms  40.704us                    -               -         -         -         -  703.13KB  11.996GB/s     "
      " "
      "Device           -  Tesla P100-PCIE         1        13  [CUDA memset]\n"
      "\nRegs: Number of registers used per CUDA thread. This number includes registers used internally.\n");
  EXPECT_THAT(timeline.losses.faults, testing::IsEmpty());
  ASSERT_EQ(timeline.ranges.size(), 4U);
  EXPECT_EQ(timeline.ranges.kind[0], RangeKind::kApi);
  EXPECT_EQ(timeline.strings[timeline.ranges.name[0]], "cudaLaunch");
  EXPECT_EQ(timeline.ranges.start_ns[1], 40000);
  EXPECT_EQ(timeline.ranges.end_ns[1] - timeline.ranges.start_ns[1], 23136);
  ASSERT_EQ(timeline.device_ops.size(), 3U);
  const auto& copy = timeline.device_ops[0];
  EXPECT_EQ(copy.bytes, 262144);
  EXPECT_EQ(copy.copy_kind, 1);
  EXPECT_EQ(copy.source_kind, 0);
  EXPECT_EQ(copy.target_kind, 2);
  const auto& kernel = timeline.device_ops[1];
  EXPECT_EQ(timeline.strings[timeline.ranges.name[2]], "setup_rng(curandStateXORWOW*, unsigned long)");
  EXPECT_EQ(kernel.launch, 0);
  EXPECT_THAT(kernel.grid, testing::ElementsAre(512, 2, 1));
  EXPECT_EQ(kernel.registers, 31);
  EXPECT_EQ(kernel.static_shared, 48);
  EXPECT_EQ(kernel.dynamic_shared, 1536);
  EXPECT_EQ(timeline.device_ops[2].bytes, 720005);
  EXPECT_EQ(timeline.ranges.kind[3], RangeKind::kSet);
  const auto& lane = timeline.lanes[static_cast<size_t>(timeline.ranges.lane[3])];
  EXPECT_EQ(lane.tid, 13);
  EXPECT_EQ(lane.pid, 31050);
  EXPECT_EQ(timeline.facts.at("device.0.name"), "Tesla P100-PCIE");
}

TEST(Nvprof, MetricsInBaseUnits) {
  const Timeline timeline = read(
      "==9== Warning: Some kernel(s) will be replayed\n==9== Metric result:\n"
      "Invocations                               Metric Name                        Metric Description         Min     "
      "    "
      "Max         Avg\n"
      "Device \"GeForce GTX 1070 (0)\"\n    Kernel: sum(double*, int)\n"
      "        999                            gld_efficiency             Global Memory Load Efficiency      25.00%     "
      " "
      "30.00%      27.50%\n"
      "        999                        shared_utilization                 Shared Memory Utilization    Idle (0)     "
      "Low "
      "(1)     Low (1)\n"
      "          1                      dram_read_throughput                 Device Memory Read Throughput  1.5GB/s  "
      "2GB/s  "
      "1.75GB/s\n"
      "          1                                       ipc                              Executed IPC    0.500000    "
      "0.600000    <OVERFLOW>\n"
      "==9== Event result:\n"
      "Invocations                                Event Name         Min         Max         Avg       Total\n"
      "Device \"GeForce GTX 1070 (0)\"\n\tKernel: k2\n"
      "         10                            warps_launched          72          74          73         730\n");
  EXPECT_THAT(timeline.losses.faults, testing::IsEmpty());
  const Table& metrics = table(timeline, "nvprof metrics");
  ASSERT_EQ(metrics.row_count(), 4U);
  EXPECT_EQ(metrics.text(0, "device"), "GeForce GTX 1070 (0)");
  EXPECT_EQ(metrics.text(0, "kernel"), "sum(double*, int)");
  EXPECT_EQ(metrics.text(0, "description"), "Global Memory Load Efficiency");
  EXPECT_DOUBLE_EQ(*metrics.number(0, "avg"), 0.275);
  EXPECT_EQ(metrics.text(0, "unit"), "share");
  EXPECT_EQ(*metrics.number(1, "max"), 1);
  EXPECT_EQ(metrics.text(1, "unit"), "level");
  EXPECT_EQ(*metrics.number(2, "min"), 1.5 * (1 << 30));
  EXPECT_EQ(metrics.text(2, "unit"), "B/s");
  EXPECT_EQ(*metrics.number(3, "max"), 0.6);
  EXPECT_FALSE(metrics.number(3, "avg").has_value());
  const Table& events = table(timeline, "nvprof events");
  ASSERT_EQ(events.row_count(), 1U);
  EXPECT_EQ(events.text(0, "kernel"), "k2");
  EXPECT_EQ(*events.number(0, "total"), 730);
  EXPECT_EQ(timeline.facts.at("nvprof.warning.1"), "Some kernel(s) will be replayed");
}

TEST(Nvprof, AvailableMetricsAndUnifiedMemory) {
  const Timeline timeline = read(
      "Available Metrics:\n                            Name   Description\nDevice 0 (Tesla K40c):\n"
      "          sm_efficiency:  The percentage of time at least one warp is active: any\n\n"
      "==5== Unified Memory profiling result:\nDevice \"Tesla P100 (0)\"\n"
      "   Count  Avg Size  Min Size  Max Size  Total Size  Total Time  Name\n"
      "       2  32.000KB  4.0000KB  60.000KB  64.00000KB  11.74400us  Host To Device\n"
      "    2797         -         -         -           -  77.56933ms  GPU Page fault groups\n");
  const Table& available = table(timeline, "nvprof available metrics");
  ASSERT_EQ(available.row_count(), 1U);
  EXPECT_EQ(available.text(0, "metric"), "sm_efficiency");
  EXPECT_EQ(available.text(0, "device"), "0 (Tesla K40c)");
  EXPECT_EQ(available.text(0, "description"), "The percentage of time at least one warp is active: any");
  const Table& memory = table(timeline, "nvprof unified memory");
  ASSERT_EQ(memory.row_count(), 2U);
  EXPECT_EQ(*memory.number(0, "total_bytes"), 65536);
  EXPECT_EQ(*memory.number(0, "total_ns"), 11744);
  EXPECT_FALSE(memory.number(1, "avg_bytes").has_value());
}

TEST(Nvprof, OtherTextIsOneLine) {
  EXPECT_FALSE(looks_like_nvprof("some log\n==x== y\n"));
  const auto stream = ByteStream::of_text("some log\n");
  const auto timeline = import_nvprof(*stream, {});
  ASSERT_FALSE(timeline);
  EXPECT_EQ(timeline.error().kind(), ErrorKind::kBadData);
}

}  // namespace
}  // namespace strobe::importers
