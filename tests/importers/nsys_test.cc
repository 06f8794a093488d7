#include "importers/nsys.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/file.h"
#include "support/test_data.h"
#include "trace/nsys_export.h"
#include "trace/sql.h"
#include "trace/timeline_maker.h"

namespace strobe::importers {
namespace {

namespace fs = std::filesystem;
using test::ScratchFolder;
using test::Sql;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;
using testing::UnorderedElementsAre;
using trace::DeviceOp;
using trace::Lane;
using trace::RangeKind;
using trace::Timeline;

const char* const kTwoGpus = "traces/nsys/h100_2gpu_video_inference_1s.sqlite";
const char* const kGraphs = "traces/nsys/cuda_graph_smoke_2025_5.sqlite";

Timeline import(const fs::path& path) {
  auto timeline = import_nsys(path, {});
  EXPECT_TRUE(timeline) << timeline.error().to_string();
  return timeline ? std::move(*timeline) : Timeline();
}

// The real files lie where nothing may be written, so no lock files either.
std::string in_place(const fs::path& path) {
  return "file:" + path.string() + "?immutable=1";
}
constexpr int kInPlace = SQLITE_OPEN_READONLY | SQLITE_OPEN_URI;

std::string_view name(const Timeline& timeline, size_t range) {
  return timeline.strings[timeline.ranges.name[range]];
}
const Lane& lane(const Timeline& timeline, int32_t range) {
  return timeline.lanes[static_cast<size_t>(timeline.ranges.lane[static_cast<size_t>(range)])];
}

// "name|count|nanoseconds" of the ranges of a kind, as a GROUP BY gives them.
std::vector<std::string> sums(const Timeline& timeline, std::set<RangeKind> kinds) {
  std::map<std::string, std::pair<int64_t, int64_t>> sums;
  for (size_t i = 0; i < timeline.ranges.size(); ++i) {
    if (kinds.count(timeline.ranges.kind[i]) == 0) continue;
    auto& [count, time] = sums[std::string(name(timeline, i))];
    ++count;
    time += timeline.ranges.end_ns[i] - timeline.ranges.start_ns[i];
  }
  std::vector<std::string> rows;
  for (const auto& [text, sum] : sums)
    rows.push_back(text + "|" + std::to_string(sum.first) + "|" + std::to_string(sum.second));
  std::sort(rows.begin(), rows.end());
  return rows;
}

std::vector<std::string> sorted(std::vector<std::string> rows) {
  std::sort(rows.begin(), rows.end());
  return rows;
}

size_t count(const Timeline& timeline, RangeKind kind) {
  return static_cast<size_t>(std::count(timeline.ranges.kind.begin(), timeline.ranges.kind.end(), kind));
}

TEST(Nsys, TwoGpusHaveTheEventsOfTheFile) {
  const fs::path path = test::shared_data(kTwoGpus);
  STROBE_REQUIRE_DATA(path);
  const Timeline timeline = import(path);
  EXPECT_EQ(count(timeline, RangeKind::kKernel), 3442U);
  EXPECT_EQ(count(timeline, RangeKind::kCopy), 904U);
  EXPECT_EQ(count(timeline, RangeKind::kSet), 22U);
  EXPECT_EQ(count(timeline, RangeKind::kApi), 5796U);
  EXPECT_EQ(count(timeline, RangeKind::kSync), 244U);
  EXPECT_EQ(count(timeline, RangeKind::kOverhead), 198U);
  EXPECT_EQ(count(timeline, RangeKind::kAnnotation) + count(timeline, RangeKind::kOperator), 16782U);
  EXPECT_EQ(timeline.device_ops.size(), 3442U + 904 + 22 + 244);
  EXPECT_EQ(timeline.api_calls.size(), 5796U);

  Sql sql(in_place(path), kInPlace);
  EXPECT_EQ(sums(timeline, {RangeKind::kKernel}),
            sorted(sql.rows("SELECT s.value, COUNT(*), SUM(end - start) FROM CUPTI_ACTIVITY_KIND_KERNEL k "
                            "JOIN StringIds s ON s.id = k.demangledName GROUP BY 1")));
  EXPECT_EQ(
      sums(timeline, {RangeKind::kCopy}),
      sorted(sql.rows("SELECT '[CUDA memcpy ' || o.label || ']', COUNT(*), SUM(end - start) FROM "
                      "CUPTI_ACTIVITY_KIND_MEMCPY m JOIN ENUM_CUDA_MEMCPY_OPER o ON o.id = copyKind GROUP BY 1")));
  EXPECT_EQ(sums(timeline, {RangeKind::kSet}),
            sql.rows("SELECT '[CUDA memset]', COUNT(*), SUM(end - start) FROM CUPTI_ACTIVITY_KIND_MEMSET"));
  EXPECT_EQ(sums(timeline, {RangeKind::kSync}),
            sorted(sql.rows("SELECT t.label, COUNT(*), SUM(end - start) FROM CUPTI_ACTIVITY_KIND_SYNCHRONIZATION "
                            "JOIN ENUM_CUPTI_SYNC_TYPE t ON t.id = syncType GROUP BY 1")));
  EXPECT_EQ(sums(timeline, {RangeKind::kApi}),
            sorted(sql.rows("SELECT substr(s.value, 1, instr(s.value, '_v') - 1), COUNT(*), SUM(end - start) FROM "
                            "CUPTI_ACTIVITY_KIND_RUNTIME r JOIN StringIds s ON s.id = nameId GROUP BY 1")));
  // Names of operators without their numbers, which are arguments.
  EXPECT_EQ(sums(timeline, {RangeKind::kAnnotation, RangeKind::kOperator}),
            sorted(sql.rows("SELECT CASE instr(text, ', op_id = ') + instr(text, ', seq = ') WHEN 0 THEN text ELSE "
                            "substr(text, 1, instr(text, ', ') - 1) END, COUNT(*), SUM(end - start) FROM NVTX_EVENTS "
                            "GROUP BY 1")));
  const int64_t op_id = timeline.strings.find("op_id");
  EXPECT_EQ(std::to_string(std::count(timeline.arguments.key.begin(), timeline.arguments.key.end(), op_id)),
            sql.rows("SELECT COUNT(*) FROM NVTX_EVENTS WHERE text LIKE '%, op_id = %'").at(0));

  int64_t bytes = 0;
  for (const DeviceOp& op : timeline.device_ops)
    if (op.copy_kind == 1 && op.source_kind == 1) bytes += op.bytes;
  EXPECT_EQ(bytes, 50950504448);
  EXPECT_THAT(timeline.losses.faults, IsEmpty());
}

TEST(Nsys, TwoGpusHaveTheirProcessesStreamsAndLaunches) {
  const fs::path path = test::shared_data(kTwoGpus);
  STROBE_REQUIRE_DATA(path);
  const Timeline timeline = import(path);
  std::map<std::string, int> kernels;
  int launched = 0, wrong = 0;
  for (const DeviceOp& op : timeline.device_ops) {
    if (timeline.ranges.kind[static_cast<size_t>(op.range)] != RangeKind::kKernel) continue;
    const Lane& at = lane(timeline, op.range);
    ++kernels[std::to_string(at.pid) + "/" + std::to_string(at.device) + "/" + std::to_string(at.context) + "/" +
              std::to_string(at.tid)];
    EXPECT_EQ(at.kind, Lane::Kind::kStream);
    if (op.launch == trace::kNone) continue;
    ++launched;
    const auto launch = static_cast<size_t>(op.launch);
    const bool fits = lane(timeline, op.launch).pid == at.pid &&
                      name(timeline, launch).starts_with("cudaLaunchKernel") &&
                      timeline.ranges.start_ns[launch] <= timeline.ranges.start_ns[static_cast<size_t>(op.range)];
    wrong += fits ? 0 : 1;
  }
  EXPECT_THAT(kernels, UnorderedElementsAre(Pair("111/0/1/7", 1721), Pair("112/1/2/15", 1721)));
  EXPECT_EQ(3442 - launched, 1810);  // launched before the window
  EXPECT_EQ(wrong, 0);
  Sql sql(in_place(path), kInPlace);
  EXPECT_EQ(std::to_string(launched),
            sql.rows("SELECT COUNT(*) FROM CUPTI_ACTIVITY_KIND_KERNEL k WHERE EXISTS (SELECT 1 FROM "
                     "CUPTI_ACTIVITY_KIND_RUNTIME r WHERE r.correlationId = k.correlationId AND "
                     "r.globalTid >> 24 = k.globalPid >> 24)")
                .at(0));
  // Those that nothing happened in are none of the trace's business.
  ASSERT_EQ(timeline.processes.size(), 2U);
  EXPECT_EQ(timeline.processes[0].pid, 111);
  EXPECT_EQ(timeline.strings[timeline.processes[0].name], "python3");
  // Wall clock of the first event, and its place in the session.
  EXPECT_EQ(timeline.facts.at("nsys.time_zero_ns"), "155357525002");
  EXPECT_EQ(timeline.utc_start_ns, 1779630014975716426 + 155357525002);
  EXPECT_EQ(*std::min_element(timeline.ranges.start_ns.begin(), timeline.ranges.start_ns.end()), 0);
  EXPECT_EQ(timeline.duration_ns, 156326972607 - 155357525002);
  EXPECT_EQ(timeline.facts.at("nsys.schema_version"), "3.25.0");
  EXPECT_EQ(timeline.facts.count("gpu.0.name"), 0U);
}

TEST(Nsys, GraphLaunchesOsCallsAndTheGpuOfASmallRun) {
  const fs::path path = test::shared_data(kGraphs);
  STROBE_REQUIRE_DATA(path);
  const Timeline timeline = import(path);
  EXPECT_EQ(count(timeline, RangeKind::kApi), 33U);
  EXPECT_EQ(count(timeline, RangeKind::kKernel), 3U);
  EXPECT_EQ(count(timeline, RangeKind::kCopy), 1U);
  EXPECT_EQ(count(timeline, RangeKind::kGraph), 2U);
  EXPECT_EQ(count(timeline, RangeKind::kOs), 654U);
  EXPECT_EQ(count(timeline, RangeKind::kOverhead), 35U);
  Sql sql(in_place(path), kInPlace);
  EXPECT_EQ(
      sums(timeline, {RangeKind::kOs}),
      sorted(sql.rows("SELECT s.value, COUNT(*), SUM(end - start) FROM OSRT_API JOIN StringIds s ON s.id = nameId "
                      "GROUP BY 1")));
  for (const DeviceOp& op : timeline.device_ops) {
    const auto row = static_cast<size_t>(op.range);
    ASSERT_NE(op.launch, trace::kNone) << name(timeline, row);
    const std::string_view launch = name(timeline, static_cast<size_t>(op.launch));
    switch (timeline.ranges.kind[row]) {
      case RangeKind::kKernel:
        EXPECT_EQ(name(timeline, row), "add_one(const float *, float *, int)");
        EXPECT_EQ(launch, "cudaLaunchKernel");
        EXPECT_THAT(op.grid, ElementsAre(4, 1, 1));
        EXPECT_THAT(op.block, ElementsAre(256, 1, 1));
        EXPECT_EQ(op.registers, 16);
        EXPECT_EQ(op.static_shared, 0);
        break;
      case RangeKind::kGraph:
        EXPECT_EQ(name(timeline, row), "CUDA graph 1");
        EXPECT_EQ(launch, "cudaGraphLaunch");
        break;
      case RangeKind::kCopy:
        EXPECT_EQ(name(timeline, row), "[CUDA memcpy Host-to-Device]");
        EXPECT_EQ(op.bytes, 4096);
        EXPECT_EQ(op.source_kind, 0);
        EXPECT_EQ(op.target_kind, 2);
        break;
      default:
        EXPECT_EQ(launch, "cudaStreamSynchronize");
    }
    EXPECT_EQ(lane(timeline, op.range).tid, 13);
    EXPECT_EQ(lane(timeline, op.range).device, 0);
    EXPECT_EQ(lane(timeline, op.range).context, 1);
  }
  EXPECT_EQ(timeline.facts.at("gpu.0.name"), "NVIDIA GeForce RTX 3060");
  EXPECT_EQ(timeline.facts.at("gpu.0.sm_count"), "28");
  EXPECT_EQ(timeline.facts.at("gpu.0.memory_bytes_per_s"), "360048000000");
  EXPECT_EQ(timeline.facts.at("gpu.0.compute_minor"), "6");
  EXPECT_EQ(timeline.facts.at("gpu.of.945961.0"), "0");
  EXPECT_EQ(timeline.facts.at("nsys.not_imported"), "CUDA_GRAPH_EVENTS, OSRT_FILE_ACCESS_EVENTS");
  EXPECT_THAT(timeline.facts.at("nsys.warning.1"), HasSubstr("Installed CUDA driver version (13.2) is not supported"));
  EXPECT_EQ(timeline.strings[timeline.processes.at(0).name], "flameox-nsight-smoke");
  // Nothing of the machine: no folder, no piece of hardware that could be told from its like.
  for (const auto& [key, value] : timeline.facts) {
    EXPECT_EQ(value.find("/tmp"), std::string::npos) << key;
    EXPECT_EQ(value.find("b15c2a57"), std::string::npos) << key;
  }
}

// What both real files lack: an export by hand.
class MadeByHand : public testing::Test {
 protected:
  Timeline import(const std::string& script) {
    const fs::path path = folder_ / "made.sqlite";
    fs::remove(path);
    Sql(path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE).rows(script);
    return importers::import(path);
  }
  std::map<std::string, std::string> arguments(const Timeline& timeline, size_t range) {
    std::map<std::string, std::string> result;
    for (size_t i = 0; i < timeline.arguments.size(); ++i) {
      if (static_cast<size_t>(timeline.arguments.range[i]) != range) continue;
      std::string& text = result[std::string(timeline.strings[timeline.arguments.key[i]])];
      if (const auto* id = std::get_if<trace::StringId>(&timeline.arguments.value[i])) text = timeline.strings[*id];
      if (const auto* integer = std::get_if<int64_t>(&timeline.arguments.value[i])) text = std::to_string(*integer);
      if (const auto* real = std::get_if<double>(&timeline.arguments.value[i])) text = std::to_string(*real);
    }
    return result;
  }
  ScratchFolder folder_;
};

constexpr int64_t kPid5 = (int64_t{1} << 48) | (5 << 24);  // thread 0 of process 5

TEST_F(MadeByHand, RegisteredStringsDomainsMarksAndOpenRangesOfAnOldExport) {
  const std::string tid = std::to_string(kPid5 + 6);
  const Timeline timeline = import(
      "CREATE TABLE EXPORT_META_DATA (name TEXT, value TEXT);"
      "INSERT INTO EXPORT_META_DATA VALUES ('EXPORT_SCHEMA_VERSION', '3.1.2');"
      "CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT);"
      "INSERT INTO StringIds VALUES (7, 'conv1 + relu1'), (8, 'TensorRT'), (9, 'worker');"
      "CREATE TABLE ThreadNames (nameId INTEGER, priority INTEGER, globalTid INTEGER);"
      "INSERT INTO ThreadNames VALUES (9, 0, " +
      tid +
      ");"
      "CREATE TABLE NVTX_EVENTS (start INTEGER, end INTEGER, eventType INTEGER, rangeId INTEGER, category INTEGER, "
      "text TEXT, globalTid INTEGER, endGlobalTid INTEGER, textId INTEGER, domainId INTEGER, int64Value INTEGER);"
      "INSERT INTO NVTX_EVENTS (start, end, eventType, text, globalTid, textId, domainId, category, int64Value) VALUES "
      "(50, 80, 59, NULL, " +
      tid + ", 7, 1, 3, NULL), (10, NULL, 75, NULL, " + tid +
      ", 8, 1, NULL, NULL),"
      "(10, NULL, 33, 'layers', " +
      tid + ", NULL, 1, 3, NULL), (40, NULL, 59, 'frame', " + tid +
      ", NULL, 0, NULL, 12),"
      "(60, 95, 60, 'request', " +
      tid + ", NULL, 0, NULL, NULL), (55, NULL, 34, 'drop', " + tid + ", NULL, 1, 4, 9);");
  ASSERT_EQ(timeline.ranges.size(), 3U);
  EXPECT_EQ(name(timeline, 0), "frame");
  EXPECT_EQ(timeline.ranges.open[0], 1);
  EXPECT_EQ(timeline.ranges.end_ns[0], 55);
  EXPECT_THAT(arguments(timeline, 0), UnorderedElementsAre(Pair("payload", "12")));
  EXPECT_EQ(name(timeline, 1), "conv1 + relu1");
  EXPECT_EQ(timeline.ranges.start_ns[1], 10);
  EXPECT_EQ(timeline.ranges.parent[1], 0);
  EXPECT_EQ(timeline.strings[timeline.ranges.domain_of(1)], "TensorRT");
  EXPECT_EQ(timeline.strings[timeline.ranges.category_of(1)], "layers");
  EXPECT_EQ(timeline.ranges.domain_of(0), 0U);
  EXPECT_EQ(timeline.ranges.is_async[2], 1);
  ASSERT_EQ(timeline.marks.size(), 1U);
  EXPECT_EQ(timeline.marks.time_ns[0], 15);
  EXPECT_EQ(timeline.strings[timeline.marks.domain_of(0)], "TensorRT");
  EXPECT_EQ(timeline.strings[timeline.marks.category_of(0)], "4") << "never named";
  ASSERT_EQ(timeline.mark_arguments.size(), 1U);
  EXPECT_EQ(std::get<int64_t>(timeline.mark_arguments.value[0]), 9);
  EXPECT_EQ(timeline.strings[timeline.lanes[0].name], "worker");
  EXPECT_EQ(timeline.lanes[0].pid, 5);
  EXPECT_EQ(timeline.lanes[0].tid, 6);
  EXPECT_EQ(timeline.facts.at("nsys.schema_version"), "3.1.2");
}

TEST_F(MadeByHand, OperatorsOfPyTorchHaveTheirNumbersAsArguments) {
  const std::string tid = std::to_string(kPid5);
  const auto row = [&](int start, const std::string& text) {
    return "(" + std::to_string(start) + ", " + std::to_string(start + 5) + ", 59, '" + text + "', " + tid + ")";
  };
  const Timeline timeline = import(
      "CREATE TABLE NVTX_EVENTS (start INTEGER, end INTEGER, eventType INTEGER, text TEXT, globalTid INTEGER);"
      "INSERT INTO NVTX_EVENTS VALUES " +
      row(0, "aten::add, seq = 7, op_id = 12, sizes = [[2, 3], []], input_op_ids = [(1,0)]") + ", " +
      row(10, "aten::view, op_id = 5") + ", " + row(20, "mine, op_id = of another kind") + ", " +
      row(30, "step, seq = 3 of 4"));
  EXPECT_EQ(name(timeline, 0), "aten::add");
  EXPECT_EQ(timeline.ranges.kind[0], RangeKind::kOperator);
  EXPECT_THAT(arguments(timeline, 0),
              UnorderedElementsAre(Pair("seq", "7"), Pair("op_id", "12"), Pair("sizes", "[[2, 3], []]")));
  EXPECT_EQ(name(timeline, 1), "aten::view");
  EXPECT_EQ(name(timeline, 2), "mine, op_id = of another kind");
  EXPECT_EQ(timeline.ranges.kind[2], RangeKind::kAnnotation);
  EXPECT_EQ(name(timeline, 3), "step, seq = 3 of 4");
}

TEST_F(MadeByHand, WaitsFindTheRecordOfTheirEventInTheirProcess) {
  const std::string one = std::to_string(kPid5), two = std::to_string(kPid5 + (1 << 24));
  const Timeline timeline = import(
      "CREATE TABLE CUPTI_ACTIVITY_KIND_CUDA_EVENT (timestamp INTEGER, streamId INTEGER, correlationId INTEGER, "
      "globalPid INTEGER, eventSyncId INTEGER);"
      "INSERT INTO CUPTI_ACTIVITY_KIND_CUDA_EVENT VALUES (0, 13, 100, " +
      one + ", 4), (0, 14, 200, " + two +
      ", 4);"
      "CREATE TABLE CUPTI_ACTIVITY_KIND_SYNCHRONIZATION (start INTEGER, end INTEGER, deviceId INTEGER, contextId "
      "INTEGER, "
      "streamId INTEGER, correlationId INTEGER, globalPid INTEGER, syncType INTEGER, eventId INTEGER, eventSyncId "
      "INTEGER);"
      "INSERT INTO CUPTI_ACTIVITY_KIND_SYNCHRONIZATION VALUES (10, 12, 0, 1, 7, 300, " +
      one +
      ", 2, 9, 4), "
      "(20, 22, 0, 1, 7, 301, " +
      two + ", 2, 9, 4), (30, 32, 0, 1, 4294967295, 302, " + two +
      ", 1, 9, 4), "
      "(40, 41, 0, 1, 7, 303, " +
      one + ", 2, 9, 4294967295);");
  ASSERT_EQ(timeline.device_ops.size(), 4U);
  EXPECT_EQ(timeline.device_ops[0].sync_stream, 13);
  EXPECT_EQ(timeline.device_ops[0].sync_correlation, 100);
  EXPECT_EQ(timeline.device_ops[1].sync_stream, 14);
  EXPECT_EQ(timeline.device_ops[1].sync_correlation, 200);
  EXPECT_EQ(timeline.device_ops[2].sync_correlation, 200);
  EXPECT_EQ(timeline.device_ops[2].sync_stream, trace::kNone);
  EXPECT_EQ(lane(timeline, timeline.device_ops[2].range).tid, -1);
  EXPECT_EQ(timeline.device_ops[3].sync_correlation, 0);
  // The same numbers in two processes are two streams.
  EXPECT_NE(timeline.ranges.lane[0], timeline.ranges.lane[1]);
}

TEST_F(MadeByHand, LossesOfTheToolAreFaultsAndNamesakesOnTwoMachinesAreTwoProcesses) {
  const std::string one = std::to_string(kPid5), other = std::to_string(kPid5 + (int64_t{1} << 56));
  const Timeline timeline = import(
      "CREATE TABLE DIAGNOSTIC_EVENT (timestamp INTEGER, severity INTEGER, text TEXT);"
      "INSERT INTO DIAGNOSTIC_EVENT VALUES (0, 1, 'dropped nothing'), (1, 2, 'Events were lost; see /home/me/log.txt "
      "now'),"
      "(2, 2, 'Not all NVTX events might have been collected.'), (3, 3, 'No CUPTI'), (4, 2, 'Old driver');"
      "CREATE TABLE OSRT_API (start INTEGER, end INTEGER, globalTid INTEGER, nameId INTEGER);"
      "INSERT INTO OSRT_API VALUES (1, 2, " +
      one + ", 99), (3, 2, " + other + ", 99), (1 << 61, 7, " + one + ", 99);");
  EXPECT_THAT(
      timeline.losses.faults,
      UnorderedElementsAre(Pair("Nsight Systems: Events were lost; see (path) now", 1U),
                           Pair("Nsight Systems: Not all NVTX events might have been collected.", 1U),
                           Pair("Nsight Systems: No CUPTI", 1U), Pair("text that the file does not have", 1U),
                           Pair("event at a time that cannot be", 1U), Pair("range that ends before it starts", 1U)));
  EXPECT_EQ(timeline.facts.at("nsys.warning.1"), "Old driver");
  ASSERT_EQ(timeline.lanes.size(), 2U);
  EXPECT_NE(timeline.lanes[0].pid, timeline.lanes[1].pid);
}

TEST_F(MadeByHand, WhatIsNoExportIsRefusedInOneLine) {
  const auto refusal = [](const fs::path& path, ErrorKind kind) {
    const auto timeline = import_nsys(path, {});
    EXPECT_FALSE(timeline);
    if (timeline) return std::string();
    EXPECT_EQ(timeline.error().kind(), kind);
    return timeline.error().to_string();
  };
  EXPECT_THAT(refusal(folder_ / "absent", ErrorKind::kNotFound), HasSubstr("no such file"));
  EXPECT_THAT(refusal(folder_.path(), ErrorKind::kIo), HasSubstr("is a folder"));
  ASSERT_TRUE(write_file(folder_ / "text", std::string(5000, 'x')));
  EXPECT_THAT(refusal(folder_ / "text", ErrorKind::kBadData), HasSubstr("not a SQLite file"));
  Sql(folder_ / "other", SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE).rows("CREATE TABLE t (x)");
  EXPECT_THAT(refusal(folder_ / "other", ErrorKind::kBadData),
              HasSubstr("without a table of an Nsight Systems export"));
  Sql(folder_ / "ours", SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE).rows("CREATE TABLE STROBE_META (x)");
  EXPECT_THAT(refusal(folder_ / "ours", ErrorKind::kBadData), HasSubstr("a Strobe trace"));
}

TEST_F(MadeByHand, AStopKeepsWhatWasReadAndProgressEndsWithTheFile) {
  std::string script =
      "CREATE TABLE OSRT_API (start INTEGER, end INTEGER, globalTid INTEGER, nameId INTEGER);"
      "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 49999) "
      "INSERT INTO OSRT_API SELECT i, i + 1, 0, 0 FROM n;";
  EXPECT_EQ(import(script).ranges.size(), 50'000U);
  std::atomic<bool> stop{false};
  uint64_t last = 0;
  ImportOptions options;
  options.stop = &stop;
  options.on_progress = [&](uint64_t done, uint64_t total) {
    EXPECT_GE(done, last);
    EXPECT_LE(done, total);
    last = done;
    if (done > total / 2) stop = true;
  };
  const auto timeline = import_nsys(folder_ / "made.sqlite", options);
  ASSERT_TRUE(timeline);
  EXPECT_GT(timeline->ranges.size(), 20'000U);
  EXPECT_LT(timeline->ranges.size(), 50'000U);
  EXPECT_EQ(timeline->losses.faults.at("import stopped before the end of the file"), 1U);
}

// However little of the file is there: what can be read is kept and the loss is told, or one line says why not.
TEST(Nsys, ACutFileGivesWhatIsThere) {
  const fs::path path = test::shared_data(kTwoGpus);
  STROBE_REQUIRE_DATA(path);
  const ScratchFolder folder;
  const auto whole = read_file(path);
  ASSERT_TRUE(whole);
  size_t previous = 0, readable = 0;
  for (size_t part = 1; part < 20; ++part) {
    ASSERT_TRUE(write_file(folder / "cut", std::string_view(*whole).substr(0, whole->size() * part / 20)));
    const auto timeline = import_nsys(folder / "cut", {});
    if (!timeline) {
      EXPECT_EQ(timeline.error().kind(), ErrorKind::kBadData);
      continue;
    }
    ++readable;
    EXPECT_THAT(timeline->losses.faults, testing::Not(IsEmpty())) << part;
    EXPECT_GE(timeline->ranges.size(), previous);
    previous = timeline->ranges.size();
  }
  EXPECT_GT(readable, 10U);
  EXPECT_GT(previous, 20'000U);
}

TEST(Nsys, ADamagedPageCostsItsRowsOnly) {
  const fs::path path = test::shared_data(kTwoGpus);
  STROBE_REQUIRE_DATA(path);
  const ScratchFolder folder;
  Sql sql(in_place(path), kInPlace);
  const int64_t page_size = std::stoll(sql.rows("PRAGMA page_size").at(0));
  const size_t all = import(path).ranges.size();
  auto bytes = read_file(path);
  ASSERT_TRUE(bytes);
  // A leaf in the middle of the longest table: those that begin with the text of an event there.
  const size_t at = bytes->find("aten::", bytes->size() / 2);
  ASSERT_NE(at, std::string::npos);
  const size_t page = at / static_cast<size_t>(page_size) * static_cast<size_t>(page_size);
  std::fill_n(bytes->begin() + static_cast<std::ptrdiff_t>(page), page_size, '\x55');
  ASSERT_TRUE(write_file(folder / "damaged", *bytes));
  const Timeline timeline = import(folder / "damaged");
  EXPECT_LT(timeline.ranges.size(), all);
  EXPECT_GT(timeline.ranges.size(), all - 200);
  EXPECT_EQ(timeline.losses.faults.at("rows of NVTX_EVENTS that could not be read (at least)"),
            all - timeline.ranges.size());
}

// Real traces through our own export: what it has a place for comes back.
TEST(Nsys, AnExportIsImportedAsItWas) {
  for (const char* file : {kTwoGpus, kGraphs}) {
    const fs::path path = test::shared_data(file);
    STROBE_REQUIRE_DATA(path);
    const ScratchFolder folder;
    const Timeline before = import(path);
    const auto written = trace::write_nsys(before, folder / "export.sqlite");
    ASSERT_TRUE(written) << written.error().to_string();
    const Timeline after = import(folder / "export.sqlite");
    for (int kind = 0; kind <= static_cast<int>(RangeKind::kGraph); ++kind) {
      // Operators become annotations of the same name.
      if (static_cast<RangeKind>(kind) == RangeKind::kOperator) continue;
      const auto kinds =
          kind == 0 ? std::set{RangeKind::kAnnotation, RangeKind::kOperator} : std::set{static_cast<RangeKind>(kind)};
      EXPECT_EQ(sums(before, kinds), sums(after, kinds)) << kind;
    }
    EXPECT_EQ(before.utc_start_ns, after.utc_start_ns);
    EXPECT_EQ(before.duration_ns, after.duration_ns);
    const auto describe = [](const Timeline& timeline) {
      std::vector<std::string> rows;
      for (const DeviceOp& op : timeline.device_ops) {
        const auto row = static_cast<size_t>(op.range);
        const Lane& at = lane(timeline, op.range);
        std::ostringstream out;
        out << timeline.ranges.start_ns[row] << ' ' << name(timeline, row) << ' ' << at.pid << ' ' << at.device << ' '
            << at.context << ' ' << at.tid << ' ' << op.correlation << ' ' << op.bytes << ' ' << int{op.copy_kind}
            << ' ' << int{op.source_kind} << ' ' << int{op.target_kind} << ' ' << int{op.sync_type} << ' ' << op.grid[0]
            << ' ' << op.block[0] << ' ' << op.registers << ' ' << op.static_shared << ' ' << op.dynamic_shared << ' '
            << (op.launch == trace::kNone ? -1 : timeline.ranges.start_ns[static_cast<size_t>(op.launch)]);
        rows.push_back(out.str());
      }
      return rows;
    };
    EXPECT_EQ(describe(before), describe(after));
    const auto hardware = [](const Timeline& timeline) {
      std::map<std::string, std::string> facts;
      for (const auto& [key, value] : timeline.facts)
        if (key.starts_with("gpu.")) facts[key] = value;
      return facts;
    };
    EXPECT_EQ(hardware(before), hardware(after));
  }
}

// Any timeline goes through: names, times and calls of everything that an export has a place for.
TEST(Nsys, RandomTimelinesComeBack) {
  const ScratchFolder folder;
  for (uint32_t seed = 0; seed < 20; ++seed) {
    Timeline before = test::random_timeline(seed, 200);
    ASSERT_TRUE(trace::write_nsys(before, folder / "export.sqlite"));
    const Timeline after = import(folder / "export.sqlite");
    for (const RangeKind kind : {RangeKind::kKernel, RangeKind::kCopy, RangeKind::kSet, RangeKind::kGraph}) {
      EXPECT_EQ(count(before, kind), count(after, kind)) << seed;
    }
    EXPECT_EQ(sums(before, {RangeKind::kKernel}), sums(after, {RangeKind::kKernel})) << seed;
    EXPECT_EQ(before.api_calls.size(), after.api_calls.size()) << seed;
  }
}

}  // namespace
}  // namespace strobe::importers
