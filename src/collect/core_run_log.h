// Which thread ran on which core: the log that CoreSwitches writes while it happens and that is read afterwards. A file
// is a head of 8 bytes and records of 32; what a killed program left half-written at its end is not there.
#pragma once

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "strobe/base/result.h"

namespace strobe::collect {

// Times: nanoseconds of CLOCK_MONOTONIC.
struct CoreRun {
  int64_t start_ns = 0, end_ns = 0;
  int32_t core = 0, pid = 0, tid = 0;
  bool preempted = false;  // it would have gone on: from its end it waits for a core
};

struct CoreRuns {
  std::vector<CoreRun> runs;             // of each core in time order; idle cores have none
  std::map<int32_t, std::string> names;  // by thread, the last one; printable ASCII
  std::map<int32_t, int32_t> parents;    // the thread that made a thread
  uint64_t lost = 0;                     // switches that the kernel had no room for
  int64_t from_ns = 0, to_ns = 0;        // what the log covers; equal: nothing
};

class CoreRunLog {
 public:
  // A new file. Errors: kIo.
  static Result<CoreRunLog> create(const std::filesystem::path& path);
  CoreRunLog(CoreRunLog&& other) noexcept;
  CoreRunLog& operator=(CoreRunLog&&) = delete;
  ~CoreRunLog();

  void run(const CoreRun& run);
  void name(int32_t tid, const char* name);  // the first 15 bytes
  void parent(int32_t tid, int32_t parent);
  void lost(uint64_t count);
  void covered(int64_t from_ns, int64_t to_ns);
  // False: not all of it could be written; what comes after would not be whole.
  bool flush();
  uint64_t bytes() const { return bytes_; }

 private:
  explicit CoreRunLog(std::FILE* file) : file_(file) {}
  void put(const void* record);
  std::FILE* file_;
  uint64_t bytes_ = 0;
};

// Errors: kIo; kBadData (no such log, or a record that cannot be).
Result<CoreRuns> read_core_runs(const std::filesystem::path& path);
Result<CoreRuns> parse_core_runs(const std::string& bytes);

}  // namespace strobe::collect
