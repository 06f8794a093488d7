#include "trace/store.h"

#include <gmock/gmock.h>
#include <sys/resource.h>

#include <csignal>

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

TEST(Store, SurvivesSqlitesOwnHousekeeping) {
  const ScratchFolder folder;
  const fs::path path = folder / "t.sqlite";
  const Timeline timeline = test::random_timeline(5, 300);
  ASSERT_TRUE(write_store(timeline, path));
  {
    Sql sql(path);
    EXPECT_THAT(sql.rows("PRAGMA integrity_check"), ElementsAre("ok"));
    sql.rows("CREATE INDEX by_text ON NVTX_EVENTS(textId, start, end, eventType)");
    sql.rows("CREATE INDEX by_frame ON STROBE_RANGE(frame DESC, id, eventId, laneId, open)");
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

Timeline small() {
  TimelineMaker maker;
  maker.timeline.processes.push_back({4711, maker.timeline.strings.intern("strobe")});
  const int32_t main = maker.lane(4711, "main", 4711), worker = maker.lane(4712, "infer", 4711);
  const int32_t stream = maker.lane(7, "stream 7", 4711, Lane::Kind::kStream);
  maker.range("run", main, 0, 1000);
  const int32_t first = maker.range("infer", worker, 100, 300, 0);
  maker.argument(first, "batch", int64_t{2});
  maker.range("infer", worker, 400, 800, 1);
  maker.range("conv", worker, 450, 700);
  maker.range("request", worker, 500, 900, 1, true);
  maker.range("gemm", stream, 510, 690, 1);
  maker.range("write", main, 950, 1000, 1, false, true);
  maker.mark("drop", main, 120, 5);
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

TEST(Store, FramesParentsAndArgumentsJoinTheEvents) {
  const ScratchFolder folder;
  ASSERT_TRUE(write_store(small(), folder / "t.sqlite"));
  Sql sql(folder / "t.sqlite", SQLITE_OPEN_READONLY);
  EXPECT_THAT(sql.rows("SELECT s.value, r.frame, p.id IS NOT NULL, r.open FROM STROBE_RANGE r "
                       "JOIN NVTX_EVENTS e ON e.rowid = r.eventId JOIN StringIds s ON s.id = e.textId "
                       "LEFT JOIN STROBE_RANGE p ON p.id = r.parentId ORDER BY r.id"),
              ElementsAre("run|NULL|0|0", "infer|0|0|0", "infer|1|0|0", "conv|1|1|0", "request|1|0|0", "write|1|1|1"));
  EXPECT_THAT(sql.rows("SELECT s.value, d.end - d.start, l.tid, r.frame FROM STROBE_DEVICE_RANGE d "
                       "JOIN STROBE_RANGE r ON r.id = d.rangeId JOIN STROBE_LANE l ON l.id = r.laneId "
                       "JOIN StringIds s ON s.id = d.nameId"),
              ElementsAre("gemm|180|7|1"));
  EXPECT_THAT(sql.rows("SELECT s.value, a.int64Value, r.frame FROM STROBE_ARGUMENT a JOIN STROBE_RANGE r "
                       "ON r.id = a.rangeId JOIN StringIds s ON s.id = a.keyId"),
              ElementsAre("batch|2|0"));
  EXPECT_THAT(sql.rows("SELECT s.value, e.start, m.frame FROM STROBE_MARK m JOIN NVTX_EVENTS e ON e.rowid = m.eventId "
                       "JOIN StringIds s ON s.id = e.textId"),
              ElementsAre("drop|120|5"));
}

// Every table that real exports have and we write has exactly their columns, with their types.
TEST(Store, TablesHaveTheColumnsOfRealExports) {
  const fs::path real = test::shared_data("traces/nsys/h100_2gpu_video_inference_1s.sqlite");
  STROBE_REQUIRE_DATA(real);
  const ScratchFolder folder;
  ASSERT_TRUE(write_store(small(), folder / "t.sqlite"));
  Sql ours(folder / "t.sqlite", SQLITE_OPEN_READONLY);
  // In place: the real file lies where nothing may be written, so no lock files either.
  Sql theirs("file:" + real.string() + "?immutable=1", SQLITE_OPEN_READONLY | SQLITE_OPEN_URI);
  const auto tables =
      ours.rows("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'STROBE%' ORDER BY name");
  EXPECT_GE(tables.size(), 8U);
  for (const std::string& table : tables) {
    const std::string columns = "SELECT name, type, \"notnull\", pk FROM pragma_table_info('" + table + "')";
    EXPECT_EQ(ours.rows(columns), theirs.rows(columns)) << table;
  }
  for (const char* enumeration : {"ENUM_NSYS_EVENT_TYPE", "ENUM_DIAGNOSTIC_SEVERITY_LEVEL",
                                  "ENUM_DIAGNOSTIC_SOURCE_TYPE", "ENUM_DIAGNOSTIC_TIMESTAMP_SOURCE"}) {
    const auto known = theirs.rows(std::string("SELECT * FROM ") + enumeration);
    EXPECT_THAT(known, testing::IsSupersetOf(ours.rows(std::string("SELECT * FROM ") + enumeration)));
  }
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

TEST(Store, RefusesANewerVersionAndSaysWhich) {
  const ScratchFolder folder;
  ASSERT_TRUE(write_store(small(), folder / "t.sqlite"));
  Sql(folder / "t.sqlite").rows("UPDATE STROBE_META SET value = 7 WHERE name = 'store_version'");
  EXPECT_THAT(refusal(folder / "t.sqlite", ErrorKind::kBadData),
              HasSubstr("version 7 of the trace file; this Strobe reads up to 1"));
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
      {"UPDATE NVTX_EVENTS SET textId = 99999 WHERE rowid = 2", "NVTX_EVENTS row 2: textId is 99999"},
      {"UPDATE NVTX_EVENTS SET textId = NULL WHERE rowid = 2", "textId is missing"},
      {"UPDATE NVTX_EVENTS SET end = start - 1 WHERE rowid = 3", "ends before it starts"},
      {"UPDATE NVTX_EVENTS SET start = 9223372036854775807 WHERE rowid = 1", "NVTX_EVENTS row 1: start is"},
      {"UPDATE NVTX_EVENTS SET eventType = 75 WHERE rowid = 1", "eventType is 75"},
      {"DELETE FROM NVTX_EVENTS WHERE rowid = 2", "there is no event 2"},
      {"UPDATE STROBE_RANGE SET laneId = -1 WHERE id = 3", "STROBE_RANGE row 4: laneId is -1"},
      {"UPDATE STROBE_RANGE SET eventId = 1 WHERE id = 3", "there is no event 1"},
      {"DELETE FROM STROBE_RANGE WHERE id = 1", "id is 2, expected 1"},
      {"DELETE FROM STROBE_DEVICE_RANGE", "no row in STROBE_DEVICE_RANGE"},
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

TEST(Store, ParentsThatGoInCirclesAreComputedAnew) {
  const ScratchFolder folder;
  const Timeline timeline = small();
  ASSERT_TRUE(write_store(timeline, folder / "t.sqlite"));
  Sql(folder / "t.sqlite").rows("UPDATE STROBE_RANGE SET parentId = (id + 1) % 3");
  const auto read = read_store(folder / "t.sqlite");
  ASSERT_TRUE(read);
  EXPECT_EQ(test::difference(timeline, *read), "");
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
