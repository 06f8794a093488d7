#include "importers/kineto.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <map>
#include <random>
#include <set>
#include <sstream>

#include "importers/importer.h"
#include "support/test_data.h"

namespace strobe::importers {
namespace {

using trace::RangeKind;
using trace::Timeline;

Timeline read(std::string_view text, size_t block = ByteStream::kBlockBytes, const char* format = "") {
  const auto stream = ByteStream::of_text(text, block);
  auto timeline = import_kineto(*stream, {.format = format, .on_progress = {}});
  EXPECT_TRUE(timeline) << (timeline ? "" : timeline.error().to_string());
  return timeline ? std::move(*timeline) : Timeline{};
}

std::string slurp(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string inflated(const std::filesystem::path& path) {
  auto stream = ByteStream::open(path);
  return *read_all(**stream, size_t{1} << 30);
}

int32_t range_named(const Timeline& timeline, std::string_view name) {
  for (size_t i = 0; i < timeline.ranges.size(); ++i)
    if (timeline.strings[timeline.ranges.name[i]] == name) return static_cast<int32_t>(i);
  return trace::kNone;
}

std::map<std::string, std::string> arguments_of(const Timeline& timeline, int32_t range) {
  std::map<std::string, std::string> found;
  for (size_t i = 0; i < timeline.arguments.size(); ++i) {
    if (timeline.arguments.range[i] != range) continue;
    std::ostringstream text;
    if (const auto* id = std::get_if<trace::StringId>(&timeline.arguments.value[i])) {
      text << timeline.strings[*id];
    } else if (const auto* whole = std::get_if<int64_t>(&timeline.arguments.value[i])) {
      text << *whole;
    } else {
      text << std::get<double>(timeline.arguments.value[i]);
    }
    found[std::string(timeline.strings[timeline.arguments.key[i]])] = text.str();
  }
  return found;
}

// What Python's json module finds in the same file.
std::map<std::string, int64_t> truth(const std::filesystem::path& path) {
  const std::string script = std::string(STROBE_IMPORTERS_TESTS) + "/kineto_truth.py";
  FILE* pipe = ::popen(("python3 '" + script + "' '" + path.string() + "'").c_str(), "r");
  std::map<std::string, int64_t> numbers;
  std::array<char, 64> key{};
  long long number = 0;
  while (std::fscanf(pipe, "%63s %lld", key.data(), &number) == 2) numbers[key.data()] = number;
  ::pclose(pipe);
  return numbers;
}

std::map<std::string, int64_t> counted(const Timeline& timeline) {
  std::map<std::string, int64_t> numbers{{"steps", 0}};
  const auto& ranges = timeline.ranges;
  const std::map<RangeKind, std::string> kinds{{RangeKind::kKernel, "kernel"},
                                               {RangeKind::kCopy, "copy"},
                                               {RangeKind::kSet, "set"},
                                               {RangeKind::kSync, "sync"},
                                               {RangeKind::kApi, "api"}};
  for (const auto& [kind, name] : kinds) numbers[name] = numbers[name + "_ns"] = 0;
  std::set<trace::StringId> names;
  numbers["total_ns"] = 0;
  for (size_t i = 0; i < ranges.size(); ++i) {
    const int64_t duration = ranges.end_ns[i] - ranges.start_ns[i];
    numbers["total_ns"] += duration;
    names.insert(ranges.name[i]);
    if (const auto kind = kinds.find(ranges.kind[i]); kind != kinds.end()) {
      ++numbers[kind->second];
      numbers[kind->second + "_ns"] += duration;
    }
    const auto& lane = timeline.lanes[static_cast<size_t>(ranges.lane[i])];
    const bool is_step = timeline.strings[ranges.name[i]].starts_with("ProfilerStep#");
    if (is_step) {
      EXPECT_GE(ranges.frame[i], 0);
    }
    if (is_step && lane.kind == trace::Lane::Kind::kThread) ++numbers["steps"];
  }
  numbers["complete"] = static_cast<int64_t>(ranges.size());
  numbers["names"] = static_cast<int64_t>(names.size());
  for (const char* key : {"correlations", "launched", "copied_bytes", "grid", "registers", "shared"}) numbers[key] = 0;
  for (const trace::DeviceOp& op : timeline.device_ops) {
    const RangeKind kind = ranges.kind[static_cast<size_t>(op.range)];
    numbers["correlations"] += op.correlation;
    if (op.launch != trace::kNone) {
      ++numbers["launched"];
      EXPECT_EQ(ranges.kind[static_cast<size_t>(op.launch)], RangeKind::kApi);
    }
    if (kind == RangeKind::kCopy && op.bytes > 0) numbers["copied_bytes"] += op.bytes;
    if (kind != RangeKind::kKernel) continue;
    for (const uint32_t size : op.grid) numbers["grid"] += size;
    numbers["registers"] += std::max(op.registers, 0);
    numbers["shared"] += std::max(op.dynamic_shared, 0);
  }
  return numbers;
}

TEST(KinetoReal, EveryFileHoldsWhatPythonFindsInIt) {
  const auto folder = test::shared_data("traces/kineto");
  STROBE_REQUIRE_DATA(folder);
  if (std::system("python3 -c 'import json' >/dev/null 2>&1") != 0) GTEST_SKIP() << "python3 is absent";
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const auto& path = entry.path();
    const bool is_trace = path.extension() == ".gz" || path.filename() == "backward_thread.json";
    if (!is_trace) continue;
    SCOPED_TRACE(path.filename());
    auto timeline = import_trace(path, {});
    ASSERT_TRUE(timeline) << timeline.error().to_string();
    EXPECT_THAT(timeline->losses.faults, testing::IsEmpty());
    EXPECT_EQ(timeline->facts.at("import.format"), "kineto");
    EXPECT_EQ(timeline->facts.at("import.source"), path.filename());
    auto expected = truth(path);
    // Sums of absolute starts: exact to the nanosecond whatever time 0 is.
    int64_t starts = 0;
    for (const int64_t start : timeline->ranges.start_ns) starts += start;
    const auto count = static_cast<int64_t>(timeline->ranges.size());
    EXPECT_EQ((starts - expected.at("start_sum_ns")) % count, 0);
    expected.erase("start_sum_ns");
    EXPECT_EQ(counted(*timeline), expected);
    ++files;
  }
  EXPECT_GE(files, 19);
}

TEST(KinetoReal, PlainAndCompressedAndAnyBlockSizeAreTheSame) {
  const auto path = test::shared_data("traces/kineto/cp_simple_add.json.gz");
  STROBE_REQUIRE_DATA(path);
  const std::string text = inflated(path), packed = slurp(path);
  const auto expected = counted(read(text));
  EXPECT_EQ(expected.at("complete"), 837);
  EXPECT_EQ(counted(read(packed)), expected);
  for (const size_t block : {17U, 1000U, 4096U}) EXPECT_EQ(counted(read(text, block)), expected) << block;
}

TEST(KinetoReal, ACutFileKeepsWhatStandsBeforeTheCut) {
  const auto path = test::shared_data("traces/kineto/cp_simple_add.json.gz");
  STROBE_REQUIRE_DATA(path);
  const std::string text = inflated(path);
  const size_t first = text.find("\"ph\""), last = text.rfind("\"ph\"");
  std::mt19937 random(7);
  for (int i = 0; i < 50; ++i) {
    const size_t cut = std::uniform_int_distribution<size_t>(first + 2000, last)(random);
    SCOPED_TRACE(cut);
    const Timeline timeline = read(std::string_view(text).substr(0, cut));
    // Complete events before the cut: one that began earlier has its closing brace when the next has begun.
    size_t complete = 0;
    for (size_t at = text.find("\"ph\": \"X\""); at < cut; at = text.find("\"ph\": \"X\"", at + 1)) ++complete;
    EXPECT_LE(timeline.ranges.size(), complete);
    EXPECT_GE(timeline.ranges.size() + 2, complete);
    ASSERT_EQ(timeline.losses.faults.size(), 1U);
    EXPECT_THAT(timeline.losses.faults.begin()->first, testing::StartsWith("the JSON breaks off at byte "));
  }
}

TEST(KinetoReal, AHoleCostsTheEventsAroundItOnly) {
  const auto path = test::shared_data("traces/kineto/cp_simple_add.json.gz");
  STROBE_REQUIRE_DATA(path);
  const std::string text = inflated(path);
  const size_t first = text.find("\"ph\"") + 1000, last = text.rfind("\"ph\"") - 1000;
  std::mt19937 random(11);
  for (int i = 0; i < 50; ++i) {
    const size_t at = std::uniform_int_distribution<size_t>(first, last)(random);
    SCOPED_TRACE(at);
    std::string torn = text;
    const char filling = i % 2 ? '\0' : '"';
    torn.replace(at, 200, 200, filling);
    const Timeline timeline = read(torn, 4096);
    EXPECT_GE(timeline.ranges.size(), 837U - 4);
    EXPECT_LT(timeline.ranges.size() + timeline.flows.size(), 838U);
    // Zeros inside one long name are nothing that structure could tell.
    if (filling == '"') {
      EXPECT_FALSE(timeline.losses.faults.empty());
    }
  }
}

TEST(KinetoReal, ACutArchiveSaysWhere) {
  const auto path = test::shared_data("traces/kineto/ns_resolution_v100_rank0.json.gz");
  STROBE_REQUIRE_DATA(path);
  test::ScratchFolder scratch;
  const std::string packed = slurp(path);
  std::ofstream(scratch / "cut.json.gz", std::ios::binary) << packed.substr(0, packed.size() / 2);
  const auto timeline = import_trace(scratch / "cut.json.gz", {});
  ASSERT_TRUE(timeline) << timeline.error().to_string();
  EXPECT_GT(timeline->ranges.size(), 10000U);
  EXPECT_TRUE(timeline->losses.faults.contains("the gzip data breaks off after byte " +
                                               std::to_string(packed.size() / 2) + " of the file"));
}

// The inflater gives other bytes before it sees a fault when it is offered less room: the size of blocks must not show.
TEST(KinetoReal, ADamagedArchiveInflatesToTheSameInBlocksOfAnySize) {
  const auto path = test::shared_data("traces/kineto/cp_simple_add.json.gz");
  STROBE_REQUIRE_DATA(path);
  const std::string packed = slurp(path);
  const auto inflate = [](std::string_view bytes, size_t block_bytes) {
    const auto stream = ByteStream::of_text(bytes, block_bytes);
    std::string text;
    while (stream->refill(stream->end())) text.append(stream->begin(), stream->end());
    return text + "|" + stream->damage();
  };
  std::mt19937 random(7);
  size_t damaged = 0;
  for (int round = 0; round < 100; ++round) {
    std::string bytes = packed;
    bytes[10 + random() % (bytes.size() - 10)] ^= static_cast<char>(1 + random() % 255);
    const std::string whole = inflate(bytes, ByteStream::kBlockBytes);
    damaged += whole.ends_with("|") ? 0 : 1;
    for (const size_t block_bytes : {size_t{61}, size_t{4096}, size_t{100000}})
      ASSERT_EQ(inflate(bytes, block_bytes), whole) << round << " " << block_bytes;
  }
  EXPECT_GT(damaged, 50U);
}

TEST(KinetoReal, TimesAreExactToTheNanosecond) {
  const auto path = test::shared_data("traces/kineto/ns_resolution_v100_rank0.json.gz");
  STROBE_REQUIRE_DATA(path);
  const auto timeline = import_trace(path, {});
  ASSERT_TRUE(timeline);
  // The file's first lines: "ts": 1712195495519689.047, "dur": 63.813; an absolute time, so it is the wall clock.
  const auto& ranges = timeline->ranges;
  const auto is_it = [&](size_t i) {
    return timeline->utc_start_ns + ranges.start_ns[i] == 1712195495519689047 &&
           ranges.end_ns[i] - ranges.start_ns[i] == 63813;
  };
  size_t found = 0;
  for (size_t i = 0; i < ranges.size(); ++i) found += is_it(i) ? 1 : 0;
  EXPECT_EQ(found, 1U);
}

TEST(Kineto, KernelsCopiesAndSynchronisationHaveTheirColumns) {
  const Timeline timeline =
      read(R"json({"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "A100", "numSms": 108}],
    "distributedInfo": {"rank": 3, "pg_config": [{"a": 1}]},
    "traceEvents": [
    {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 70, "tid": 71, "ts": 10.5, "dur": 2,
     "args": {"External id": 4, "cbid": 211, "correlation": 9}},
    {"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 20.001, "dur": 5.25, "args": {"device": 0,
     "context": 1, "stream": 7, "correlation": 9, "registers per thread": 240, "shared memory": 98304,
     "grid": [32, 1, 2], "block": [128, 1, 1], "est. achieved occupancy %": 12, "blocks per SM": inf}},
    {"ph": "X", "cat": "gpu_memcpy", "name": "Memcpy HtoD (Pageable -> Device)", "pid": 0, "tid": 7, "ts": 30, "dur": 1,
     "args": {"device": 0, "stream": 7, "bytes": 128}},
    {"ph": "X", "cat": "cuda_sync", "name": "Event Sync", "pid": 0, "tid": -1, "ts": 31, "dur": 1, "args":
     {"cuda_sync_kind": "Event Sync", "wait_on_stream": 7, "wait_on_cuda_event_record_corr_id": 1533,
      "stream": 4294967295, "device": 0}}
    ], "baseTimeNanoseconds": 1700000000000000000})json");
  EXPECT_THAT(timeline.losses.faults, testing::IsEmpty());
  EXPECT_EQ(timeline.facts.at("device.0.name"), "A100");
  EXPECT_EQ(timeline.facts.at("distributed.rank"), "3");
  EXPECT_EQ(timeline.utc_start_ns, 1700000000000010500);
  ASSERT_EQ(timeline.device_ops.size(), 3U);
  const trace::DeviceOp& kernel = timeline.device_ops[0];
  EXPECT_EQ(timeline.ranges.start_ns[1], 9501);
  EXPECT_EQ(timeline.ranges.end_ns[1], 14751);
  EXPECT_EQ(kernel.launch, 0);
  EXPECT_EQ(kernel.registers, 240);
  EXPECT_EQ(kernel.static_shared, -1);
  EXPECT_EQ(kernel.dynamic_shared, 98304);
  EXPECT_THAT(kernel.grid, testing::ElementsAre(32, 1, 2));
  EXPECT_THAT(kernel.block, testing::ElementsAre(128, 1, 1));
  EXPECT_THAT(arguments_of(timeline, 1), testing::ElementsAre(testing::Pair("est. achieved occupancy %", "12")));
  const trace::DeviceOp& copy = timeline.device_ops[1];
  EXPECT_EQ(copy.bytes, 128);
  EXPECT_EQ(copy.copy_kind, 1);
  EXPECT_EQ(copy.source_kind, 0);
  EXPECT_EQ(copy.target_kind, 2);
  const trace::DeviceOp& sync = timeline.device_ops[2];
  EXPECT_EQ(sync.sync_type, 1);
  EXPECT_EQ(sync.sync_stream, 7);
  EXPECT_EQ(sync.sync_correlation, 1533);
  const auto& lane = timeline.lanes[static_cast<size_t>(timeline.ranges.lane[1])];
  EXPECT_EQ(lane.kind, trace::Lane::Kind::kStream);
  EXPECT_EQ(lane.pid, 70) << "a stream belongs to the process that launches on it";
  EXPECT_EQ(lane.tid, 7);
  EXPECT_EQ(lane.device, 0);
  EXPECT_EQ(lane.context, 1);
}

TEST(Chrome, BareArrayWithoutItsBracket) {
  const std::string_view text = R"([ {"ph":"B","name":"a","pid":1,"tid":"main","ts":1},
    {"ph":"B","name":"b","pid":1,"tid":"main","ts":"2"},{"ph":"E","pid":1,"tid":"main","ts":3e0},
    {"ph":"E","pid":1,"tid":"main","ts":10.25,"args":{"result":true}},
    {"ph":"M","name":"process_name","pid":1,"args":{"name":"worker \"x\""}},)";
  const Timeline timeline = read(text);
  EXPECT_THAT(timeline.losses.faults, testing::IsEmpty());
  EXPECT_EQ(timeline.facts.at("import.format"), "chrome");
  ASSERT_EQ(timeline.ranges.size(), 2U);
  EXPECT_EQ(timeline.ranges.end_ns[0], 9250);
  EXPECT_EQ(timeline.ranges.start_ns[1], 1000);
  EXPECT_EQ(timeline.ranges.end_ns[1], 2000);
  EXPECT_EQ(timeline.ranges.parent[1], 0);
  EXPECT_EQ(arguments_of(timeline, 0).at("result"), "1");
  EXPECT_EQ(timeline.strings[timeline.lanes[0].name], "main");
  EXPECT_EQ(timeline.strings[timeline.processes[0].name], "worker \"x\"");
}

TEST(Chrome, AsynchronousRangesFlowsMarksAndCounters) {
  const Timeline timeline = read(R"({"traceEvents":[
    {"ph":"b","cat":"net","id":"0x1","name":"request","pid":1,"tid":1,"ts":1},
    {"ph":"X","name":"from","pid":1,"tid":1,"ts":2,"dur":4},{"ph":"X","name":"to","pid":1,"tid":2,"ts":10,"dur":4},
    {"ph":"f","cat":"c","name":"arrow","id":5,"pid":1,"tid":2,"ts":11,"bp":"e"},
    {"ph":"s","cat":"c","name":"arrow","id":5,"pid":1,"tid":1,"ts":3},
    {"ph":"s","cat":"c","name":"arrow","id":6,"pid":1,"tid":1,"ts":4},
    {"ph":"i","s":"t","name":"now","pid":1,"tid":2,"ts":12},
    {"ph":"C","name":"memory","pid":1,"ts":13,"args":{"used":1.5,"free":2}},
    {"ph":"e","cat":"net","id":"0x1","name":"request","pid":1,"tid":2,"ts":20},
    {"ph":"X","name":"no time","pid":1,"tid":1}]})");
  EXPECT_THAT(timeline.losses.faults, testing::ElementsAre(testing::Pair("event without a time that can be read", 1),
                                                           testing::Pair("flow that never arrived", 1)));
  const auto request = static_cast<size_t>(range_named(timeline, "request"));
  EXPECT_EQ(timeline.ranges.is_async[request], 1);
  EXPECT_EQ(timeline.ranges.end_ns[request], 19000);
  ASSERT_EQ(timeline.flows.size(), 1U);
  EXPECT_EQ(timeline.flows.from_range[0], range_named(timeline, "from"));
  EXPECT_EQ(timeline.flows.to_range[0], range_named(timeline, "to"));
  ASSERT_EQ(timeline.marks.size(), 1U);
  EXPECT_EQ(timeline.marks.time_ns[0], 11000);
  ASSERT_EQ(timeline.counters.size(), 2U);
  EXPECT_EQ(timeline.strings[timeline.counters.name[0]], "memory.used");
  EXPECT_EQ(timeline.counters.value[0], 1.5);
}

TEST(Chrome, ForcedFormatGivesCategoriesNoMeaning) {
  const std::string_view text =
      R"([{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":1,"dur":2,"args":{"stream":7,"grid":[1,2,3]}}])";
  EXPECT_EQ(read(text).ranges.kind[0], RangeKind::kKernel);
  const Timeline plain = read(text, ByteStream::kBlockBytes, "chrome");
  EXPECT_EQ(plain.ranges.kind[0], RangeKind::kAnnotation);
  EXPECT_EQ(arguments_of(plain, 0), (std::map<std::string, std::string>{{"grid", "[1,2,3]"}, {"stream", "7"}}));
}

TEST(Kineto, StreamsOfSeveralProcessesAreToldByTheirCorrelations) {
  const Timeline timeline = read(R"([
    {"ph":"X","cat":"cuda_runtime","name":"l","pid":1,"tid":1,"ts":1,"dur":1,"args":{"correlation":5}},
    {"ph":"X","cat":"cuda_runtime","name":"l","pid":2,"tid":2,"ts":2,"dur":1,"args":{"correlation":6}},
    {"ph":"X","cat":"kernel","name":"a","pid":0,"tid":7,"ts":5,"dur":1,"args":{"device":0,"stream":7,"correlation":5}},
    {"ph":"X","cat":"kernel","name":"b","pid":1,"tid":7,"ts":6,"dur":1,"args":{"device":1,"stream":7,"correlation":6}}])");
  ASSERT_EQ(timeline.device_ops.size(), 2U);
  EXPECT_EQ(timeline.device_ops[0].launch, 0);
  EXPECT_EQ(timeline.device_ops[1].launch, 1);
}

TEST(Kineto, MemoryEventsAreCounters) {
  const Timeline timeline =
      read(R"([{"ph":"i","cat":"cpu_instant_event","s":"t","name":"[memory]","pid":1,"tid":1,"ts":1,
    "args":{"Device Type":1,"Device Id":0,"Bytes":5,"Total Allocated":50,"Total Reserved":70}}])");
  ASSERT_EQ(timeline.counters.size(), 2U);
  EXPECT_EQ(timeline.strings[timeline.counters.name[0]], "memory allocated, GPU 0");
  EXPECT_EQ(timeline.counters.value[0], 50);
  EXPECT_EQ(timeline.counters.value[1], 70);
}

TEST(Kineto, NothingToReadIsOneLine) {
  for (const std::string_view text : {"{\"traceEvents\": 5}", "{", "[{", "{\"a\": [1, 2]}"}) {
    const auto stream = ByteStream::of_text(text);
    const auto timeline = import_kineto(*stream, {});
    ASSERT_FALSE(timeline) << text;
    EXPECT_EQ(timeline.error().kind(), ErrorKind::kBadData);
  }
  EXPECT_EQ(read("{\"traceEvents\": []}").ranges.size(), 0U) << "an empty trace is a trace";
}

TEST(Kineto, StopKeepsWhatWasRead) {
  std::string text = "[";
  for (int i = 0; i < 1000; ++i)
    text += R"({"ph":"X","name":"a","pid":1,"tid":1,"ts":)" + std::to_string(i * 9) + ",\"dur\":1},";
  std::atomic<bool> stop{false};
  ImportOptions options{.format = {}, .on_progress = {}, .stop = &stop};
  options.on_progress = [&stop](uint64_t done, uint64_t) { stop = done > 8000; };
  const auto stream = ByteStream::of_text(text, 1024);
  const auto timeline = import_kineto(*stream, options);
  ASSERT_TRUE(timeline);
  EXPECT_GT(timeline->ranges.size(), 50U);
  EXPECT_LT(timeline->ranges.size(), 500U);
  EXPECT_THAT(timeline->losses.faults.begin()->first, testing::StartsWith("import stopped by the user"));
}

}  // namespace
}  // namespace strobe::importers
