// The file of `strobe run --config`: which workers to start, each with which flags of `strobe run`.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <utility>
#include <vector>

#include "strobe/base/result.h"

namespace strobe::app {

struct WorkerPlan {
  std::string name;
  std::vector<std::string> flags;  // "--input=cam0.mp4", ...; without output and format
  std::string cores;               // that it is bound to, as its flag core-bind says; empty: all
  std::vector<std::pair<std::string, std::string>> environment;  // besides this process's own
  std::string log;                                               // empty: log.txt in the worker's folder
};

struct WorkersPlan {
  std::string output;  // empty: not told
  std::vector<WorkerPlan> workers;
};

// text: the file's content (YAML). run_flags: the flags that `strobe run` has; their long names, with - or _, are the
// keys of a worker; their values are left to it. Errors: kBadData with line and column ("3:5: ...", to
// follow the file's name and a colon); an unknown key with what may have been meant.
Result<WorkersPlan> read_workers(const std::string& text, const CLI::App& run_flags);

}  // namespace strobe::app
