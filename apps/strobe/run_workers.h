// `strobe run --config`: several runs at the same time, each a process of its own.
#pragma once

#include <CLI/CLI.hpp>
#include <atomic>
#include <functional>
#include <string>

#include "strobe/base/result.h"

namespace strobe::app {

struct WorkersOptions {
  std::string config;  // the YAML file, docs/workers.md
  std::string output;  // empty: as the file says, else "strobe-out"
  std::string format = "text";
  bool quiet = false;
  const CLI::App* run_flags = nullptr;  // of `strobe run`: which keys a worker may have
  // When the file is checked and the workers are about to start; the process has one thread.
  std::function<void()> on_begin = {};
};

// Starts all workers, waits for all of them and prints how each ended; none is started again. A stop is passed on to
// the workers, which then finish what is under way. Writes OUTPUT/<name> for each worker and OUTPUT/trace.sqlite with
// all of them. Exit code 0; 1 when a worker failed and the others finished. Errors: a bad file (nothing was started);
// kInterrupted.
Result<int> run_workers(const WorkersOptions& options, const std::atomic<bool>& stop);

}  // namespace strobe::app
