// The traces of several processes as one timeline.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "strobe/base/result.h"
#include "strobe/trace/timeline.h"

namespace strobe::app {

struct WorkerTrace {
  std::string name;  // of the worker
  std::filesystem::path path;
};

// Ranges, marks, flows and counters of all, each on the lanes of its process, which bears the worker's name; time 0 is
// the first event of the first one, by the machine's clock. Frames get numbers that no other worker's have, in the
// workers' order. A fact stands as it is when all say the same, else as "worker.NAME.KEY"; those of the pipeline always
// do, so that no analysis takes the frames of several pipelines for those of one. Networks are left to the workers' own
// traces. Errors: a trace that cannot be read; two with the same process id.
Result<trace::Timeline> merge_traces(const std::vector<WorkerTrace>& traces);

}  // namespace strobe::app
