// Links: strobe_importers strobe_trace
// The importer of Nsight Systems exports: any bytes give a timeline that holds together, or an error. Input that starts
// with "SQL" is a script that damages a small valid export, "BIN" patches its bytes, "CUT" cuts it; anything else is a
// file.
#include <fcntl.h>
#include <sqlite3.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "importers/nsys.h"
#include "trace/nsys_export.h"

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
    check(ranges.start_ns[row] >= 0 && ranges.end_ns[row] <= timeline.duration_ns, "a range lies outside the trace");
    check(ranges.parent[row] >= trace::kNone && ranges.parent[row] < i, "a parent does not stand before its child");
    check(ranges.lane[row] >= 0 && ranges.lane[row] < lanes, "a lane is not there");
    check(ranges.name[row] < timeline.strings.size(), "a name is not there");
  }
  for (const int32_t range : timeline.arguments.range) check(range >= 0 && range < count, "an argument's range");
  for (const trace::DeviceOp& op : timeline.device_ops) {
    check(op.range >= 0 && op.range < count, "a device operation's range");
    check(op.launch >= trace::kNone && op.launch < count, "a device operation's launch");
    check(is_device(ranges.kind[static_cast<size_t>(op.range)]), "a device operation's kind");
  }
  for (const trace::ApiCall& call : timeline.api_calls) check(call.range >= 0 && call.range < count, "a call's range");
  for (const int32_t lane : timeline.marks.lane) check(lane >= 0 && lane < lanes, "a mark's lane");
}

const std::string& valid_export() {
  static const std::string bytes = [] {
    trace::Timeline timeline;
    auto& strings = timeline.strings;
    timeline.processes.push_back({1, strings.intern("python3")});
    timeline.lanes.push_back({trace::Lane::Kind::kThread, 1, 1, strings.intern("main")});
    timeline.lanes.push_back({trace::Lane::Kind::kStream, 1, 7, strings.intern("stream"), 0, 1});
    const auto range = [&](const char* name, int32_t lane, int64_t start, trace::RangeKind kind) {
      timeline.ranges.name.push_back(strings.intern(name));
      timeline.ranges.lane.push_back(lane);
      timeline.ranges.start_ns.push_back(start);
      timeline.ranges.end_ns.push_back(start + 50);
      timeline.ranges.frame.push_back(trace::kNoFrame);
      timeline.ranges.is_async.push_back(0);
      timeline.ranges.open.push_back(0);
      timeline.ranges.kind.push_back(kind);
      const auto row = static_cast<int32_t>(timeline.ranges.size() - 1);
      if (kind == trace::RangeKind::kApi) timeline.api_calls.push_back({row, start / 10});
      if (!is_device(kind)) return;
      trace::DeviceOp& op = timeline.device_ops.emplace_back();
      op.range = row;
      op.correlation = start / 10 - 1;
      op.sync_type = kind == trace::RangeKind::kSync ? 2 : 0;
      op.sync_correlation = kind == trace::RangeKind::kSync ? 3 : 0;
    };
    range("aten::add, seq = 7, op_id = 12, sizes = [[2, 3]]", 0, 0, trace::RangeKind::kAnnotation);
    for (int kind = 2; kind <= static_cast<int>(trace::RangeKind::kGraph); ++kind) {
      range("cudaLaunchKernel_v7000", 0, 100 * kind, trace::RangeKind::kApi);
      const auto what = static_cast<trace::RangeKind>(kind);
      range("gemm", is_device(what) ? 1 : 0, 100 * kind + 10, what);
    }
    timeline.marks.time_ns = {70};
    timeline.marks.name = {strings.intern("drop")};
    timeline.marks.lane = {0};
    timeline.marks.frame = {trace::kNoFrame};
    timeline.facts = {{"gpu.0.name", "GPU"}, {"gpu.of.1.0", "0"}};
    timeline.losses.faults["unmatched pop"] = 1;
    timeline.duration_ns = 1000;
    timeline.finish();
    char name[] = "/tmp/strobe-fuzz-XXXXXX";
    ::close(::mkstemp(name));
    check(trace::write_nsys(timeline, name).has_value(), "cannot write the seed");
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
  std::string file = valid_export();
  for (size_t i = 0; i + 4 <= patches.size(); i += 4) {
    const auto byte = [&](size_t k) { return static_cast<size_t>(static_cast<uint8_t>(patches[i + k])); };
    file[(byte(0) << 16 | byte(1) << 8 | byte(2)) % file.size()] = patches[i + 3];
  }
  return file;
}

std::string cut(std::string_view where) {
  size_t at = 0;
  for (const char c : where.substr(0, 3)) at = at << 8 | static_cast<uint8_t>(c);
  return valid_export().substr(0, at % valid_export().size());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const bool is_script = input.starts_with("SQL");
  // SQLite follows a link such as /proc/self/fd/3 to its target, which a file in memory has not; hence a real file.
  const std::string path = "/dev/shm/strobe-fuzz-" + std::to_string(::getpid());
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  check(fd >= 0, "cannot make a file in /dev/shm");
  const std::string file = is_script                  ? valid_export()
                           : input.starts_with("BIN") ? patched(input.substr(3))
                           : input.starts_with("CUT") ? cut(input.substr(3))
                                                      : std::string(input);
  check(::write(fd, file.data(), file.size()) == static_cast<ssize_t>(file.size()), "cannot write the file");
  if (is_script) damage(path, std::string(input.substr(3)));
  if (const auto timeline = importers::import_nsys(path, {})) check_timeline(*timeline);
  ::close(fd);
  ::unlink(path.c_str());
  return 0;
}
