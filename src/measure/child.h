// Work in a process of its own, which can die, hang or run out of memory without harm to this one.
#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <string>

#include "strobe/base/result.h"

namespace strobe::measure {

struct ChildOptions {
  double timeout_s = 600;
  std::filesystem::path log;                // what it writes on stdout and stderr; empty: nowhere
  const std::atomic<bool>* stop = nullptr;  // ends it when set
  std::function<void()> waiting = nullptr;  // called about five times a second meanwhile
};

struct ChildEnd {
  enum class How : uint8_t { kAnswered, kTimeout, kStopped, kKilled, kExited } how = How::kAnswered;
  std::string answer;      // of kAnswered
  int code = 0;            // the signal of kKilled, the exit code of kExited
  int64_t peak_bytes = 0;  // of resident memory
  double seconds = 0;
  std::string last_line;          // of the log, when it did not answer
  std::string to_string() const;  // "stopped by signal 9 (Killed)"
};

// Forks; to be called while the process has one thread. The child goes with its parent, is the first to go when the
// machine runs out of memory, and leaves interrupts from the keyboard to its parent. An exception of the work ends it
// without an answer. Errors: kIo.
Result<ChildEnd> run_in_child(const std::function<std::string()>& work, const ChildOptions& options);

}  // namespace strobe::measure
