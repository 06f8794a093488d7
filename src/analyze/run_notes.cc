#include "analyze/run_notes.h"

#include "analyze/notes.h"

namespace strobe::analyze {

void note_run(const PipelineRun& run, Table& table) {
  if (run.stages.empty()) table.notes.push_back("no pipeline in this trace: the fact pipeline.stages is missing");
  if (!run.has_run) {
    table.notes.push_back("no measured part in this trace: there is no range \"run\"");
    return;
  }
  if (run.open) table.notes.push_back("the recording ends inside the run: figures cover the part before");
  if (run.further_runs > 0)
    table.notes.push_back(count_of(run.further_runs, "further run is", "further runs are") + " left out");
  if (run.dropped > 0)
    table.notes.push_back(count_of(run.dropped, "frame was", "frames were") + " dropped by the pipeline");
  if (run.unfinished > 0)
    table.notes.push_back(count_of(run.unfinished, "frame did", "frames did") +
                          " not pass every stage inside the run and " + (run.unfinished == 1 ? "is" : "are") +
                          " left out of frame latencies");
}

}  // namespace strobe::analyze
