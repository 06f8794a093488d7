#include "trace/store.h"

#include <gmock/gmock.h>
#include <sys/resource.h>

#include <algorithm>
#include <csignal>
#include <set>

#include "base/file.h"
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
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<std::string> files_in(const fs::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) names.push_back(entry.path().filename());
  return names;
}

TEST(Store, GivesBackWhatWasWritten) {
  const ScratchFolder folder;
  for (uint32_t seed = 0; seed < 60; ++seed) {
    const fs::path path = folder / (std::to_string(seed) + ".sqlite");
    const Timeline timeline = test::random_timeline(seed, static_cast<int>(seed * seed % 500));
    const auto written = write_store(timeline, path);
    ASSERT_TRUE(written) << written.error().to_string();
    const auto read = read_store(path);
    ASSERT_TRUE(read) << read.error().to_string();
    EXPECT_EQ(test::difference(timeline, *read), "") << "seed " << seed;
  }
}

// As many ranges as are read by several threads.
TEST(Store, GivesBackALongTimeline) {
  const ScratchFolder folder;
  const Timeline timeline = test::random_timeline(7, 100'001);
  ASSERT_TRUE(write_store(timeline, folder / "t.sqlite"));
  auto read = read_store(folder / "t.sqlite");
  ASSERT_TRUE(read) << read.error().to_string();
  EXPECT_EQ(test::difference(timeline, *read), "");
  for (const char* damage :
       {"UPDATE STROBE_RANGE SET laneId = 77 WHERE id = 90000", "DELETE FROM STROBE_RANGE WHERE id = 100000",
        "INSERT INTO STROBE_RANGE SELECT 100001, kind, laneId, start, end, nameId, frame, open, isAsync FROM "
        "STROBE_RANGE WHERE id = 100000",
        "UPDATE STROBE_RANGE SET id = -1 WHERE id = 0"}) {
    ASSERT_TRUE(write_store(timeline, folder / "t.sqlite"));
    Sql(folder / "t.sqlite").rows(damage);
    read = read_store(folder / "t.sqlite");
    ASSERT_FALSE(read) << damage;
    EXPECT_THAT(read.error().to_string(), HasSubstr("STROBE_RANGE row ")) << damage;
  }
}

TEST(Store, SurvivesSqlitesOwnHousekeeping) {
  const ScratchFolder folder;
  const fs::path path = folder / "t.sqlite";
  const Timeline timeline = test::random_timeline(5, 300);
  ASSERT_TRUE(write_store(timeline, path));
  {
    Sql sql(path);
    EXPECT_THAT(sql.rows("PRAGMA integrity_check"), ElementsAre("ok"));
    sql.rows("CREATE INDEX by_frame ON STROBE_RANGE(frame DESC, id, kind, laneId, start, end, nameId, open, isAsync)");
    sql.rows("CREATE TABLE mine (x)");
    sql.rows("VACUUM");
  }
  const auto read = read_store(path);
  ASSERT_TRUE(read) << read.error().to_string();
  EXPECT_EQ(test::difference(timeline, *read), "");
}

TEST(Store, AnEmptyTimelineIsATraceToo) {
  const ScratchFolder folder;
  ASSERT_TRUE(write_store(Timeline(), folder / "t.sqlite"));
  const auto read = read_store(folder / "t.sqlite");
  ASSERT_TRUE(read) << read.error().to_string();
  EXPECT_EQ(test::difference(Timeline(), *read), "");
}

// Two threads and a stream; a call that copies, one that launches a kernel, one that waits for an event.
Timeline small() {
  TimelineMaker maker;
  maker.timeline.processes.push_back({4711, maker.timeline.strings.intern("strobe")});
  const int32_t main = maker.lane(4711, "main", 4711), worker = maker.lane(4712, "infer", 4711);
  const int32_t stream = maker.lane(7, "stream 7", 4711, Lane::Kind::kStream, 1, 3);
  maker.range("run", main, 0, 1000);
  const int32_t first = maker.range("infer", worker, 100, 300, 0);
  maker.argument(first, "batch", int64_t{2});
  maker.api_call("cudaMemcpyAsync", worker, 110, 120, 40);
  maker.range("infer", worker, 400, 800, 1);
  maker.range("conv", worker, 450, 700, kNoFrame, false, false, RangeKind::kOperator);
  maker.api_call("cuLaunchKernel", worker, 460, 470, 41);
  maker.api_call("cudaStreamWaitEvent", worker, 480, 485, 43);
  maker.range("read", main, 10, 20, kNoFrame, false, false, RangeKind::kOs);
  maker.range("buffer flush", main, 30, 35, kNoFrame, true, false, RangeKind::kOverhead);
  maker.range("request", worker, 500, 900, 1, true);
  DeviceOp& copy = maker.device_op(RangeKind::kCopy, "[CUDA memcpy Host-to-Device]", stream, 130, 200, 40);
  copy.bytes = 602112;
  copy.copy_kind = 1;
  copy.source_kind = 1;
  copy.target_kind = 2;
  DeviceOp& gemm = maker.device_op(RangeKind::kKernel, "gemm", stream, 510, 690, 41);
  std::copy_n(std::data({uint32_t{16}, uint32_t{4}, uint32_t{2}}), 3, gemm.grid);
  std::copy_n(std::data({uint32_t{256}, uint32_t{1}, uint32_t{1}}), 3, gemm.block);
  gemm.registers = 128;
  gemm.static_shared = 4096;
  gemm.dynamic_shared = 49152;
  maker.device_op(RangeKind::kSet, "[CUDA memset]", stream, 700, 710, 42).bytes = 64;
  DeviceOp& wait = maker.device_op(RangeKind::kSync, "wait", stream, 720, 721, 43);
  wait.sync_type = 2;
  wait.sync_stream = 9;
  wait.sync_correlation = 39;
  maker.device_op(RangeKind::kGraph, "CUDA graph 5", stream, 730, 760, 44);
  maker.range("write", main, 950, 1000, 1, false, true);
  maker.mark("drop", main, 120, 5);
  Table table("Dependency Analysis:", {{"critical_path_s", "", 3}, {"name", "", 0}});
  table.add_row({2.5, "cudaFree"});
  table.add_row({Cell(), "(missing)"});
  maker.timeline.tables.push_back(table);
  maker.timeline.facts = {{"gpu.0.name", "NVIDIA GeForce RTX 3060"}, {"gpu.0.sm_count", "28"}, {"gpu.of.4711.1", "0"}};
  maker.timeline.losses.dropped_records = 3;
  maker.timeline.losses.faults["unmatched pop"] = 2;
  maker.timeline.utc_start_ns = 1'785'620'044'423'518'993;
  maker.timeline.duration_ns = 1000;
  return maker.finish();
}

// The SQL that users of Nsight Systems exports write: nvtx_sum and its kin.
TEST(Store, ScriptsForNsightExportsRunOnIt) {
  const ScratchFolder folder;
  ASSERT_TRUE(write_store(small(), folder / "t.sqlite"));
  Sql sql(folder / "t.sqlite", SQLITE_OPEN_READONLY);
  EXPECT_THAT(
      sql.rows("SELECT COALESCE(e.text, s.value) AS name, COUNT(*), SUM(e.\"end\" - e.start), MIN(e.end - e.start), "
               "MAX(e.end - e.start) FROM NVTX_EVENTS e LEFT JOIN StringIds s ON e.textId = s.id "
               "WHERE e.eventType IN (59, 60) AND e.end IS NOT NULL GROUP BY name ORDER BY 3 DESC, name"),
      ElementsAre("run|1|1000|1000|1000", "infer|2|600|200|400", "request|1|400|400|400", "conv|1|250|250|250"));
  // Threads by the packed id, as exports decode it.
  EXPECT_THAT(sql.rows("SELECT DISTINCT (e.globalTid >> 24) & 0xffffff, e.globalTid & 0xffffff, n.value, p.name "
                       "FROM NVTX_EVENTS e JOIN ThreadNames t ON t.globalTid = e.globalTid "
                       "JOIN StringIds n ON n.id = t.nameId "
                       "JOIN PROCESSES p ON p.globalPid = (e.globalTid & ~0xffffff) ORDER BY 2"),
              ElementsAre("4711|4711|main|strobe", "4711|4712|infer|strobe"));
  EXPECT_THAT(sql.rows("SELECT t.label, COUNT(*) FROM NVTX_EVENTS e JOIN ENUM_NSYS_EVENT_TYPE t ON t.id = e.eventType "
                       "GROUP BY 1 ORDER BY 1"),
              ElementsAre("NvtxMark|1", "NvtxPushPopRange|5", "NvtxStartEndRange|1"));
  EXPECT_THAT(sql.rows("SELECT utcEpochNs, utcTime FROM TARGET_INFO_SESSION_START_TIME"),
              ElementsAre("1785620044423518993|2026-08-01T21:34:04"));  // as the real export of that moment says
  EXPECT_THAT(sql.rows("SELECT duration, stopTime - startTime FROM ANALYSIS_DETAILS"), ElementsAre("1000|1000"));
  EXPECT_THAT(sql.rows("SELECT value FROM META_DATA_EXPORT WHERE name = 'EXPORT_SCHEMA_VERSION'"),
              ElementsAre("3.25.0"));
  EXPECT_THAT(sql.rows("SELECT severity, text FROM DIAGNOSTIC_EVENT"),
              ElementsAre("2|Recording lost or could not read: 3 x dropped records",
                          "2|Recording lost or could not read: 2 x unmatched pop"));
}

TEST(Store, ScriptsForNsightExportsFindTheDevicesWork) {
  const ScratchFolder folder;
  ASSERT_TRUE(write_store(small(), folder / "t.sqlite"));
  Sql sql(folder / "t.sqlite", SQLITE_OPEN_READONLY);
  EXPECT_THAT(sql.rows("SELECT n.value, k.end - k.start, a.value, k.deviceId, k.contextId, k.streamId, gridX * gridY * "
                       "gridZ, blockX, registersPerThread, staticSharedMemory, dynamicSharedMemory, r.eventClass FROM "
                       "CUPTI_ACTIVITY_KIND_KERNEL k JOIN StringIds n ON n.id = k.shortName "
                       "JOIN CUPTI_ACTIVITY_KIND_RUNTIME r ON r.correlationId = k.correlationId AND "
                       "r.globalTid >> 24 = k.globalPid >> 24 JOIN StringIds a ON a.id = r.nameId"),
              ElementsAre("gemm|180|cuLaunchKernel|1|3|7|128|256|128|4096|49152|1"));
  EXPECT_THAT(sql.rows("SELECT o.label, bytes, s.label, d.label, eventClass FROM CUPTI_ACTIVITY_KIND_MEMCPY m "
                       "JOIN ENUM_CUDA_MEMCPY_OPER o ON o.id = copyKind JOIN ENUM_CUDA_MEM_KIND s ON s.id = srcKind "
                       "JOIN ENUM_CUDA_MEM_KIND d ON d.id = dstKind "
                       "JOIN CUPTI_ACTIVITY_KIND_RUNTIME r USING (correlationId)"),
              ElementsAre("Host-to-Device|602112|Pinned|Device|0"));
  EXPECT_THAT(sql.rows("SELECT end - start, bytes FROM CUPTI_ACTIVITY_KIND_MEMSET"), ElementsAre("10|64"));
  // What a wait waited for.
  EXPECT_THAT(sql.rows("SELECT t.label, w.streamId, e.streamId, e.correlationId FROM "
                       "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION w JOIN ENUM_CUPTI_SYNC_TYPE t ON t.id = w.syncType "
                       "JOIN CUPTI_ACTIVITY_KIND_CUDA_EVENT e ON e.eventSyncId = w.eventSyncId"),
              ElementsAre("Stream wait sync|7|9|39"));
  EXPECT_THAT(sql.rows("SELECT start, end, graphId, correlationId FROM CUPTI_ACTIVITY_KIND_GRAPH_TRACE"),
              ElementsAre("730|760|5|44"));
  EXPECT_THAT(sql.rows("SELECT s.value, end - start FROM OSRT_API JOIN StringIds s ON s.id = nameId"),
              ElementsAre("read|10"));
  EXPECT_THAT(sql.rows("SELECT s.value, end - start FROM PROFILER_OVERHEAD JOIN StringIds s ON s.id = nameId"),
              ElementsAre("buffer flush|5"));
  EXPECT_THAT(sql.rows("SELECT streamId, processId, contextId FROM TARGET_INFO_CUDA_STREAM"), ElementsAre("7|4711|3"));
  EXPECT_THAT(sql.rows("SELECT g.name, g.smCount, g.l2CacheSize, d.cudaId, d.pid FROM TARGET_INFO_CUDA_DEVICE d "
                       "JOIN TARGET_INFO_GPU g ON g.id = d.gpuId"),
              ElementsAre("NVIDIA GeForce RTX 3060|28|NULL|1|4711"));
}

// The queries of docs/trace-format.md.
TEST(Store, QueriesOfTheDocumentationRun) {
  const ScratchFolder folder;
  ASSERT_TRUE(write_store(small(), folder / "t.sqlite"));
  Sql sql(folder / "t.sqlite", SQLITE_OPEN_READONLY);
  EXPECT_THAT(sql.rows("SELECT s.value AS name, COUNT(*) AS n, SUM(e.end - e.start) / 1e6 AS ms "
                       "FROM NVTX_EVENTS e JOIN StringIds s ON s.id = e.textId "
                       "WHERE e.eventType = 59 GROUP BY name ORDER BY ms DESC"),
              ElementsAre("run|1|0.001", "infer|2|0.0006", "conv|1|0.00025", "write|1|NULL"));
  EXPECT_THAT(sql.rows("SELECT r.frame, (r.end - r.start) / 1e6 AS ms FROM STROBE_RANGE r "
                       "JOIN StringIds s ON s.id = r.nameId "
                       "WHERE s.value = 'infer' AND r.frame IS NOT NULL ORDER BY r.frame"),
              ElementsAre("0|0.0002", "1|0.0004"));
  EXPECT_THAT(sql.rows("SELECT d.correlation, l.frame, s.value FROM STROBE_DEVICE_OP d "
                       "JOIN STROBE_RANGE l ON l.id = d.launchId JOIN StringIds s ON s.id = l.nameId ORDER BY 1"),
              ElementsAre("40|0|cudaMemcpyAsync", "41|1|cuLaunchKernel", "43|1|cudaStreamWaitEvent"));
  EXPECT_THAT(sql.rows("SELECT s.value, a.int64Value, r.frame FROM STROBE_ARGUMENT a JOIN STROBE_RANGE r "
                       "ON r.id = a.rangeId JOIN StringIds s ON s.id = a.keyId"),
              ElementsAre("batch|2|0"));
  EXPECT_THAT(sql.rows("SELECT s.value, m.time, m.frame FROM STROBE_MARK m JOIN StringIds s ON s.id = m.nameId"),
              ElementsAre("drop|120|5"));
}

// As NVIDIA's guide joins names of domains and categories: by type, number and process.
TEST(Store, DomainsAndCategoriesHaveRowsAsInRealExports) {
  const ScratchFolder folder;
  test::TimelineMaker maker;
  maker.timeline.processes.push_back({9, 0});
  const int32_t lane = maker.lane(9, "main", 9);
  const StringId layers = maker.timeline.strings.intern("layers");
  const StringId engine = maker.timeline.strings.intern("engine");
  maker.range("conv", lane, 10, 20);
  maker.timeline.ranges.categorize_last(layers, engine);
  maker.range("relu", lane, 30, 40);
  maker.timeline.ranges.categorize_last(layers, 0);
  maker.range("plain", lane, 50, 60);
  maker.mark("drop", lane, 55);
  maker.timeline.marks.categorize_last(0, engine);
  maker.mark_argument("why", maker.timeline.strings.intern("late"));
  ASSERT_TRUE(write_store(maker.finish(), folder / "t.sqlite"));
  Sql sql(folder / "t.sqlite", SQLITE_OPEN_READONLY);
  EXPECT_THAT(sql.rows("SELECT s.value, d.text, c.text, e.eventType FROM NVTX_EVENTS e JOIN StringIds s ON s.id = "
                       "e.textId LEFT JOIN NVTX_EVENTS d ON d.eventType = 75 AND d.domainId = e.domainId AND "
                       "d.globalTid >> 24 = e.globalTid >> 24 LEFT JOIN NVTX_EVENTS c ON c.eventType = 33 AND "
                       "c.domainId = e.domainId AND c.category = e.category AND c.globalTid >> 24 = e.globalTid >> 24 "
                       "WHERE e.eventType IN (34, 59) ORDER BY e.start"),
              ElementsAre("conv|engine|layers|59", "relu|NULL|layers|59", "plain|NULL|NULL|59", "drop|engine|NULL|34"));
  EXPECT_THAT(sql.rows("SELECT eventType, COUNT(*) FROM NVTX_EVENTS GROUP BY 1"),
              ElementsAre("33|2", "34|1", "59|3", "75|1"));
  EXPECT_THAT(sql.rows("SELECT k.value, t.value FROM STROBE_MARK_ARGUMENT a JOIN StringIds k ON k.id = a.keyId "
                       "JOIN StringIds t ON t.id = a.textId"),
              ElementsAre("why|late"));
}

TEST(Store, ReadsFilesFromBeforeTheAddedTables) {
  const ScratchFolder folder;
  const Timeline timeline = small();
  ASSERT_TRUE(write_store(timeline, folder / "t.sqlite"));
  {
    Sql sql(folder / "t.sqlite");
    sql.rows("DROP VIEW NVTX_EVENTS");
    for (const char* table :
         {"STROBE_RANGE_CATEGORY", "STROBE_MARK_CATEGORY", "STROBE_MARK_ARGUMENT", "STROBE_COUNTER_LANE"})
      sql.rows(std::string("DROP TABLE ") + table);
  }
  const auto read = read_store(folder / "t.sqlite");
  ASSERT_TRUE(read) << read.error().to_string();
  EXPECT_EQ(test::difference(timeline, *read), "");
}

// Every table and view that a real export has too has exactly its columns, and every enumeration its values.
TEST(Store, TablesHaveTheColumnsOfRealExports) {
  const ScratchFolder folder;
  ASSERT_TRUE(write_store(small(), folder / "t.sqlite"));
  Sql ours(folder / "t.sqlite", SQLITE_OPEN_READONLY);
  const auto tables = ours.rows(
      "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') AND "
      "name NOT LIKE 'STROBE%' AND name NOT LIKE 'sqlite%' ORDER BY name");
  EXPECT_GE(tables.size(), 30U);
  std::set<std::string> found;
  // Where both have it, the later one counts: kernels got new columns.
  for (const char* name :
       {"traces/nsys/h100_2gpu_video_inference_1s.sqlite", "traces/nsys/cuda_graph_smoke_2025_5.sqlite"}) {
    const fs::path real = test::shared_data(name);
    STROBE_REQUIRE_DATA(real);
    // In place: the real file lies where nothing may be written, so no lock files either.
    Sql theirs("file:" + real.string() + "?immutable=1", SQLITE_OPEN_READONLY | SQLITE_OPEN_URI);
    for (const std::string& table : tables) {
      const std::string columns = "SELECT name FROM pragma_table_info('" + table + "')";
      const auto expected = theirs.rows(columns);
      if (expected.empty() || !found.insert(table).second) continue;
      EXPECT_EQ(ours.rows(columns), expected) << table;
      if (!table.starts_with("ENUM_")) continue;
      EXPECT_THAT(theirs.rows("SELECT * FROM " + table), testing::IsSupersetOf(ours.rows("SELECT * FROM " + table)));
    }
  }
  EXPECT_THAT(tables, testing::ElementsAreArray(found));
}

// What a failed read says; "" when it went well.
std::string refusal(const fs::path& path, ErrorKind kind) {
  const auto read = read_store(path);
  if (read) return "";
  EXPECT_EQ(read.error().kind(), kind) << read.error().to_string();
  const std::string text = read.error().to_string();
  EXPECT_THAT(text, HasSubstr(path.string()));
  EXPECT_EQ(text.find('\n'), std::string::npos);
  return text;
}

TEST(Store, RefusesWhatIsNoTrace) {
  const ScratchFolder folder;
  EXPECT_THAT(refusal(folder / "absent.sqlite", ErrorKind::kNotFound), HasSubstr("no such file"));
  EXPECT_THAT(refusal(folder.path(), ErrorKind::kIo), HasSubstr("folder"));
  ASSERT_TRUE(write_file(folder / "empty", ""));
  EXPECT_THAT(refusal(folder / "empty", ErrorKind::kBadData), HasSubstr("not a SQLite file"));
  ASSERT_TRUE(write_file(folder / "text", std::string(5000, 'x')));
  EXPECT_THAT(refusal(folder / "text", ErrorKind::kBadData), HasSubstr("not a SQLite file"));
  ASSERT_TRUE(write_file(folder / "magic", std::string("SQLite format 3\0", 16) + std::string(5000, 'x')));
  EXPECT_THAT(refusal(folder / "magic", ErrorKind::kBadData), HasSubstr("SQLite"));
  Sql(folder / "other.sqlite", SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE).rows("CREATE TABLE t (x)");
  EXPECT_THAT(refusal(folder / "other.sqlite", ErrorKind::kBadData), HasSubstr("no table STROBE_META"));
}

TEST(Store, RefusesARealNsightExportInOneLine) {
  const fs::path real = test::shared_data("traces/nsys/cuda_graph_smoke_2025_5.sqlite");
  STROBE_REQUIRE_DATA(real);
  EXPECT_THAT(refusal(real, ErrorKind::kBadData), HasSubstr("no table STROBE_META"));
}

TEST(Store, RefusesAnotherVersionAndSaysWhich) {
  const ScratchFolder folder;
  ASSERT_TRUE(write_store(small(), folder / "t.sqlite"));
  Sql(folder / "t.sqlite").rows("UPDATE STROBE_META SET value = 7 WHERE name = 'store_version'");
  EXPECT_THAT(refusal(folder / "t.sqlite", ErrorKind::kBadData),
              HasSubstr("version 7 of the trace file; this Strobe reads 2"));
  Sql(folder / "t.sqlite").rows("UPDATE STROBE_META SET value = 1 WHERE name = 'store_version'");
  EXPECT_THAT(refusal(folder / "t.sqlite", ErrorKind::kBadData), HasSubstr("version 1 of the trace file"));
}

TEST(Store, RefusesATruncatedFileAtEveryLength) {
  const ScratchFolder folder;
  ASSERT_TRUE(write_store(test::random_timeline(3, 2000), folder / "t.sqlite"));
  const auto whole = read_file(folder / "t.sqlite");
  ASSERT_TRUE(whole);
  for (size_t tenth = 0; tenth < 100; ++tenth) {
    ASSERT_TRUE(write_file(folder / "cut.sqlite", std::string_view(*whole).substr(0, whole->size() * tenth / 100)));
    EXPECT_NE(refusal(folder / "cut.sqlite", ErrorKind::kBadData), "") << tenth << " %";
  }
}

TEST(Store, NamesTheRowThatCannotBe) {
  const struct {
    const char* damage;
    const char* complaint;
  } cases[] = {
      {"UPDATE STROBE_RANGE SET nameId = 99999 WHERE id = 1", "STROBE_RANGE row 2: nameId is 99999"},
      {"UPDATE STROBE_RANGE SET nameId = 'x' WHERE id = 1", "nameId is missing"},
      {"UPDATE STROBE_RANGE SET end = start - 1 WHERE id = 2", "ends before it starts"},
      {"UPDATE STROBE_RANGE SET start = 9223372036854775807 WHERE id = 0", "STROBE_RANGE row 1: start is"},
      {"UPDATE STROBE_RANGE SET kind = 10 WHERE id = 0", "kind is 10"},
      {"DELETE FROM STROBE_RANGE WHERE id = 2", "STROBE_RANGE row 3: id is 3"},
      {"DELETE FROM STROBE_RANGE WHERE id > 5", "STROBE_RANGE row 7: it is missing, 16 rows expected"},
      {"UPDATE STROBE_RANGE SET laneId = -1 WHERE id = 3", "STROBE_RANGE row 4: laneId is -1"},
      {"UPDATE STROBE_META SET value = 4 WHERE name = 'range_count'", "more rows than STROBE_META says"},
      {"UPDATE STROBE_META SET value = 1 << 60 WHERE name = 'range_count'", "than a file of this size can hold"},
      {"UPDATE STROBE_DEVICE_OP SET rangeId = 4000 WHERE bytes = 64", "rangeId is 4000"},
      {"UPDATE STROBE_DEVICE_OP SET launchId = 4000", "launchId is 4000"},
      {"UPDATE STROBE_DEVICE_OP SET gridX = -1", "gridX is -1"},
      {"INSERT INTO STROBE_CAPTURE VALUES (4000, 0)", "STROBE_CAPTURE row 1: rangeId is 4000"},
      {"INSERT INTO STROBE_CAPTURE SELECT rangeId, 4000 FROM STROBE_DEVICE_OP LIMIT 1",
       "STROBE_CAPTURE row 1: captureId is 4000"},
      {"INSERT INTO STROBE_CAPTURE SELECT rangeId, rangeId FROM STROBE_API_CALL", "expected one of STROBE_DEVICE_OP"},
      {"UPDATE STROBE_API_CALL SET rangeId = -5 WHERE correlation = 40", "STROBE_API_CALL row 1: rangeId is -5"},
      {"UPDATE STROBE_MARK SET laneId = 17", "STROBE_MARK row 1: laneId is 17"},
      {"INSERT INTO STROBE_RANGE_CATEGORY VALUES (999, 0, 0)", "STROBE_RANGE_CATEGORY row 1: rangeId is 999"},
      {"INSERT INTO STROBE_RANGE_CATEGORY VALUES (0, 999, 0)", "STROBE_RANGE_CATEGORY row 1: categoryId is 999"},
      {"INSERT INTO STROBE_MARK_CATEGORY VALUES (0, 0, -1)", "STROBE_MARK_CATEGORY row 1: domainId is -1"},
      {"INSERT INTO STROBE_MARK_ARGUMENT VALUES (7, 0, 1, NULL, NULL)", "STROBE_MARK_ARGUMENT row 1: markId is 7"},
      {"INSERT INTO STROBE_COUNTER_LANE VALUES (99, 0)", "STROBE_COUNTER_LANE row 1: counterId is 99"},
      {"DELETE FROM STROBE_TABLE_CELL WHERE rowNumber = 0 AND columnNumber = 1", "STROBE_TABLE_CELL row 2: rowNumber"},
      {"DELETE FROM STROBE_TABLE_CELL WHERE rowNumber = 1 AND columnNumber = 1", "not as many cells"},
      {"UPDATE STROBE_TABLE_COLUMN SET tableId = 1", "STROBE_TABLE_COLUMN row 1: tableId is 1"},
      {"UPDATE STROBE_ARGUMENT SET rangeId = 4000000000", "rangeId is 4000000000"},
      {"UPDATE STROBE_LANE SET kind = 9", "kind is 9"},
      {"UPDATE STROBE_LANE SET tid = 1 << 40", "tid is"},
      {"UPDATE StringIds SET id = 1 << 40 WHERE id = 1", "StringIds row"},
      {"DELETE FROM STROBE_META WHERE name = 'store_version'", "store_version"},
      {"DROP TABLE STROBE_FLOW", "no table STROBE_FLOW"},
      {"ALTER TABLE STROBE_RANGE DROP COLUMN frame", "no such column: frame"},
      {"DROP TABLE STROBE_FACT; CREATE VIEW STROBE_FACT AS WITH RECURSIVE n(name, value) AS (SELECT 1, 1 UNION ALL "
       "SELECT name + 1, 1 FROM n) SELECT * FROM n",
       "no table STROBE_FACT"},
  };
  const ScratchFolder folder;
  for (const auto& [damage, complaint] : cases) {
    ASSERT_TRUE(write_store(small(), folder / "t.sqlite"));
    Sql(folder / "t.sqlite").rows(damage);
    EXPECT_THAT(refusal(folder / "t.sqlite", ErrorKind::kBadData), HasSubstr(complaint)) << damage;
  }
}

TEST(Store, SaysWhyItCannotWrite) {
  const ScratchFolder folder;
  const auto nowhere = write_store(small(), folder / "absent/t.sqlite");
  ASSERT_FALSE(nowhere);
  EXPECT_EQ(nowhere.error().kind(), ErrorKind::kIo);
  EXPECT_EQ(nowhere.error().to_string(), (folder / "absent/t.sqlite").string() + ": No such file or directory");
  ASSERT_TRUE(make_writable_folder(folder / "taken"));
  const auto onto_folder = write_store(small(), folder / "taken");
  ASSERT_FALSE(onto_folder);
  EXPECT_THAT(files_in(folder.path()), ElementsAre("taken"));
}

// A disk that fills up while the trace is written: one line, and neither half a trace nor rubbish stays behind, nor is
// an older trace of that name harmed.
TEST(Store, AFullDiskLeavesNoHalfTrace) {
  const ScratchFolder folder;
  const fs::path path = folder / "t.sqlite";
  const Timeline old = small();
  ASSERT_TRUE(write_store(old, path));
  const Timeline big = test::random_timeline(1, 20000);
  const auto previous_action = std::signal(SIGXFSZ, SIG_IGN);
  struct rlimit unlimited {};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &unlimited), 0);
  std::vector<Result<void>> results;
  for (const rlim_t limit : {rlim_t{0}, rlim_t{20000}, rlim_t{400000}, rlim_t{1000000}}) {
    struct rlimit limited = unlimited;
    limited.rlim_cur = limit;
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &limited), 0);
    results.push_back(write_store(big, path));
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &unlimited), 0);
  }
  std::signal(SIGXFSZ, previous_action);
  for (const auto& result : results) {
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().kind(), ErrorKind::kIo) << result.error().to_string();
    EXPECT_THAT(result.error().to_string(), HasSubstr(path.string() + ": "));
    EXPECT_THAT(result.error().to_string(), testing::AnyOf(HasSubstr("File too large"), HasSubstr("no space left")));
  }
  EXPECT_THAT(files_in(folder.path()), ElementsAre("t.sqlite"));
  const auto read = read_store(path);
  ASSERT_TRUE(read);
  EXPECT_EQ(test::difference(old, *read), "");
}

}  // namespace
}  // namespace strobe::trace
