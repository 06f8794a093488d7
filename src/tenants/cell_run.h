// A cell at work: its tenants as threads or processes, begun together, watched, and put on one timeline.
#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "strobe/base/result.h"
#include "tenants/experiment.h"

namespace strobe::tenants {

struct TenantOutcome {
  std::string name;
  bool succeeded = false;
  std::string end;  // "done", "failed: ...", "signal 11 (Segmentation fault)", "hung: no sign of life for 30 s", ...
  int64_t sent = 0, finished = 0, dropped = 0, failed = 0;  // frames, those before the window included
  std::vector<std::string> notes;
};

struct CellOutcome {
  std::vector<TenantOutcome> tenants;
  bool began = false;  // all tenants were ready, and the clock ran
  bool stopped = false;
  // A tenant that is a thread of this process hangs: the process can write its results and must then _exit.
  bool has_hung_threads = false;
  bool succeeded() const;
};

// In the spool's folder: a collect::CoreRunLog, where the kernel tells who runs on the tenants' cores.
inline constexpr const char* kCoreRunsFile = "cores.runs";

struct CellOptions {
  std::filesystem::path spool;        // where every process of the cell records; exists and is empty
  std::filesystem::path predictions;  // a folder: <tenant>.jsonl of each
  const std::atomic<bool>* stop = nullptr;
  // When the recording runs and no process will be forked any more; on the calling thread.
  std::function<void()> on_recording = {};
  // Before the recording ends.
  std::function<void()> on_end = {};
  // Whole seconds since the start, and of how many; on the calling thread.
  std::function<void(double seconds, double of)> on_progress = {};
  bool gpu = true;  // what tenants do on NVIDIA devices is recorded, too, where there is a driver
};

// To be called by a process of one thread that records nothing yet; when it returns, the recording has ended and all
// tenants are gone (but hung threads). Records by docs/tenant-trace.md. Errors: kIo, kUsage; what happens to a tenant
// is no error of the cell.
Result<CellOutcome> run_cell(const CellSpec& cell, const CellOptions& options);

}  // namespace strobe::tenants
