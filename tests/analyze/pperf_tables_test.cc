#include "analyze/pperf_tables.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "analyze/spread.h"
#include "analyze/tenant_tables.h"
#include "support/test_data.h"
#include "tenant_maker.h"

namespace strobe::analyze {
namespace {

ModelWork work(const std::string& model, int64_t frame, const std::string& name, int64_t start_us, int64_t end_us,
               WorkKind kind = WorkKind::kKernel) {
  ModelWork one;
  one.model = model;
  one.model_type = "image";
  one.input = model + std::to_string(frame);
  one.name = name;
  one.kind = kind;
  one.frame = frame;
  one.start_ns = start_us * 1000;
  one.end_ns = end_us * 1000;
  return one;
}

// A frame of a from 10 ms to 20 ms, its copy at 10 ms; b around it.
TEST(PperfTables, KernelsOfTheOtherDuringAFrameByHand) {
  const std::vector<ModelWork> all = {
      work("b", 1, "device2host", 5'001, 5'002, WorkKind::kDeviceToHost),  // 4.999 ms before the copy: near
      work("b", 1, "early", 8'000, 10'000),                                // ends where the window begins: outside
      work("b", 1, "long", 9'000, 12'000),                                 // reaches into it
      work("a", 7, "host2device", 10'000, 10'500, WorkKind::kHostToDevice),
      work("b", 1, "inside", 13'000, 14'000),
      work("b", 1, "inside", 14'000, 15'500),
      work("a", 7, "conv", 15'000, 20'000),
      work("b", 1, "host2device", 15'001, 15'002, WorkKind::kHostToDevice),  // 5.001 ms after it: not near, but inside
      work("b", 2, "late", 20'000, 21'000),                                  // begins where the window ends: outside
  };
  const Table table = e2e_kernels(all, "a", "b");
  ASSERT_EQ(table.row_count(), 1U);
  EXPECT_EQ(table.text(0, "model"), "b");
  EXPECT_EQ(*table.number(0, "kernels_in_range"), 4);
  // Milliseconds from nanoseconds: the original took ms * 1e9 for ns.
  EXPECT_NEAR(*table.number(0, "sum_e2e_time_in_range"), 3 + 1 + 1.5 + 0.001, 1e-12);
  EXPECT_EQ(*table.number(0, "memcpy_kernels_in_range"), 1);
  EXPECT_EQ(*table.number(0, "unique_kernel_types"), 3);
  EXPECT_EQ(table.text(0, "kernel_types"), "host2device;inside;long");
  EXPECT_EQ(table.text(0, "input_token"), "a7");
  EXPECT_NEAR(*table.number(0, "primary_e2e_time"), 10, 1e-12);
  EXPECT_EQ(*table.number(0, "primary_start_timestamp"), 10'000'000);
  EXPECT_EQ(*table.number(0, "primary_end_timestamp"), 20'000'000);
  std::vector<std::string> names;
  for (const Column& column : table.columns()) names.push_back(column.name);
  EXPECT_EQ(names,
            (std::vector<std::string>{"model", "kernels_in_range", "sum_e2e_time_in_range", "memcpy_kernels_in_range",
                                      "unique_kernel_types", "kernel_types", "error", "input_token", "primary_e2e_time",
                                      "primary_start_timestamp", "primary_end_timestamp"}));
}

TEST(PperfTables, IntervalsOfCopiesAreMillisecondsOfTheMiddleHalf) {
  std::vector<ModelWork> all;
  // Starts at 0, 1, 3, 6, 10, 110 ms: gaps 1, 2, 3, 4, 100. Quartiles 2 and 4; the mean of 2, 3, 4 is 3.
  for (const int64_t at : {0, 1, 3, 6, 10, 110})
    all.push_back(work("m", at, "host2device", at * 1000, at * 1000 + 10, WorkKind::kHostToDevice));
  all.push_back(work("m", 0, "device2host", 200'000, 200'010, WorkKind::kDeviceToHost));
  all.push_back(work("m", 0, "device2host", 204'000, 204'010, WorkKind::kDeviceToHost));
  all.push_back(work("idle", 0, "conv", 0, 10));
  all.push_back(work("m", 0, "memset", 300'000, 300'010, WorkKind::kOtherCopy));
  const Table table = memcpy_intervals(all);
  ASSERT_EQ(table.row_count(), 1U);  // a model without copies has no row
  EXPECT_EQ(*table.number(0, "total_host2device"), 6);
  EXPECT_EQ(*table.number(0, "total_device2host"), 2);
  EXPECT_NEAR(*table.number(0, "mean_interval_host2device"), 3, 1e-12);
  EXPECT_NEAR(*table.number(0, "mean_interval_device2host"), 4, 1e-12);
  EXPECT_EQ(*table.number(0, "total_memcpy_operations"), 8);
  EXPECT_EQ(table.text(0, "model_type"), "image");
}

TEST(PperfTables, ManyKernelsAndFramesTakeNoProduct) {
  // 100,000 frames times 100,000 kernels would be 10^10 comparisons.
  std::vector<ModelWork> all;
  constexpr int64_t kFrames = 100'000;
  for (int64_t i = 0; i < kFrames; ++i) {
    all.push_back(work("a", i, "conv", 10 * i, 10 * i + 6));
    all.push_back(work("b", i, "gemm", 10 * i + 5, 10 * i + 9));
  }
  const Table table = e2e_kernels(all, "a", "b");
  ASSERT_EQ(table.row_count(), static_cast<size_t>(kFrames));
  for (size_t row = 0; row < table.row_count(); row += 997) EXPECT_EQ(*table.number(row, "kernels_in_range"), 1);
}

TEST(PperfTables, OnACpuTheTenantsOperationsHeldTheDevice) {
  test::TenantMaker maker("a,b");
  maker.timeline.facts["tenant.a.model"] = "net";
  maker.timeline.facts["tenant.b.model"] = "net";  // of two tenants: their own names tell them apart
  maker.timeline.facts["tenants.resource.device"] = "exclusive=1";
  const int32_t lane = maker.lane(1);
  maker.argument(maker.frame("a", lane, 3, 10, 90), "token", std::string("sweep-3"));
  maker.stage("a", lane, 3, "decode", 10, 40);
  maker.stage("a", lane, 3, "infer", 50, 90);
  maker.operation("conv", lane, "device", "compute", 55, 60, 80);
  maker.frame("b", lane, 0, 100, 120);
  const auto all = model_work(maker.finish());
  ASSERT_EQ(all.size(), 1U);  // decoding is the thread's own, and held no device
  EXPECT_EQ(all[0].model, "a");
  EXPECT_EQ(all[0].input, "sweep-3");
  EXPECT_EQ(all[0].layer, "infer");
  const Table table = kernel_timings(all);
  EXPECT_EQ(table.text(0, "Kernel Name"), "conv");
  EXPECT_NEAR(*table.number(0, "Elapsed Time"), 0.02, 1e-12);
}

// Rows of a CSV file; cells in quotes may hold commas.
std::vector<std::map<std::string, std::string>> read_csv(const std::filesystem::path& path) {
  std::ifstream file(path);
  const auto cut = [](const std::string& text) {
    std::vector<std::string> cells(1);
    bool quoted = false;
    for (const char c : text) {
      if (c == '"')
        quoted = !quoted;
      else if (c == ',' && !quoted)
        cells.emplace_back();
      else if (c != '\r')
        cells.back() += c;
    }
    return cells;
  };
  std::string line;
  std::getline(file, line);
  const auto header = cut(line);
  std::vector<std::map<std::string, std::string>> rows;
  while (std::getline(file, line)) {
    const auto cells = cut(line);
    EXPECT_EQ(cells.size(), header.size()) << path << ": " << line;
    auto& row = rows.emplace_back();
    for (size_t i = 0; i < std::min(cells.size(), header.size()); ++i) row[header[i]] = cells[i];
  }
  return rows;
}

// Each published row becomes a range with two kernels that span its turnaround and fill its computation; the table made
// of that timeline must give the row back.
TEST(PperfExcerpts, LayerTimingsComeBack) {
  const auto path = test::shared_data("pperf/layer_timings_excerpt.csv");
  STROBE_REQUIRE_DATA(path);
  const auto rows = read_csv(path);
  ASSERT_GE(rows.size(), 30U);
  size_t with_device = 0;
  for (auto row : rows) {
    const int64_t start = std::stoll(row["Start Timestamp"]), end = std::stoll(row["End Timestamp"]);
    const double turnaround = std::stod(row["GPU Turnaround Time"]);
    const double computation = std::stod(row["GPU Computation Time"]);
    test::TenantMaker maker("t");
    maker.timeline.facts["tenant.t.model"] = row["Model"];
    const int32_t cpu = maker.lane(1);
    const int32_t stream = maker.lane(2, "stream", 100, trace::Lane::Kind::kStream, 0, 0);
    const int32_t frame = maker.range("frame", cpu, start, end, 1, true);
    maker.timeline.ranges.categorize_last(maker.timeline.strings.intern("t"),
                                          maker.timeline.strings.intern("strobe.tenant"));
    maker.argument(frame, "outcome", std::string("finished"));
    maker.argument(frame, "token", row["Input"]);
    maker.range(row["Layer"], cpu, start, end, 1);
    maker.timeline.ranges.categorize_last(maker.timeline.strings.intern("t"),
                                          maker.timeline.strings.intern("strobe.tenant"));
    if (turnaround > 0) {
      ++with_device;
      const int64_t call = start + 1, half = std::llround(computation * 1e6) / 2;
      const int64_t rest = std::llround(computation * 1e6) - half, last = call + std::llround(turnaround * 1e6);
      maker.api_call("cudaLaunchKernel", cpu, call, call + 1, 11);
      maker.device_op(trace::RangeKind::kKernel, "first", stream, call, call + half, 11);
      maker.device_op(trace::RangeKind::kKernel, "second", stream, last - rest, last, 11);
      maker.device_op(trace::RangeKind::kCopy, "copy", stream, last, last + 1, 11).bytes =
          std::stoll(row["Internal Memcpy Size"]);
      maker.timeline.device_ops.back().copy_kind = 8;
      maker.device_op(trace::RangeKind::kCopy, "copy", stream, last + 1, last + 2, 11).bytes =
          std::stoll(row["External Memcpy Size"]);
      maker.timeline.device_ops.back().copy_kind = 1;
    }
    const trace::Timeline timeline = maker.finish();
    auto trace = tenant_trace(timeline);
    ASSERT_TRUE(trace) << trace.error().to_string();
    const Table table = tenant_layer_timings(*trace, timeline);
    ASSERT_EQ(table.row_count(), 1U);
    EXPECT_EQ(table.text(0, "Input"), row["Input"]);
    EXPECT_EQ(table.text(0, "Model"), row["Model"]);
    EXPECT_EQ(table.text(0, "Layer"), row["Layer"]);
    for (const char* column : {"Start Timestamp", "End Timestamp", "Elapsed Time", "GPU Turnaround Time",
                               "GPU Computation Time", "GPU Wait Time", "Internal Memcpy Size", "External Memcpy Size"})
      EXPECT_NEAR(*table.number(0, column), std::stod(row[column]), 1e-9) << row["Layer"] << " " << column;
  }
  EXPECT_GT(with_device, 10U);
}

TEST(PperfExcerpts, MpsSummariesHoldToTheirRounding) {
  const auto path = test::shared_data("pperf/mps_summary_excerpt.csv");
  STROBE_REQUIRE_DATA(path);
  const auto rows = read_csv(path);
  ASSERT_GE(rows.size(), 12U);
  for (auto row : rows) {
    const auto number = [&](const char* key) { return std::stod(row.at(key)); };
    EXPECT_NEAR(number("p99_ms") - number("p0_ms"), number("inference_time_range_p0_p99_ms"), 0.0015);
    EXPECT_EQ(number("p0_ms"), number("min_ms"));
    EXPECT_LE(number("p25_ms"), number("median_ms"));
    EXPECT_LE(number("p99_ms"), number("max_ms"));
  }
}

TEST(PperfExcerpts, TheTailIsAccountedForExactly) {
  const auto path = test::shared_data("pperf/tail_accounting.csv");
  STROBE_REQUIRE_DATA(path);
  const auto rows = read_csv(path);
  ASSERT_EQ(rows.size(), 8U);
  for (auto row : rows)
    EXPECT_NEAR(std::stod(row["gpu_gap_ms"]) + std::stod(row["nonkernel_gap_ms"]), std::stod(row["P99_minus_P50_ms"]),
                1e-9);
}

TEST(PperfExcerpts, CompetitorsHoldOneCpuAtATime) {
  const auto path = test::shared_data("pperf/competitors_excerpt.csv");
  STROBE_REQUIRE_DATA(path);
  const auto rows = read_csv(path);
  ASSERT_EQ(rows.size(), 17U);
  const std::set<std::string> models = {"vit-upernet", "centerpoint"};  // of the two processes of that run
  std::map<std::string, std::set<std::pair<int64_t, int64_t>>> by_cpu;
  for (auto row : rows) {
    const int64_t start = std::stoll(row["start_ns"]), end = std::stoll(row["end_ns"]);
    EXPECT_LT(start, end);
    by_cpu[row["model"] + row["input_id"] + ":" + row["cpu"]].emplace(start, end);
    const std::string& category = row["category"];
    EXPECT_TRUE(category == "idle" || category == "recording" || category == "external" || models.contains(category))
        << category;
  }
  for (const auto& [cpu, intervals] : by_cpu) {
    int64_t before = INT64_MIN;
    for (const auto& [start, end] : intervals) {
      EXPECT_GE(start, before) << cpu;
      before = end;
    }
  }
}

TEST(PperfExcerpts, TheReportsTableIsItsMetricsRounded) {
  const auto metrics = test::shared_data("pperf/preprocessing_execution_metrics_excerpt.csv");
  const auto table = test::shared_data("pperf/preprocessing_report_table.csv");
  STROBE_REQUIRE_DATA(metrics);
  STROBE_REQUIRE_DATA(table);
  const auto shown = read_csv(table);
  int compared = 0;
  for (auto row : read_csv(metrics))
    for (auto line : shown) {
      if (line["model"] != row["model"] || line["condition"] != row["condition"]) continue;
      const std::pair<const char*, const char*> kPairs[] = {
          {"retained", "count"},
          {"p50_ms", "preprocessing_p50_ms"},
          {"p99_minus_p50_ms", "preprocessing_p99_minus_p50_ms"},
          {"p99_minus_p1_ms", "preprocessing_p99_minus_p1_ms"},
          {"pool_runnable_wait_p99_thread_ms", "pool_runnable_wait_ms_p99"},
          {"rho_pre_frame", "spearman_preprocessing_frame_ms"},
          {"rho_pre_frame_minus_pre", "spearman_preprocessing_frame_without_preprocessing_ms"},
          {"rho_pre_pool_wait", "spearman_preprocessing_pool_runnable_wait_ms"}};
      for (const auto& [rounded, exact] : kPairs)
        EXPECT_NEAR(std::stod(line[rounded]), std::stod(row[exact]), 0.00051) << rounded;
      ++compared;
    }
  EXPECT_EQ(compared, 2);
}

// delay = receive - stamp, s, by sensor: the communication part of a frame here. Put into a trace as such it comes back
// in delays_<i>.csv.
TEST(PperfExcerpts, LegacyDelaysAreCommunication) {
  const auto path = test::shared_data("pperf/delays_legacy_excerpt.csv");
  STROBE_REQUIRE_DATA(path);
  const auto rows = read_csv(path);
  ASSERT_EQ(rows.size(), 40U);
  test::TenantMaker maker("lidar,image");
  for (const char* type : {"lidar", "image"})
    maker.timeline.facts[std::string("tenant.") + type + ".model_type"] = type;
  const int32_t lane = maker.lane(1);
  int64_t id = 0;
  for (auto row : rows) {
    const int64_t at_us = 1'000'000 * (id + 1);
    const int32_t frame = maker.frame(row["sensor_type"], lane, id++, at_us, at_us + 5000);
    maker.argument(frame, "token", row["frame"]);
    maker.argument(frame, "comm_ns", static_cast<int64_t>(std::llround(std::stod(row["delay"]) * 1e9)));
  }
  const trace::Timeline timeline = maker.finish();
  auto trace = tenant_trace(timeline);
  ASSERT_TRUE(trace) << trace.error().to_string();
  const Table table = tenant_delays(*trace, timeline);
  ASSERT_EQ(table.row_count(), rows.size());
  for (size_t i = 0; i < rows.size(); ++i) {
    auto row = rows[i];
    EXPECT_EQ(table.text(i, "input_token"), row["frame"]);
    EXPECT_EQ(table.text(i, "model_type"), row["sensor_type"]);
    EXPECT_NEAR(*table.number(i, "comm_delay"), std::stod(row["delay"]), 1e-9);
    // e2e is the sum of all parts: the original swaps it with the inference, and leaves the queue out.
    EXPECT_NEAR(*table.number(i, "e2e_delay"), std::stod(row["delay"]) + 0.005, 1e-9);
    EXPECT_NEAR(*table.number(i, "queue_delay"), 0.005, 1e-9);
    EXPECT_EQ(*table.number(i, "inference_delay"), 0);
  }
}

}  // namespace
}  // namespace strobe::analyze
