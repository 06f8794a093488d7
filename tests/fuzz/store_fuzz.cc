// Links: strobe_trace strobe_analyze
// The trace reader: any bytes give a timeline that holds together, or an error. Input that starts with "SQL" is a
// script that damages a small valid trace (with it the fuzzer gets past SQLite to our own checks); anything else is a
// file.
#include <fcntl.h>
#include <sqlite3.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "analyze/layers.h"
#include "analyze/pipeline.h"
#include "trace/store.h"

namespace {

using namespace strobe;

void check(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "broken timeline: %s\n", what);
  std::abort();
}

// What every analysis relies on.
void check_timeline(const trace::Timeline& timeline) {
  const trace::Ranges& ranges = timeline.ranges;
  const auto count = static_cast<int32_t>(ranges.size());
  const auto lanes = static_cast<int32_t>(timeline.lanes.size());
  for (int32_t i = 0; i < count; ++i) {
    const auto row = static_cast<size_t>(i);
    check(ranges.end_ns[row] >= ranges.start_ns[row], "a range ends before it starts");
    check(ranges.parent[row] >= trace::kNone && ranges.parent[row] < i, "a parent does not stand before its child");
    check(ranges.lane[row] >= 0 && ranges.lane[row] < lanes, "a lane is not there");
    check(ranges.name[row] < timeline.strings.size(), "a name is not there");
  }
  for (const int32_t range : timeline.arguments.range) check(range >= 0 && range < count, "an argument's range");
  for (const int32_t range : timeline.flows.from_range) check(range >= trace::kNone && range < count, "a flow's range");
  for (const int32_t range : timeline.flows.to_range) check(range >= trace::kNone && range < count, "a flow's range");
  for (const trace::DeviceOp& op : timeline.device_ops) {
    check(op.range >= 0 && op.range < count, "a device operation's range");
    check(op.launch >= trace::kNone && op.launch < count, "a device operation's launch");
  }
  for (const trace::ApiCall& call : timeline.api_calls) check(call.range >= 0 && call.range < count, "a call's range");
  for (const int32_t lane : timeline.marks.lane) check(lane >= 0 && lane < lanes, "a mark's lane");
  for (const Table& table : timeline.tables)
    for (const auto& row : table.rows()) check(row.size() == table.columns().size(), "a table's row");
  for (const trace::NetworkKernel& kernel : timeline.kernels)
    for (const int32_t layer : kernel.layers)
      check(layer >= 0 && static_cast<size_t>(layer) < timeline.layers.size(), "a kernel's layer");
}

const std::string& valid_trace() {
  static const std::string bytes = [] {
    trace::Timeline timeline;
    auto& strings = timeline.strings;
    timeline.processes.push_back({1, strings.intern("strobe")});
    timeline.lanes.push_back({trace::Lane::Kind::kThread, 1, 1, strings.intern("main")});
    timeline.lanes.push_back({trace::Lane::Kind::kStream, 1, 7, strings.intern("stream")});
    const auto range = [&](const char* name, int32_t lane, int64_t start, int64_t end, int64_t frame) {
      timeline.ranges.name.push_back(strings.intern(name));
      timeline.ranges.lane.push_back(lane);
      timeline.ranges.start_ns.push_back(start);
      timeline.ranges.end_ns.push_back(end);
      timeline.ranges.frame.push_back(frame);
      timeline.ranges.is_async.push_back(0);
      timeline.ranges.open.push_back(0);
      timeline.ranges.kind.push_back(trace::RangeKind::kAnnotation);
    };
    range("run", 0, 0, 100, trace::kNoFrame);
    range("read", 0, 10, 20, 0);
    range("infer", 0, 20, 60, 0);
    range("gemm", 1, 30, 50, 0);
    range("alone", 0, 200, 300, trace::kNoFrame);
    range("cudaLaunchKernel", 0, 25, 28, trace::kNoFrame);
    timeline.ranges.kind[3] = trace::RangeKind::kKernel;
    timeline.ranges.kind[5] = trace::RangeKind::kApi;
    timeline.device_ops.emplace_back().range = 3;
    timeline.device_ops[0].correlation = 9;
    timeline.api_calls.push_back({5, 9});
    timeline.tables.emplace_back("summary", std::vector<Column>{{"name", "", 0}, {"calls", "", 0}});
    timeline.tables[0].add_row({"gemm", int64_t{3}});
    timeline.tables[0].notes = {"a note"};
    timeline.arguments.range = {4, 4};
    timeline.arguments.key = {strings.intern("stage"), strings.intern("frames")};
    timeline.arguments.value.emplace_back(strings.intern("infer"));
    timeline.arguments.value.emplace_back(int64_t{7});
    timeline.marks.time_ns = {70};
    timeline.marks.name = {strings.intern("drop")};
    timeline.marks.lane = {0};
    timeline.marks.frame = {3};
    timeline.flows.name = {strings.intern("queue")};
    timeline.flows.from_ns = {15};
    timeline.flows.to_ns = {25};
    timeline.flows.from_range = timeline.flows.to_range = {trace::kNone};
    timeline.flows.from_lane = timeline.flows.to_lane = {0};
    timeline.counters.time_ns = {5};
    timeline.counters.name = {strings.intern("depth")};
    timeline.counters.pid = {1};
    timeline.counters.value = {2};
    timeline.layers.push_back({strings.intern("conv"), 0, 0, 1, 2, 3});
    timeline.layers.push_back({strings.intern("relu"), 0, 0, 0, 2, 3});
    timeline.kernels.push_back({strings.intern("k"), 0, 0, {0, 1}, {10, 20}});
    timeline.facts = {{"pipeline.stages", "read,infer"}, {"cores", "2"}, {"engine", "fake"}};
    timeline.losses.faults["unmatched pop"] = 1;
    timeline.duration_ns = 300;
    timeline.finish();
    char name[] = "/tmp/strobe-fuzz-XXXXXX";
    ::close(::mkstemp(name));
    check(trace::write_store(timeline, name).has_value(), "cannot write the seed");
    std::FILE* file = std::fopen(name, "rb");
    std::string text(1 << 20, '\0');
    text.resize(std::fread(text.data(), 1, text.size(), file));
    std::fclose(file);
    ::unlink(name);
    return text;
  }();
  return bytes;
}

void damage(const std::string& path, const std::string& script) {
  sqlite3* database = nullptr;
  if (sqlite3_open_v2(path.c_str(), &database, SQLITE_OPEN_READWRITE, nullptr) == SQLITE_OK) {
    sqlite3_limit(database, SQLITE_LIMIT_LENGTH, 1 << 16);
    sqlite3_limit(database, SQLITE_LIMIT_ATTACHED, 0);
    int budget = 200;  // the script itself may not run for long
    sqlite3_progress_handler(
        database, 1000, [](void* left) { return --*static_cast<int*>(left) < 0 ? 1 : 0; }, &budget);
    sqlite3_exec(database, "PRAGMA journal_mode = OFF", nullptr, nullptr, nullptr);
    sqlite3_exec(database, script.c_str(), nullptr, nullptr, nullptr);
  }
  sqlite3_close(database);
}

std::string patched(std::string_view patches) {
  std::string file = valid_trace();
  for (size_t i = 0; i + 4 <= patches.size(); i += 4) {
    const auto byte = [&](size_t k) { return static_cast<size_t>(static_cast<uint8_t>(patches[i + k])); };
    file[(byte(0) << 16 | byte(1) << 8 | byte(2)) % file.size()] = patches[i + 3];
  }
  return file;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const bool is_script = input.starts_with("SQL");
  // SQLite follows a link such as /proc/self/fd/3 to its target, which a file in memory has not; hence a real file.
  const std::string path = "/dev/shm/strobe-fuzz-" + std::to_string(::getpid());
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  check(fd >= 0, "cannot make a file in /dev/shm");
  const std::string file = is_script                  ? valid_trace()
                           : input.starts_with("BIN") ? patched(input.substr(3))
                                                      : std::string(input);
  check(::write(fd, file.data(), file.size()) == static_cast<ssize_t>(file.size()), "cannot write the file");
  if (is_script) damage(path, std::string(input.substr(3)));
  if (const auto timeline = trace::read_store(path)) {
    check_timeline(*timeline);
    analyze::stage_latency(*timeline);
    analyze::frame_latency(*timeline);
    analyze::throughput(*timeline);
    analyze::stage_limits(*timeline);
    analyze::layers(*timeline);
    analyze::fusion(*timeline);
  }
  ::close(fd);
  ::unlink(path.c_str());
  return 0;
}
