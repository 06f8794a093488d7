// CoreSwitches: the kernel's own record of which thread ran on which core, written to a CoreRunLog while it happens.
// From it one knows who ran while somebody waited for a core, other programs included.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <vector>

#include "collect/core_run_log.h"
#include "strobe/base/result.h"

namespace strobe::collect {

class CoreSwitches {
 public:
  // Begins to record these cores. Linux, perf_event_open(2): needs CAP_PERFMON or kernel.perf_event_paranoid below 1.
  // Errors: kUnsupported (the kernel refuses: why, and what it would need), kIo.
  static Result<CoreSwitches> start(const std::vector<int>& cores, const std::filesystem::path& log);
  CoreSwitches(CoreSwitches&&) noexcept;
  CoreSwitches& operator=(CoreSwitches&&) = delete;
  ~CoreSwitches();

  // Takes over what the kernel has written; to be called at least ten times a second, from one thread. After 4 million
  // runs (128 MB) nothing more is recorded.
  void drain();
  // The last drain: what runs now is taken to have run until now.
  void stop();

 private:
  struct State;
  explicit CoreSwitches(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace strobe::collect
