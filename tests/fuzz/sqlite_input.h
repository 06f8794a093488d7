// What the fuzz targets of SQLite files share: an input as a file, damage to a valid one, and what must hold of the
// timeline that comes out.
#pragma once

#include <fcntl.h>
#include <sqlite3.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "strobe/trace/timeline.h"

namespace strobe::fuzz {

inline void check(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "broken timeline: %s\n", what);
  std::abort();
}

// What every analysis relies on.
inline void check_timeline(const trace::Timeline& timeline) {
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

// The bytes of a file that `write` makes at the path that it is given; write returns whether it could.
template <typename Write>
std::string bytes_written_by(const Write& write) {
  char name[] = "/tmp/strobe-fuzz-XXXXXX";
  ::close(::mkstemp(name));
  check(write(name), "cannot write the seed");
  std::FILE* file = std::fopen(name, "rb");
  std::string text(1 << 20, '\0');
  text.resize(std::fread(text.data(), 1, text.size(), file));
  std::fclose(file);
  ::unlink(name);
  return text;
}

inline void damage(const std::string& path, const std::string& script) {
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

// Each four bytes of patches: a place (24 bits, modulo the size) and the byte to put there.
inline std::string patched(std::string file, std::string_view patches) {
  for (size_t i = 0; i + 4 <= patches.size(); i += 4) {
    const auto byte = [&](size_t k) { return static_cast<size_t>(static_cast<uint8_t>(patches[i + k])); };
    file[(byte(0) << 16 | byte(1) << 8 | byte(2)) % file.size()] = patches[i + 3];
  }
  return file;
}

inline std::string cut(const std::string& file, std::string_view where) {
  size_t at = 0;
  for (const char c : where.substr(0, 3)) at = at << 8 | static_cast<uint8_t>(c);
  return file.substr(0, at % file.size());
}

// Calls use(path) with the input as a file. "SQL": the rest is a script that damages the valid file, which gets the
// fuzzer past SQLite to our own checks; "BIN": it patches its bytes; "CUT": it cuts it; anything else is the file.
template <typename Use>
void with_input_file(std::string_view input, const std::string& valid, const Use& use) {
  const bool is_script = input.starts_with("SQL");
  // SQLite follows a link such as /proc/self/fd/3 to its target, which a file in memory has not; hence a real file.
  const std::string path = "/dev/shm/strobe-fuzz-" + std::to_string(::getpid());
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  check(fd >= 0, "cannot make a file in /dev/shm");
  const std::string file = is_script                  ? valid
                           : input.starts_with("BIN") ? patched(valid, input.substr(3))
                           : input.starts_with("CUT") ? cut(valid, input.substr(3))
                                                      : std::string(input);
  check(::write(fd, file.data(), file.size()) == static_cast<ssize_t>(file.size()), "cannot write the file");
  if (is_script) damage(path, std::string(input.substr(3)));
  use(path);
  ::close(fd);
  ::unlink(path.c_str());
}

}  // namespace strobe::fuzz
