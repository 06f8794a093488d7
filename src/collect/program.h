// Runs another program under collectors and follows everything that descends from it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "collect/collector.h"

namespace strobe::collect {

struct ProgramOptions {
  std::vector<std::string> command;
  bool wait_for_all = true;  // also for processes that the program left behind
  bool quiet = false;        // no notes on stderr
};
struct ProgramEnd {
  int wait_status = 0;  // of the program itself
  bool killed = false;  // by a second interrupt
  size_t left = 0;      // processes that still ran when the recording ended
};

// This process becomes the parent of orphans in its tree. Input and output are the program's own. Signals that are
// sent to this process go to the program; those of the terminal reach it anyway. A second interrupt kills the whole
// tree. Errors: kNotFound, kIo (the program cannot be started: nothing ran).
Result<ProgramEnd> run_program(const ProgramOptions& options,
                               const std::vector<std::unique_ptr<Collector>>& collectors);

}  // namespace strobe::collect
