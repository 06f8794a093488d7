#pragma once

#include "analyze/passes.h"
#include "base/table.h"

namespace strobe::analyze {

// Says in the table what the run lacks: no run, no stages, frames that did not finish.
void note_run(const PipelineRun& run, Table& table);

}  // namespace strobe::analyze
