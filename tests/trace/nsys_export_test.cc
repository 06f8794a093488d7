#include "trace/nsys_export.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <set>

#include "support/test_data.h"
#include "trace/sql.h"
#include "trace/timeline_maker.h"

namespace strobe::trace {
namespace {

namespace fs = std::filesystem;
using test::ScratchFolder;
using test::Sql;
using test::TimelineMaker;
using testing::ElementsAre;

// A frame on a thread: two layers, each with kernels that run later on a stream; a copy before, a memset after.
Timeline two_layers() {
  TimelineMaker maker;
  maker.timeline.processes.push_back({4711, maker.timeline.strings.intern("app")});
  const int32_t thread = maker.lane(4712, "worker", 4711);
  const int32_t stream = maker.lane(7, "stream 7", 4711, Lane::Kind::kStream, 0, 1);
  // The same numbers in another process, whose launch must not be taken for ours.
  const int32_t other = maker.lane(99, "other", 99);
  maker.range("frame", thread, 0, 1000);
  maker.range("conv1", thread, 100, 300);
  maker.range("conv2", thread, 300, 600);
  maker.api_call("cudaMemcpyAsync", thread, 10, 60, 1);
  maker.api_call("cudaLaunchKernel", thread, 110, 120, 2);
  maker.api_call("cudaLaunchKernel", thread, 150, 160, 3);
  maker.api_call("cudaLaunchKernel", thread, 310, 320, 4);
  maker.api_call("cudaMemsetAsync", thread, 700, 710, 5);
  maker.api_call("cudaLaunchKernel", other, 111, 112, 2);
  DeviceOp& copy = maker.device_op(RangeKind::kCopy, "[CUDA memcpy Host-to-Device]", stream, 70, 170, 1);
  copy.bytes = 1'000'000;
  copy.copy_kind = 1;
  copy.source_kind = 0;
  maker.device_op(RangeKind::kKernel, "im2col", stream, 200, 250, 2);
  maker.device_op(RangeKind::kKernel, "gemm", stream, 260, 400, 3);
  maker.device_op(RangeKind::kKernel, "gemm", stream, 410, 710, 4);
  maker.device_op(RangeKind::kSet, "[CUDA memset]", stream, 720, 730, 5).bytes = 64;
  maker.timeline.duration_ns = 1000;
  maker.timeline.utc_start_ns = 1'785'620'044'423'518'993;
  return maker.finish();
}

class NsysExport : public testing::Test {
 protected:
  std::vector<std::string> rows(const std::string& sql) {
    if (!fs::exists(path_)) {
      const auto written = write_nsys(two_layers(), path_);
      EXPECT_TRUE(written) << written.error().to_string();
    }
    return Sql(path_, SQLITE_OPEN_READONLY).rows(sql);
  }
  ScratchFolder folder_;
  fs::path path_ = folder_ / "export.sqlite";
};

TEST_F(NsysExport, IsTablesOnlyWithTheColumnsOfRealExports) {
  const auto tables = rows("SELECT name FROM sqlite_master WHERE name NOT LIKE 'sqlite%' ORDER BY name");
  EXPECT_THAT(rows("SELECT name FROM sqlite_master WHERE type <> 'table' OR name LIKE 'STROBE%'"), ElementsAre());
  EXPECT_THAT(rows("PRAGMA integrity_check"), ElementsAre("ok"));
  std::set<std::string> compared;
  for (const char* name :
       {"traces/nsys/h100_2gpu_video_inference_1s.sqlite", "traces/nsys/cuda_graph_smoke_2025_5.sqlite"}) {
    const fs::path real = test::shared_data(name);
    STROBE_REQUIRE_DATA(real);
    Sql theirs("file:" + real.string() + "?immutable=1", SQLITE_OPEN_READONLY | SQLITE_OPEN_URI);
    for (const std::string& table : tables) {
      const std::string columns = "SELECT name, type, \"notnull\", pk FROM pragma_table_info('" + table + "')";
      const auto expected = theirs.rows(columns);
      // Schema 3.25, the first of the two, added columns.
      if (expected.empty() || !compared.insert(table).second) continue;
      EXPECT_EQ(rows(columns), expected) << table;
    }
  }
  EXPECT_THAT(tables, testing::ElementsAreArray(compared));
}

// cuda_gpu_kern_sum: time share, total, instances, average, minimum, maximum, largest first.
TEST_F(NsysExport, TheKernelSummaryGivesTheFiguresOfTheTimeline) {
  EXPECT_THAT(rows("WITH total AS (SELECT SUM(end - start) AS t FROM CUPTI_ACTIVITY_KIND_KERNEL) "
                   "SELECT round(100.0 * SUM(k.end - k.start) / (SELECT t FROM total), 1), SUM(k.end - k.start), "
                   "COUNT(*), AVG(k.end - k.start), MIN(k.end - k.start), MAX(k.end - k.start), s.value "
                   "FROM CUPTI_ACTIVITY_KIND_KERNEL k JOIN StringIds s ON s.id = k.demangledName "
                   "GROUP BY s.value ORDER BY 2 DESC"),
              ElementsAre("89.8|440|2|220.0|140|300|gemm", "10.2|50|1|50.0|50|50|im2col"));
}

// cuda_gpu_mem_size_sum and cuda_gpu_mem_time_sum.
TEST_F(NsysExport, TheMemorySummaries) {
  EXPECT_THAT(rows("SELECT '[CUDA memcpy ' || o.label || ']', SUM(bytes), SUM(end - start) FROM "
                   "CUPTI_ACTIVITY_KIND_MEMCPY m INNER JOIN ENUM_CUDA_MEMCPY_OPER o ON o.id = m.copyKind GROUP BY 1 "
                   "UNION ALL SELECT '[CUDA memset]', SUM(bytes), SUM(end - start) FROM CUPTI_ACTIVITY_KIND_MEMSET"),
              ElementsAre("[CUDA memcpy Host-to-Device]|1000000|100", "[CUDA memset]|64|10"));
}

// NVIDIA's example "correlate CUDA kernel launches with CUDA API kernel launches", which adds columns and fills them.
TEST_F(NsysExport, TheExampleThatAddsTheLaunchToEachKernel) {
  rows("SELECT 1");
  EXPECT_THAT(Sql(path_).rows("ALTER TABLE CUPTI_ACTIVITY_KIND_RUNTIME ADD COLUMN name TEXT;"
                              "ALTER TABLE CUPTI_ACTIVITY_KIND_RUNTIME ADD COLUMN kernelName TEXT;"
                              "UPDATE CUPTI_ACTIVITY_KIND_RUNTIME SET kernelName = (SELECT value FROM StringIds "
                              "JOIN CUPTI_ACTIVITY_KIND_KERNEL AS cuda_gpu ON cuda_gpu.shortName = StringIds.id "
                              "AND CUPTI_ACTIVITY_KIND_RUNTIME.correlationId = cuda_gpu.correlationId "
                              "AND CUPTI_ACTIVITY_KIND_RUNTIME.globalTid >> 24 = cuda_gpu.globalPid >> 24);"
                              "UPDATE CUPTI_ACTIVITY_KIND_RUNTIME SET name = (SELECT value FROM StringIds WHERE nameId "
                              "= StringIds.id);"
                              "SELECT start, name, kernelName FROM CUPTI_ACTIVITY_KIND_RUNTIME WHERE kernelName IS NOT "
                              "NULL ORDER BY start"),
              ElementsAre("110|cudaLaunchKernel|im2col", "150|cudaLaunchKernel|gemm", "310|cudaLaunchKernel|gemm"));
}

// nvtx_gpu_proj: the range of the launching thread around the call, and where its kernels ran.
TEST_F(NsysExport, TheProjectionOfRangesOntoTheDevice) {
  EXPECT_THAT(
      rows("SELECT s.value, COUNT(*), MIN(k.start), MAX(k.end) FROM CUPTI_ACTIVITY_KIND_KERNEL k "
           "JOIN CUPTI_ACTIVITY_KIND_RUNTIME r ON r.correlationId = k.correlationId "
           "AND r.globalTid >> 24 = k.globalPid >> 24 "
           "JOIN NVTX_EVENTS e ON e.eventType = 59 AND e.globalTid = r.globalTid AND r.start BETWEEN e.start AND "
           "e.end JOIN StringIds s ON s.id = e.textId GROUP BY 1 ORDER BY 3, 1"),
      ElementsAre("conv1|2|200|400", "frame|3|200|710", "conv2|1|410|710"));
}

TEST_F(NsysExport, ThreadsProcessesAndTheSession) {
  EXPECT_THAT(rows("SELECT (r.globalTid >> 24) & 0x00FFFFFF AS pid, r.globalTid & 0x00FFFFFF AS tid, n.value, p.name, "
                   "COUNT(*) FROM CUPTI_ACTIVITY_KIND_RUNTIME r JOIN ThreadNames t ON t.globalTid = r.globalTid "
                   "JOIN StringIds n ON n.id = t.nameId JOIN PROCESSES p ON p.globalPid >> 24 = r.globalTid >> 24 "
                   "GROUP BY 1, 2"),
              ElementsAre("4711|4712|worker|app|5"));
  EXPECT_THAT(rows("SELECT utcTime FROM TARGET_INFO_SESSION_START_TIME"), ElementsAre("2026-08-01T21:34:04"));
  EXPECT_THAT(rows("SELECT name, value FROM META_DATA_EXPORT WHERE name LIKE 'EXPORT_SCHEMA_VERSION%' OR name = "
                   "'EXPORT_PARAM_LAZY' ORDER BY 1"),
              ElementsAre("EXPORT_PARAM_LAZY|false", "EXPORT_SCHEMA_VERSION|3.25.0", "EXPORT_SCHEMA_VERSION_MAJOR|3",
                          "EXPORT_SCHEMA_VERSION_MICRO|0", "EXPORT_SCHEMA_VERSION_MINOR|25"));
}

TEST_F(NsysExport, SaysWhyItCannotWriteAndLeavesNothing) {
  const auto nowhere = write_nsys(two_layers(), folder_ / "absent/t.sqlite");
  ASSERT_FALSE(nowhere);
  EXPECT_EQ(nowhere.error().to_string(), (folder_ / "absent/t.sqlite").string() + ": No such file or directory");
  fs::create_directory(folder_ / "taken");
  EXPECT_FALSE(write_nsys(two_layers(), folder_ / "taken"));
  ASSERT_TRUE(write_nsys(two_layers(), path_));
  std::vector<std::string> left;
  for (const auto& entry : fs::directory_iterator(folder_.path())) left.push_back(entry.path().filename());
  EXPECT_THAT(left, testing::UnorderedElementsAre("taken", "export.sqlite"));
}

}  // namespace
}  // namespace strobe::trace
