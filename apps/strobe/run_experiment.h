// `strobe run experiment.yaml`: the cells of a grid, one after the other, each in a process of its own.
#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "open_experiment.h"
#include "strobe/base/result.h"
#include "tenants/experiment.h"

namespace strobe::app {

// Whether `strobe run` takes this word for an experiment's file.
bool is_experiment_file(const std::string& word);

struct CellEnd {
  std::string status, reason;  // "success", ...
};
// Runs cells into options.output and prints nothing but progress. Errors: kIo, kInterrupted.
Result<std::vector<CellEnd>> run_cells(const ExperimentOptions& options, tenants::Experiment experiment,
                                       const std::atomic<bool>& stop);

// Runs what is not done yet. OUT/<cell>/ has trace.sqlite, delays_<i>.csv, layer_timings_<i>.csv, lidar_pred_<i>.json,
// image_pred_<i>.json, cpu_<i>.csv and cell.json; OUT/param_mapping.csv says how each cell ended, OUT/failures.log why.
// Returns the exit code: 1 when a cell failed. Errors: kBadData (the file), kIo, kInterrupted.
Result<int> run_experiment(const ExperimentOptions& options, const std::atomic<bool>& stop);

}  // namespace strobe::app
